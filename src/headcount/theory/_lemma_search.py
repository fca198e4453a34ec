"""The search of a lemma: a few sizes first, each with what the others found, then what it means.

For each choice of sizes one program is compiled that scores many starts, and one that climbs. The
lowest, the highest and the middle sizes come first, then one size after another varies alone. The
worst instances found so far, cut or filled up to the new shapes, are among the starts.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from flint import arb

from ..core import Array, float64, stream
from ._ball_jaxpr import BallProgram, Unsupported
from ._claim import Instance, Kind, generator
from ._lemma import Lemma
from ._lemma_problems import check_here, check_program
from ._lemma_report import SizeRatio
from ._prove import CONSTANT_ULPS, traced
from ._search import Budget, Candidate, search_family
from ._spaces import Size

LADDER = 4
"""Values that one size takes."""
_SEEDS = 6
"""Instances of other sizes that a search starts from."""
_CONFIRMED = 4
"""Candidates whose ratio is looked at in ball arithmetic until one agrees with float64."""
_AGREE = 1e-6
_ABOVE = 1e-3
"""A score above the worst confirmed one by more than this is mere rounding."""
_NOTHING = 1e-200
"""A ratio below this stands for a left side of zero."""

Tell = Callable[[str], None]


def ladder(size: Size) -> list[int]:
    """At most four values from low to high, in equal ratios."""
    steps = np.geomspace(size.low, size.high, LADDER)
    return sorted({round(float(step)) for step in steps})


def size_plan(named: Mapping[str, Size]) -> list[dict[str, int]]:
    """Which sizes to search: all low, all high, all in the middle, then each varied alone."""
    ladders = {name: ladder(size) for name, size in named.items()}
    middle = {name: values[(len(values) - 1) // 2] for name, values in ladders.items()}
    plan = [
        {name: values[0] for name, values in ladders.items()},
        {name: values[-1] for name, values in ladders.items()},
        middle,
    ]
    for name, values in ladders.items():
        plan += [{**middle, name: value} for value in values]
    return [dict(entry) for entry in dict.fromkeys(tuple(sizes.items()) for sizes in plan)]


def search_lemma(
    lemma: Lemma, variant: str, budget: Budget, seed: int, tell: Tell
) -> tuple[list[Candidate], int, tuple[SizeRatio, ...]]:
    """Bad instances of all sizes, how many were evaluated, and the worst ratio of each size."""
    own = list(lemma.variants).index(variant)
    found: list[Candidate] = []
    table, evaluated = [], 0
    for sizes in size_plan(lemma.named_sizes):
        check_program(lemma, variant, sizes)
        family = lemma.family(sizes)
        tell(f"{lemma.id} [{variant}]: {family.name}")
        rng = generator(stream(seed, "falsify", lemma.id, family.name))
        with float64():
            check_here(lemma, variant, family, rng, max(budget.random // 4, 64))
            seeds = list(_resized(found, family.draw(rng, 1), own))
            worst, count = search_family(lemma, family, budget, rng, seeds)
        evaluated += count
        found += worst
        table.append(SizeRatio(sizes, _worst_ratio(lemma, variant, worst, own)))
    return found, evaluated, tuple(table)


def _resized(found: Sequence[Candidate], drawn: Instance, own: int) -> Iterator[Instance]:
    """The worst instances of other sizes in the shapes of `drawn`, filled by zeros or repeated."""
    best = sorted(found, key=lambda c: -c.scores[own])[: _SEEDS // 2]
    shapes = [leaf.shape[1:] for leaf in jax.tree.leaves(drawn)]
    structure = jax.tree.structure(drawn)
    for candidate, mode in itertools.product(best, ("constant", "wrap")):
        leaves = jax.tree.leaves(candidate.instance)
        yield jax.tree.unflatten(
            structure,
            [_fitted(np.asarray(x), s, mode) for x, s in zip(leaves, shapes, strict=True)],
        )


def _fitted(x: Array, shape: tuple[int, ...], mode: Any) -> Array:
    if not shape:
        return x
    missing = [(0, max(size - own, 0)) for own, size in zip(x.shape, shape, strict=True)]
    return np.pad(x, missing, mode=mode)[tuple(slice(size) for size in shape)]


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
