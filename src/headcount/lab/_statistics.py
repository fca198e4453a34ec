"""Statistics with seeds as the sample: intervals for means, differences, slopes and trends.

Seeds without a value (failed or diverged trials, NaN) are left out; `count` says how many stayed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Num

from ..core import Array, BadArgument, check_choice, check_fraction, integers, stream
from ..core._checks import check_numbers

if TYPE_CHECKING:
    import xarray as xr

CONFIDENCE = 0.95
_RESAMPLES = 2000


@dataclass(frozen=True)
class Estimate:
    """A number with its confidence interval; the interval is NaN when the sample is too small."""

    value: float
    low: float
    high: float
    count: int

    @property
    def known(self) -> bool:
        """Whether there is an interval at all."""
        return math.isfinite(self.value) and math.isfinite(self.low) and math.isfinite(self.high)

    def exp(self) -> Estimate:
        """From an estimate of a logarithm to one of the number itself."""
        return Estimate(math.exp(self.value), math.exp(self.low), math.exp(self.high), self.count)


@dataclass(frozen=True)
class SlopeFit:
    """A straight line through logarithms: y = exp(intercept) x^slope.

    `slope` carries the interval over seeds; `line` the least-squares t-interval of the fitted
    means, which is wide when the points do not lie on a line, however many seeds there are.
    """

    slope: Estimate
    line: Estimate
    intercept: float

    def __call__(self, x: Any) -> Any:
        """The fitted y at x."""
        return np.exp(self.intercept) * np.asarray(x, dtype=float) ** self.slope.value

    def describe(self) -> str:
        """For a legend: the slope with its interval."""
        s = self.slope
        interval = f" [{s.low:.2f}, {s.high:.2f}]" if s.known else ""
        return f"slope {s.value:.2f}{interval}"


def mean(values: Num[Array, "seed"], confidence: float = CONFIDENCE) -> Estimate:
    """Mean with its Student t interval, mean +- t_{n-1} s / sqrt(n)."""
    check_fraction("confidence", confidence)
    sample = _finite(values)
    n = sample.size
    if n == 0:
        return Estimate(math.nan, math.nan, math.nan, 0)
    centre = float(sample.mean())
    if n == 1:
        return Estimate(centre, math.nan, math.nan, 1)
    return _student(centre, sample.std(ddof=1) / math.sqrt(n), n - 1, n, confidence)


def median(values: Num[Array, "seed"], confidence: float = CONFIDENCE) -> Estimate:
    """Median with the distribution-free interval between two order statistics.

    [x_(k), x_(n+1-k)] with the largest k for which P(Bin(n, 1/2) < k) <= (1 - confidence)/2; no
    such k exists for fewer than six seeds at 95 %, and the interval is then unknown.
    """
    from scipy import stats  # slow to import

    check_fraction("confidence", confidence)
    sample = np.sort(_finite(values))
    n = sample.size
    if n == 0:
        return Estimate(math.nan, math.nan, math.nan, 0)
    centre = float(np.median(sample))
    tail = (1 - confidence) / 2
    k = int(stats.binom.ppf(tail, n, 0.5))  # the least k with P(Bin <= k) >= tail
    k += int(stats.binom.cdf(k, n, 0.5) <= tail)
    if k == 0:
        return Estimate(centre, math.nan, math.nan, n)
    return Estimate(centre, float(sample[k - 1]), float(sample[n - k]), n)


def geometric_mean(values: Num[Array, "seed"], confidence: float = CONFIDENCE) -> Estimate:
    """exp of the mean logarithm, with the exponentials of its t interval; for positive values.

    The average that belongs on a logarithmic axis: its interval never reaches zero, and one
    extreme seed does not decide it. Unknown when a value is not positive.
    """
    sample = _finite(values)
    if (sample <= 0).any():
        return Estimate(math.nan, math.nan, math.nan, sample.size)
    return mean(np.log(sample), confidence).exp()


def difference_from(
    values: Num[Array, "seed"],
    reference: float,
    standard_error: float,
    seeds: int,
    confidence: float = CONFIDENCE,
) -> Estimate:
    """Mean of `values` minus an independent mean known with a standard error from `seeds` seeds.

    Welch's interval: both errors count, with the degrees of freedom of Satterthwaite.
    """
    check_fraction("confidence", confidence)
    sample = _finite(values)
    n = sample.size
    if n < 2 or seeds < 2:
        return Estimate(mean(sample, confidence).value - reference, math.nan, math.nan, n)
    own = sample.var(ddof=1) / n
    other = standard_error**2
    centre, both = float(sample.mean() - reference), own + other
    if both == 0:
        return Estimate(centre, centre, centre, n)
    freedom = both**2 / (own**2 / (n - 1) + other**2 / (seeds - 1))
    return _student(centre, math.sqrt(both), freedom, n, confidence)


def paired_difference(
    a: Num[Array, "seed"], b: Num[Array, "_"], confidence: float = CONFIDENCE
) -> Estimate:
    """Mean of a - b over seeds that have both, with its t interval."""
    a, b = check_numbers("a", a), check_numbers("b", b)
    if a.shape != b.shape:
        raise BadArgument(
            "b", f"array of shape {b.shape}", f"must pair with {a.shape}", fix="match"
        )
    return mean(a - b, confidence)


def loglog_slope(
    x: Num[Array, "point"],
    y: Num[Array, "seed point"],
    confidence: float = CONFIDENCE,
    *,
    seed: int = 0,
) -> SlopeFit:
    """Least-squares slope of log(mean over seeds of y) against log x, with two intervals.

    The interval over seeds is the expanded percentile bootstrap: whole seeds are drawn with
    replacement (so that points that share a seed stay together), and the percentiles are taken
    at Phi(-+ sqrt(n/(n-1)) t_{n-1}), which corrects the plain percentiles' undercoverage for few
    seeds. The draws come from a named stream: the same data give the same interval.
    """
    check_fraction("confidence", confidence)
    x, y = check_numbers("x", x), np.atleast_2d(check_numbers("y", y))
    if y.shape[1] != x.size or x.size < 2 or np.unique(x).size < 2:
        raise BadArgument(
            "y",
            f"array of shape {y.shape}",
            f"must be (seeds, {x.size}) with >= 2 points",
            fix="fix",
        )
    if (x <= 0).any():
        raise BadArgument("x", x.tolist(), "must be positive for a log-log fit", fix="drop zeros")
    from scipy import stats

    rows = y[np.isfinite(y).all(axis=1)]
    n = len(rows)
    unknown = Estimate(math.nan, math.nan, math.nan, n)
    if n == 0 or (rows.mean(axis=0) <= 0).any():
        return SlopeFit(unknown, unknown, math.nan)
    logx = np.log(x)
    weights = (logx - logx.mean()) / ((logx - logx.mean()) ** 2).sum()
    fit = stats.linregress(logx, np.log(rows.mean(axis=0)))
    value, k = float(fit.slope), x.size
    slope = Estimate(value, *_bootstrap_slope(rows, weights, confidence, seed), n)
    line = Estimate(value, math.nan, math.nan, k)
    if k > 2:
        line = _student(value, float(fit.stderr), k - 2, k, confidence)
    return SlopeFit(slope, line, float(fit.intercept))


def _bootstrap_slope(
    rows: Num[Array, "seed point"], weights: Num[Array, "point"], confidence: float, seed: int
) -> tuple[float, float]:
    from scipy import stats

    n = len(rows)
    if n < 2:
        return math.nan, math.nan
    draws = integers(stream(seed, "lab", "bootstrap", n), (_RESAMPLES, n), n)
    means = rows[draws].mean(axis=1)
    positive = means[(means > 0).all(axis=1)]
    slopes = np.log(positive) @ weights
    quantile = stats.t.ppf((1 + confidence) / 2, n - 1)
    level = float(stats.norm.cdf(-math.sqrt(n / (n - 1)) * quantile))
    low, high = np.quantile(slopes, [level, 1 - level])
    return float(low), float(high)


def trend(
    x: Num[Array, "point"], y: Num[Array, "seed point"], confidence: float = CONFIDENCE
) -> Estimate:
    """Kendall's tau-b of y against x, one per seed, averaged with its t interval.

    +1: every seed rises at every step; -1: every seed falls; 0: no monotone trend.
    """
    x, y = check_numbers("x", x), np.atleast_2d(check_numbers("y", y))
    if y.ndim != 2 or x.ndim != 1 or not x.size or y.shape[1] != x.size:
        problem = f"must be (seeds, points) for x of shape {x.shape}"
        raise BadArgument("y", f"array of shape {y.shape}", problem, fix="match")
    rows = y[np.isfinite(y).all(axis=1)]
    taus = np.array([_kendall(x, row) for row in rows])
    estimate = mean(taus, confidence)
    if not estimate.known:
        return estimate
    low, high = max(estimate.low, -1.0), min(estimate.high, 1.0)
    return Estimate(estimate.value, low, high, estimate.count)


def _student(
    centre: float, error: float, freedom: float, count: int, confidence: float
) -> Estimate:
    """centre +- t error, with t of Student's law of so many degrees of freedom."""
    from scipy import stats

    half = float(stats.t.ppf((1 + confidence) / 2, freedom) * error)
    return Estimate(centre, centre - half, centre + half, count)


def _kendall(x: Num[Array, "point"], y: Num[Array, "point"]) -> float:
    """tau-b; a constant has no trend."""
    from scipy import stats

    constant = np.ptp(x) == 0 or np.ptp(y) == 0
    return 0.0 if constant else float(stats.kendalltau(x, y).statistic)


_AVERAGES = {"mean": mean, "median": median, "geometric": geometric_mean}


def over_seeds(
    data: xr.DataArray, name: str | None = None, *, dim: str = "seed", kind: str = "mean"
) -> xr.Dataset:
    """`name`, `name_low`, `name_high`: an average with its 95 % interval along `dim`.

    kind: "mean", "median" or "geometric" (the geometric mean).
    The default name is that of the variable with the kind in front, such as mean_loss.
    """
    import xarray as xr

    check_choice("kind", kind, _AVERAGES)
    summarise = _AVERAGES[kind]

    def triple(values: np.ndarray) -> np.ndarray:
        estimate = summarise(values)
        return np.array([estimate.value, estimate.low, estimate.high])

    name = f"{kind}_{data.name}" if name is None else name
    parts = np.apply_along_axis(triple, -1, data.transpose(..., dim).values.astype(float))
    dims = [d for d in data.dims if d != dim]
    coords = {key: coord for key, coord in data.coords.items() if dim not in coord.dims}
    return xr.Dataset(
        {name + suffix: (dims, parts[..., i]) for i, suffix in enumerate(("", "_low", "_high"))},
        coords=coords,
    )


def power_law(
    data: xr.DataArray, x: str, name: str | None = None, *, dim: str = "seed"
) -> xr.Dataset:
    """The log-log fit of `data` against its dimension `x`, as variables to plot and to store.

    `name_slope` with `_low`, `_high` (over `_count` seeds), `name_line_slope` with `_low`, `_high`
    (least squares of the means) and `name_fit`, the fitted values at x. Other dimensions stay.
    """
    import xarray as xr

    name = str(data.name) if name is None else name
    at = data[x].values.astype(float)
    rest = [d for d in data.dims if d not in (dim, x)]
    values = data.transpose(*rest, dim, x).values.astype(float)
    outer = values.shape[: len(rest)]
    ends = ("", "_low", "_high")
    columns = [f"{name}_slope{end}" for end in ends] + [f"{name}_line_slope{end}" for end in ends]
    columns.append(f"{name}_slope_count")
    numbers = np.full((*outer, len(columns)), np.nan)
    fitted = np.full((*outer, at.size), np.nan)
    for index in np.ndindex(*outer):
        fit = loglog_slope(at, values[index])
        numbers[index] = [
            fit.slope.value, fit.slope.low, fit.slope.high,
            fit.line.value, fit.line.low, fit.line.high, fit.slope.count,
        ]  # fmt: skip
        fitted[index] = fit(at)
    variables: dict[str, Any] = {c: (rest, numbers[..., i]) for i, c in enumerate(columns)}
    variables[f"{name}_fit"] = ([*rest, x], fitted)
    coords = {key: coord for key, coord in data.coords.items() if dim not in coord.dims}
    return xr.Dataset(variables, coords=coords)


def fitted_slope(data: xr.Dataset, name: str) -> Estimate:
    """The slope over seeds that `power_law` stored for `name`."""
    value, low, high, count = (
        float(data[f"{name}_slope{end}"]) for end in ("", "_low", "_high", "_count")
    )
    return Estimate(value, low, high, int(count))


def _finite(values: Any) -> Num[Array, "seed"]:
    sample = check_numbers("values", values).ravel()
    return sample[np.isfinite(sample)]
