"""The search of a lemma: a few sizes first, each with what the others found, then what it means.

For each choice of sizes one program is compiled that scores many starts, and one that climbs. The
lowest, the highest and the middle sizes come first, then one size after another varies alone. The
worst instances found so far, cut or filled up to the new shapes, are among the starts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import jax
import numpy as np
from flint import arb

from ..core import float64, stream
from ._ball_jaxpr import BallProgram, Unsupported
from ._claim import Family, Instance, Kind, generator
from ._embeddings import embedded
from ._lemma import Lemma
from ._lemma_problems import check_here, check_program
from ._lemma_report import SizeRatio
from ._possible_sizes import first_possible, refusal
from ._prove import CONSTANT_ULPS, traced
from ._search import Budget, Candidate, search_family
from ._spaces import Size, Space

LADDER = 4
"""Values that one size takes."""
_SEEDS, _WAYS = 3, 2
"""Instances of other sizes that a search starts from, and the ways in which each is filled up."""
_LESS = 1e-3
"""A ratio below that of smaller sizes by more than this, relatively, is searched again."""
_CONFIRMED = 4
"""Candidates whose ratio is looked at in ball arithmetic until one agrees with float64."""
_AGREE = 1e-6
_ABOVE = 1e-3
"""A score above the worst confirmed one by more than this is mere rounding."""
_NOTHING = 1e-200
"""A ratio below this stands for a left side of zero."""

Tell = Callable[[str], None]


def ladder(size: Size, possible: Callable[[int], bool] = lambda k: True) -> list[int]:
    """At most four values from low to high, in equal ratios, or the nearest that are possible."""
    values = range(size.low, size.high + 1)
    found = set()
    for step in map(round, np.geomspace(size.low, size.high, LADDER).tolist()):
        near = (k for away in range(len(values)) for k in (step - away, step + away))
        found.add(next(k for k in near if k in values and possible(k)))
    return sorted(found)


def size_plan(named: Mapping[str, Size], spaces: Collection[Space] = ()) -> list[dict[str, int]]:
    """Which sizes to search: all low, all high, all in the middle, then each varied alone.

    Those that a space refuses, such as an odd number of paired heads, are left out.
    """
    first = first_possible(spaces, named)

    def possible(name: str, value: int) -> bool:
        return refusal(spaces, {**first, name: value}) is None

    ladders = {name: ladder(size, partial(possible, name)) for name, size in named.items()}
    middle = {name: values[(len(values) - 1) // 2] for name, values in ladders.items()}
    plan = [
        {name: values[0] for name, values in ladders.items()},
        {name: values[-1] for name, values in ladders.items()},
        middle,
    ]
    for name, values in ladders.items():
        plan += [{**middle, name: value} for value in values]
    plan = [dict(entry) for entry in dict.fromkeys(tuple(sizes.items()) for sizes in plan)]
    return [sizes for sizes in plan if refusal(spaces, sizes) is None]


@dataclass
class _Searched:
    """One choice of sizes: the worst instances found there, and their confirmed ratio."""

    sizes: Mapping[str, int]
    family: Family
    worst: list[Candidate]
    ratio: float

    def within(self, other: _Searched) -> bool:
        """Whether no size is larger than the other's."""
        return self is not other and all(n <= other.sizes[key] for key, n in self.sizes.items())


def search_lemma(
    lemma: Lemma, variant: str, budget: Budget, seed: int, tell: Tell
) -> tuple[list[Candidate], int, tuple[SizeRatio, ...]]:
    """Bad instances of all sizes, how many were evaluated, and the worst ratio of each size."""
    own = list(lemma.variants).index(variant)
    searched: list[_Searched] = []
    evaluated = 0

    def search(sizes: Mapping[str, int], known: Sequence[Candidate], *, fill: bool) -> _Searched:
        nonlocal evaluated
        family = lemma.family(sizes)
        rng = generator(stream(seed, "falsify", lemma.id, family.name, *["embedded"] * fill))
        with float64():
            if not fill:
                check_here(lemma, variant, family, rng, max(budget.random // 4, 64))
            ways = budget.random // len(known) if fill else _WAYS
            batch = family.draw(rng, ways if fill else 1)
            seeds = [i for c in known for i in embedded(c.instance, batch, rng, ways)]
            worst, count = search_family(lemma, family, budget, rng, seeds)
        evaluated += count
        return _Searched(sizes, family, worst, _worst_ratio(lemma, variant, worst, own))

    for sizes in size_plan(lemma.named_sizes, lemma.variables.values()):
        check_program(lemma, variant, sizes)
        tell(f"{lemma.id} [{variant}]: {lemma.family(sizes).name}")
        found = [candidate for entry in searched for candidate in entry.worst]
        searched.append(search(sizes, _hardest(found, own, _SEEDS), fill=False))
    for entry in sorted(searched, key=lambda entry: sum(entry.sizes.values())):
        inner = [other for other in searched if other.within(entry)]
        hardest = max(inner, key=lambda other: other.ratio, default=entry)
        if lemma.kind is Kind.IDENTITY or not hardest.ratio > entry.ratio * (1 + _LESS):
            continue
        # What fewer tokens allow, more tokens allow too, or else it is not for want of trying.
        tell(f"{lemma.id} [{variant}]: {entry.family.name}, from {hardest.family.name}")
        again = search(entry.sizes, _hardest(hardest.worst, own, 2), fill=True)
        entry.worst += again.worst
        entry.ratio = max(entry.ratio, again.ratio)
    table = tuple(SizeRatio(entry.sizes, entry.ratio) for entry in searched)
    return [candidate for entry in searched for candidate in entry.worst], evaluated, table


def _hardest(found: Sequence[Candidate], own: int, count: int) -> list[Candidate]:
    return sorted(found, key=lambda candidate: -candidate.scores[own])[:count]


def _worst_ratio(lemma: Lemma, variant: str, worst: list[Candidate], own: int) -> float:
    """The worst ratio that ball arithmetic agrees with: rounding makes ratios of its own.

    Without an enclosure float64's counts; minus infinity where no two sides can be compared.
    """
    ratios: list[float] = []
    for candidate in sorted(worst, key=lambda c: -c.scores[own]):
        if len(ratios) == _CONFIRMED or candidate.scores[own] == -np.inf:
            break
        seen = float(np.exp(np.clip(candidate.scores[own], -700, 700)))
        seen = seen if seen > _NOTHING else 0.0
        exact = ratio_in_balls(lemma, variant, candidate.instance)
        if exact is None:
            return max(seen, *ratios, 0.0)
        if math.isnan(exact):
            continue  # nothing to divide by: rounding on both sides
        if abs(exact - seen) <= _AGREE * max(exact, seen):
            return exact
        ratios.append(exact)
    return max(ratios, default=-math.inf)


def ratio_in_balls(lemma: Lemma, variant: str, instance: Instance, bits: int = 160) -> float | None:
    """lhs/rhs with many digits; NaN for 0/0, None where ball arithmetic has no answer.

    It is zero only where the left side is.
    """
    if lemma.kind is Kind.IDENTITY:
        return None
    try:
        _, lhs, rhs = BallProgram(traced(lemma, variant), instance, ulps=CONSTANT_ULPS)(bits)
    except (Unsupported, ArithmeticError, ValueError, TypeError, IndexError, KeyError):
        return None
    left, right = arb(lhs), arb(rhs)
    if not left.is_finite() or right.is_nan() or not (right.is_finite() or right > 0):
        return None
    if right > 0:
        return float((left / right).mid()) or (math.ulp(0.0) if left > 0 else 0.0)
    return math.inf if left > right else math.nan


def preferred(
    order: list[Candidate], own: int, violation: float, table: Sequence[SizeRatio]
) -> list[Candidate]:
    """The worst first; among those at least half as bad, smaller sizes before larger ones.

    How bad it gets is what the table says: a score above it is rounding, and comes last.
    """
    largest = max([row.ratio for row in table], default=0.0)
    top = math.log(largest) if largest > 0 else 0.0
    least = max(top / 2, violation)
    bad = [c for c in order if least < c.scores[own] <= top + _ABOVE]
    bad.sort(key=lambda c: sum(np.size(leaf) for leaf in jax.tree.leaves(c.instance)))
    noise = [c for c in order if c.scores[own] > top + _ABOVE]
    return [*bad, *noise, *(c for c in order if c.scores[own] <= least)]
