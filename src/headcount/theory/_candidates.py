"""Where a search looks: on file, in the families of a claim, at other sizes.

Where sizes have ranges, the lowest, the highest and the middle come first, then one size after
another varies alone; the worst instances found so far, cut or filled up to the new shapes, are
among the starts. Elsewhere the worst instance is made larger and smaller along every letter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import jax
import numpy as np
from flint import arb

from ..core import float64, stream
from ._ball_jaxpr import BallProgram, Unsupported
from ._claim import Claim, Family, Instance, Kind, generator
from ._corpus import known_instances
from ._embeddings import embedded
from ._lemma_problems import check_here, check_program
from ._lemma_report import SizeRatio
from ._possible_sizes import first_possible, refusal
from ._prove import CONSTANT_ULPS, traced
from ._record import family_at
from ._search import Budget, Candidate, scores_of, search_family, search_sizes
from ._spaces import Size, Space
from ._verdict import ROUNDING

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

VIOLATION = float(np.log1p(ROUNDING))
"""The score above which a candidate is a violation."""

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


def _on_file(claim: Claim, cold: bool) -> Iterator[Candidate]:
    """The claim's own constructions and the worst instances known from earlier searches."""
    known = () if cold else known_instances(claim)
    built = () if cold else claim.targets()
    for origin, instances in (("construction", built), ("known", known)):
        for index, instance in enumerate(instances):
            yield Candidate(scores_of(claim, instance), instance, f"{origin} {index + 1}")


@dataclass
class _Searched:
    """One family: its sizes, the worst instances found there, and their confirmed ratio."""

    sizes: Mapping[str, int]
    family: Family
    worst: list[Candidate]
    ratio: float

    def within(self, other: _Searched) -> bool:
        """Whether no size is larger than the other's."""
        return self is not other and all(n <= other.sizes[key] for key, n in self.sizes.items())


class _Search:
    """The families of a claim, one after another; where sizes have ranges, each helps the next."""

    def __init__(self, claim: Claim, form: str, budget: Budget, seed: int, tell: Tell) -> None:
        self.claim, self.form, self.budget, self.seed = claim, form, budget, seed
        self.tell = lambda words: tell(f"{claim.id} [{form}]: {words}")
        self.own = list(claim.variants).index(form)
        self.searched: list[_Searched] = []
        self.evaluated = 0

    @property
    def found(self) -> list[Candidate]:
        """All that was found so far."""
        return [candidate for entry in self.searched for candidate in entry.worst]

    def families(self) -> None:
        """As they are declared."""
        for family in self.claim.families:
            self.tell(family.name)
            self.searched.append(_Searched({}, family, self._search(family), 0.0))

    def ranges(self) -> None:
        """At several sizes, each from what the others found, filled up to its own."""
        on = self.claim.on
        assert on is not None
        for sizes in size_plan(on.sized, on.spaces.values()):
            check_program(self.claim, self.form, sizes)
            family = family_at(on, sizes)
            self.tell(family.name)
            known = _hardest(self.found, self.own, _SEEDS)
            self.searched.append(self._confirmed(sizes, family, self._search(family, known)))
        for entry in sorted(self.searched, key=lambda entry: sum(entry.sizes.values())):
            inner = [other for other in self.searched if other.within(entry)]
            hardest = max(inner, key=lambda other: other.ratio, default=entry)
            identity = self.claim.kind is Kind.IDENTITY
            if identity or not hardest.ratio > entry.ratio * (1 + _LESS):
                continue
            # What fewer tokens allow, more tokens allow too, or else it is not for want of trying.
            self.tell(f"{entry.family.name}, from {hardest.family.name}")
            worst = self._search(entry.family, _hardest(hardest.worst, self.own, 2), fill=True)
            again = self._confirmed(entry.sizes, entry.family, worst)
            entry.worst += again.worst
            entry.ratio = max(entry.ratio, again.ratio)

    def neighbours(self) -> None:
        """A letter of the shapes more or less, from the worst found, as long as that helps."""
        self.tell("other sizes")
        rng = generator(stream(self.seed, "falsify", self.claim.id, "sizes"))
        worst, count = search_sizes(self.claim, self.found, self.budget, rng)
        self.evaluated += count
        self.searched.append(_Searched({}, self.searched[0].family, worst, 0.0))

    def _search(
        self, family: Family, known: Sequence[Candidate] = (), *, fill: bool = False
    ) -> list[Candidate]:
        budget, words = self.budget, ["embedded"] * fill
        rng = generator(stream(self.seed, "falsify", self.claim.id, family.name, *words))
        seeds: list[Instance] = []
        if self.claim.raw:
            if not fill:
                check_here(self.claim, self.form, family, rng, max(budget.random // 4, 64))
            ways = budget.random // len(known) if fill else _WAYS
            batch = family.draw(rng, ways if fill else 1)
            seeds = [i for c in known for i in embedded(c.instance, batch, rng, ways)]
        worst, count = search_family(self.claim, family, budget, rng, seeds)
        self.evaluated += count
        return worst

    def _confirmed(
        self, sizes: Mapping[str, int], family: Family, worst: list[Candidate]
    ) -> _Searched:
        ratio = _worst_ratio(self.claim, self.form, worst, self.own)
        return _Searched(sizes, family, worst, ratio)


def candidates(
    claim: Claim, name: str, plan: Budget, seed: int, cold: bool, tell: Tell
) -> tuple[list[Candidate], int, tuple[SizeRatio, ...]]:
    """Bad instances, how many were evaluated, and the worst ratio of each choice of sizes.

    They are on file, of the claim's families, and of other sizes.
    """
    search = _Search(claim, name, plan, seed, tell)
    with float64():
        ready = list(_on_file(claim, cold))
        if claim.raw:
            search.ranges()
            rows = [SizeRatio(entry.sizes, entry.ratio) for entry in search.searched]
            table = tuple(sorted(rows, key=lambda row: tuple(row.sizes.values())))
            return [*ready, *search.found], search.evaluated + len(ready), table
        search.families()
        known = [*ready, *search.found]
        if plan.sizes and search.found and not any(c.scores[search.own] > VIOLATION for c in known):
            search.neighbours()
    return [*ready, *search.found], search.evaluated + len(ready), ()


def _hardest(found: Sequence[Candidate], own: int, count: int) -> list[Candidate]:
    return sorted(found, key=lambda candidate: -candidate.scores[own])[:count]


def _worst_ratio(lemma: Claim, variant: str, worst: list[Candidate], own: int) -> float:
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


def ratio_in_balls(lemma: Claim, variant: str, instance: Instance, bits: int = 160) -> float | None:
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
