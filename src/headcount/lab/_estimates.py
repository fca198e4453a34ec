"""Numbers with intervals, seeds as the sample: means, differences, shares.

A sample may hold runs that have no number. NaN: the run died (failed, diverged); infinity: it
lived and never got there (censored). Both are counted in the estimate, and no verdict is built on
those that remain. The order of the seeds changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Num

from ..core import Array, BadArgument
from ..core._checks import check_numbers

CONFIDENCE = 0.95
WELCH_SEEDS = 4
"""From so many seeds on each side Satterthwaite's degrees of freedom keep their coverage."""
_LARGEST = 709.0
"""exp() of more overflows."""

Ends: TypeAlias = Callable[[float], tuple[float, float]]


@dataclass(frozen=True)
class Estimate:
    """A number with its confidence interval; the interval is NaN when the sample is too small.

    `count` runs gave it; `died` more have no number and `never` more did not get there.
    `ends(confidence)` is the interval at another level. A count of zero with a value is an exact
    number, which no sample stands behind.
    """

    value: float
    low: float
    high: float
    count: int
    died: int = 0
    never: int = 0
    ends: Ends | None = field(default=None, compare=False, repr=False)

    @classmethod
    def exactly(cls, value: float) -> Estimate:
        """A number that was computed, not sampled."""
        return cls(value, value, value, 0)

    @property
    def known(self) -> bool:
        """Whether there is an interval at all."""
        return math.isfinite(self.value) and math.isfinite(self.low) and math.isfinite(self.high)

    @property
    def exact(self) -> bool:
        """Whether it is no sample's."""
        return self.count == 0 and self.known

    def at(self, confidence: float) -> Estimate:
        """The same with the interval of this level; Student's where nothing else was given."""
        if self.exact or not self.known:
            return self
        if self.ends is None:
            wider = _quantile(confidence, self.count - 1) / _quantile(CONFIDENCE, self.count - 1)
            low = self.value - wider * (self.value - self.low)
            return replace(self, low=low, high=self.value + wider * (self.high - self.value))
        low, high = self.ends(confidence)
        return replace(self, low=low, high=high)

    def mapped(self, low: Callable[[float], float], high: Callable[[float], float]) -> Estimate:
        """Both ends moved, at every level."""

        def ends(confidence: float) -> tuple[float, float]:
            there = self.at(confidence)
            return low(there.low), high(there.high)

        return replace(self, low=low(self.low), high=high(self.high), ends=ends)

    def exp(self) -> Estimate:
        """From an estimate of a logarithm to one of the number itself; too large is very large."""
        return replace(self.mapped(_exp, _exp), value=_exp(self.value))


def mean(values: Num[Array, "seed"]) -> Estimate:
    """Mean with its Student t interval, mean +- t_{n-1} s / sqrt(n).

    Positive values may be skewed, and t intervals then miss large means: theirs is joined with
    Cox's interval for the mean of a log-normal law with mean l and variance v of the logarithms,
    exp(l + v/2 +- t_{n-1} sqrt(v/n + v^2/(2n - 2))).
    """
    sample, died, never = _sample(values)
    plain = _student_mean(sample, died, never)
    if not plain.known or sample[0] <= 0:
        return plain
    n, logs = sample.size, np.log(sample)
    centre, v = logs.mean(), logs.var(ddof=1)
    error = math.sqrt(v / n + v**2 / (2 * n - 2))

    def ends(confidence: float) -> tuple[float, float]:
        t, half = plain.at(confidence), _quantile(confidence, n - 1) * error
        return min(t.low, _exp(centre + v / 2 - half)), max(t.high, _exp(centre + v / 2 + half))

    return _with_ends(plain.value, ends, n, died, never)


def geometric_mean(values: Num[Array, "seed"]) -> Estimate:
    """exp of the mean logarithm, with the exponentials of its t interval; for positive values.

    The average that belongs on a logarithmic axis: its interval never reaches zero, and one
    extreme seed does not decide it. A value that is not positive counts as none.
    """
    return _student_mean(*_sample(logarithm(values))).exp()


def median(values: Num[Array, "seed"]) -> Estimate:
    """Median with the distribution-free interval between two order statistics.

    [x_(k), x_(n+1-k)] with the largest k for which P(Bin(n, 1/2) < k) <= (1 - confidence)/2; no
    such k exists for fewer than six seeds at 95 %, and the interval is then unknown.
    """
    from scipy import stats  # slow to import

    sample, died, never = _sample(values)
    n = sample.size
    if n == 0:
        return Estimate(math.nan, math.nan, math.nan, 0, died, never)

    def ends(confidence: float) -> tuple[float, float]:
        tail = (1 - confidence) / 2
        k = int(stats.binom.ppf(tail, n, 0.5))  # the least k with P(Bin <= k) >= tail
        k += int(stats.binom.cdf(k, n, 0.5) <= tail)
        return (float(sample[k - 1]), float(sample[n - k])) if k else (math.nan, math.nan)

    return _with_ends(float(np.median(sample)), ends, n, died, never)


def paired_difference(a: Num[Array, "seed"], b: Num[Array, "_"]) -> Estimate:
    """Mean of a - b over seeds that have both, with its t interval."""
    a, b = check_numbers("a", a), check_numbers("b", b)
    if a.shape != b.shape:
        raise BadArgument(
            "b", f"array of shape {b.shape}", f"must pair with {a.shape}", fix="match"
        )
    died, unseen = np.isnan(a) | np.isnan(b), np.isinf(a) | np.isinf(b)
    difference = np.where(died, np.nan, np.inf)
    np.subtract(a, b, out=difference, where=~died & ~unseen)
    return _student_mean(*_sample(difference))


def difference_from(
    values: Num[Array, "seed"], reference: float, standard_error: float, seeds: int
) -> Estimate:
    """Mean of `values` minus an independent mean known with a standard error from `seeds` seeds.

    Welch's interval: both errors count, with the degrees of freedom of Satterthwaite, or those of
    the smaller sample (which are safe) where one has fewer than `WELCH_SEEDS`.
    """
    sample, died, never = _sample(values)
    n = sample.size
    if n < 2 or seeds < 2:
        value = _student_mean(sample, died, never).value - reference
        return Estimate(value, math.nan, math.nan, n, died, never)
    own, other = sample.var(ddof=1) / n, standard_error**2
    both = own + other
    freedom = min(n, seeds) - 1.0
    if freedom >= WELCH_SEEDS - 1 and both:
        freedom = both**2 / (own**2 / (n - 1) + other**2 / (seeds - 1))
    return _student(float(sample.mean() - reference), math.sqrt(both), freedom, n, died, never)


def proportion(hits: Num[Array, "seed"]) -> Estimate:
    """The share of seeds that hit (1, not 0), with the interval of Clopper and Pearson."""
    from scipy import special

    sample, died, never = _sample(hits)
    n, k = sample.size, sample.sum()
    if not n:
        return Estimate(math.nan, math.nan, math.nan, 0, died, never)

    def ends(confidence: float) -> tuple[float, float]:
        tail = (1 - confidence) / 2
        low = special.betaincinv(k, n - k + 1, tail) if k else 0.0
        return float(low), float(special.betaincinv(k + 1, n - k, 1 - tail)) if k < n else 1.0

    return _with_ends(float(k / n), ends, n, died, never)


def steps_below(curves: Num[Array, "*runs step"], level: Any) -> Num[Array, "*runs"]:
    """First step at which each curve is below `level`; infinity: never; NaN: it died before."""
    small = np.asarray(curves) < level
    first = np.argmax(small, axis=-1) * 1.0
    end = np.where(np.isfinite(np.asarray(curves)[..., -1]), np.inf, np.nan)
    return np.where(small.any(axis=-1), first, end)


def logarithm(values: Any) -> Num[Array, "..."]:
    """log, and NaN for what has none."""
    found = check_numbers("values", values)
    return np.log(found, out=np.full(found.shape, np.nan), where=found > 0)


def _student_mean(sample: Num[Array, "seed"], died: int, never: int) -> Estimate:
    n = sample.size
    if n < 2:
        return Estimate(float(sample[0]) if n else math.nan, math.nan, math.nan, n, died, never)
    return _student(float(sample.mean()), sample.std(ddof=1) / math.sqrt(n), n - 1, n, died, never)


def _student(
    centre: float, error: float, freedom: float, count: int, died: int, never: int
) -> Estimate:
    """centre +- t error, with t of Student's law of so many degrees of freedom."""

    def ends(confidence: float) -> tuple[float, float]:
        half = _quantile(confidence, freedom) * float(error)
        return centre - half, centre + half

    return _with_ends(centre, ends, count, died, never)


def _with_ends(value: float, ends: Ends, count: int, died: int, never: int) -> Estimate:
    return Estimate(value, *ends(CONFIDENCE), count, died, never, ends)


def _quantile(confidence: float, freedom: float) -> float:
    from scipy import special

    return float(special.stdtrit(freedom, (1 + confidence) / 2))


def _exp(value: float) -> float:
    return math.exp(min(value, _LARGEST))


def _sample(values: Any) -> tuple[Num[Array, "seed"], int, int]:
    """The finite values in order, how many runs died, and how many never got there."""
    sample = check_numbers("values", values).ravel()
    finite = np.sort(sample[np.isfinite(sample)])
    died = int(np.isnan(sample).sum())
    return finite, died, sample.size - finite.size - died
