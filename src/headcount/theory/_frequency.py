"""High-probability claims are tested by frequency over seeds, with a binomial interval."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..core import BadArgument, check_count, check_fraction


class Interval(NamedTuple):
    """A two-sided confidence interval."""

    low: float
    high: float


def clopper_pearson(successes: int, trials: int, confidence: float = 0.999) -> Interval:
    """The exact binomial interval of a probability from `successes` out of `trials`.

    low solves P(Bin(N, p) >= k) = (1-confidence)/2, high solves P(Bin(N, p) <= k) = the same.

    >>> clopper_pearson(0, 10, confidence=0.95).high  # 1 - 0.025^{1/10}
    0.30849...
    """
    from scipy import stats  # slow to import, and seldom needed

    check_count("trials", trials)
    check_count("successes", successes, least=0)
    if successes > trials:
        problem = f"is more than the {trials} trials"
        raise BadArgument("successes", successes, problem, fix="give successes, then trials")
    check_fraction("confidence", confidence)
    half = (1 - confidence) / 2
    low = 0.0 if successes == 0 else float(stats.beta.ppf(half, successes, trials - successes + 1))
    high = (
        1.0
        if successes == trials
        else float(stats.beta.ppf(1 - half, successes + 1, trials - successes))
    )
    return Interval(low, high)


def delta_of(case: Mapping[str, Any]) -> float:
    """The failure probability that a case names."""
    return float(case["delta"])


@dataclass(frozen=True)
class Experiment:
    """How the randomness of a high-probability claim is drawn and counted.

    A case is a dictionary of numbers and names. `draw(case, rng, count)` is `count` random
    instances along a leading axis; `sides` gives lhs and rhs of one of them;
    `exceeds_naively(case, variant, seed, repetitions)` counts exceedances by an independent
    NumPy path with its own random numbers; `delta(case)` is the probability that is allowed,
    by default the case's own "delta".
    `case_problem(case)` says why a case is outside the claim's domain; `vary(rng)` draws another
    case for the search. `exact(case, variant, factor)` encloses the probability itself in cases
    small enough to be enumerated, with the bound scaled by the factor, and is None elsewhere.
    """

    cases: tuple[Mapping[str, Any], ...]
    draw: Callable[[Mapping[str, Any], np.random.Generator, int], Any]
    sides: Callable[[Any, str], Any]
    exceeds_naively: Callable[[Mapping[str, Any], str, int, int], int]
    delta: Callable[[Mapping[str, Any]], float] = delta_of
    case_problem: Callable[[Mapping[str, Any]], str | None] = lambda case: None
    vary: Callable[[np.random.Generator], Mapping[str, Any]] | None = None
    exact: Callable[[Mapping[str, Any], str, float], Interval | None] | None = None

    def searched(self, rng: np.random.Generator, count: int) -> list[Mapping[str, Any]]:
        """The declared cases and `count` random ones, those inside the domain."""
        drawn = [self.vary(rng) for _ in range(count)] if self.vary is not None else []
        return [case for case in (*self.cases, *drawn) if self.case_problem(case) is None]


class Frequency(NamedTuple):
    """How often a high-probability inequality failed, against what it allows."""

    exceedances: int
    repetitions: int
    delta: float
    interval: Interval

    @property
    def rate(self) -> float:
        """The observed frequency of failure."""
        return self.exceedances / self.repetitions

    @property
    def outcome(self) -> str:
        """violated when the interval lies above delta, holds when below, else inconclusive."""
        if self.interval.low > self.delta:
            return "violated"
        return "holds" if self.interval.high <= self.delta else "inconclusive"


def frequency_of(
    exceedances: int, repetitions: int, delta: float, confidence: float = 0.999
) -> Frequency:
    """The frequency with its exact binomial interval."""
    check_fraction("delta", delta)
    interval = clopper_pearson(exceedances, repetitions, confidence)
    return Frequency(exceedances, repetitions, delta, interval)
