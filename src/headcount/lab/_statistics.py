"""What figures plot: averages over seeds, and power laws fitted through them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Num

from ..core import Array, BadArgument, check_choice
from ..core._checks import check_numbers
from ._estimates import Estimate, geometric_mean, logarithm, mean, median, paired_difference

if TYPE_CHECKING:
    import xarray as xr

_FITTED = ("slope", "first_half_slope", "last_half_slope")


@dataclass(frozen=True)
class SlopeFit:
    """A straight line through logarithms: y = exp(intercept) x^slope.

    `halves` are the slopes of the first half of the points and of the last: a line that explains
    its points has them, too. Two points have no halves.
    """

    slope: Estimate
    intercept: float
    halves: tuple[Estimate, ...] = ()

    def __call__(self, x: Any) -> Any:
        """The fitted y at x."""
        return np.exp(self.intercept) * np.asarray(x, dtype=float) ** self.slope.value

    def describe(self) -> str:
        """For a legend: the slope with its interval."""
        s = self.slope
        interval = f" [{s.low:.2f}, {s.high:.2f}]" if s.known else ""
        return f"slope {s.value:.2f}{interval}"


def loglog_slope(x: Num[Array, "point"], y: Num[Array, "seed point"]) -> SlopeFit:
    """Least-squares slope of log y against log x, one per seed, averaged with its t interval.

    It is the slope of the geometric means over seeds. A seed without a positive number at some x
    has none.
    """
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
    order = np.argsort(x)
    logx, logs = np.log(x)[order], logarithm(y)[:, order]
    slope = _slope(logx, logs)
    rows = logs[np.isfinite(logs).all(axis=1)]
    intercept = float(np.sort(rows.mean(axis=1)).mean() - slope.value * logx.mean()) if len(
        rows
    ) else math.nan  # fmt: skip
    half = (x.size + 1) // 2
    parts = (slice(None, half), slice(-half, None)) if half > 1 else ()
    return SlopeFit(slope, intercept, tuple(_slope(logx[part], logs[:, part]) for part in parts))


def _slope(logx: Num[Array, "point"], logs: Num[Array, "seed point"]) -> Estimate:
    weights = (logx - logx.mean()) / ((logx - logx.mean()) ** 2).sum()
    died = np.isnan(logs).any(axis=1)
    slopes = np.where(died, np.nan, np.inf)
    whole = np.isfinite(logs).all(axis=1)
    slopes[whole] = logs[whole] @ weights
    return paired_difference(slopes, np.zeros(len(slopes)))


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
        if estimate.never:  # nothing is averaged with what is infinite
            return np.full(3, np.nan)
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

    `name_slope`, `name_first_half_slope`, `name_last_half_slope`, each with `_low`, `_high`,
    `_count`, `_died` and `_never`, and `name_fit`, the fitted values at x. Other dimensions stay.
    """
    import xarray as xr

    name = str(data.name) if name is None else name
    at = data[x].values.astype(float)
    rest = [d for d in data.dims if d not in (dim, x)]
    values = data.transpose(*rest, dim, x).values.astype(float)
    outer = values.shape[: len(rest)]
    names = _FITTED if at.size > 2 else _FITTED[:1]  # two points have no halves
    numbers = np.full((*outer, len(names), len(_PARTS)), np.nan)
    fitted = np.full((*outer, at.size), np.nan)
    for index in np.ndindex(*outer):
        fit = loglog_slope(at, values[index])
        for i, estimate in enumerate((fit.slope, *fit.halves)):
            numbers[(*index, i)] = [getattr(estimate, part) for part in _PARTS.values()]
        fitted[index] = fit(at)
    variables: dict[str, Any] = {
        f"{name}_{what}{end}": (rest, numbers[..., i, j])
        for i, what in enumerate(names)
        for j, end in enumerate(_PARTS)
    }
    variables[f"{name}_fit"] = ([*rest, x], fitted)
    coords = {key: coord for key, coord in data.coords.items() if dim not in coord.dims}
    return xr.Dataset(variables, coords=coords)


_PARTS = {"": "value", "_low": "low", "_high": "high", "_count": "count", "_died": "died",
          "_never": "never"}  # fmt: skip


def fitted_slope(data: xr.Dataset, name: str) -> Estimate:
    """The slope over seeds that `power_law` stored for `name`."""
    return stored_fit(data, name).slope


def stored_fit(data: xr.Dataset, name: str) -> SlopeFit:
    """The fit that `power_law` stored for `name`, without its intercept."""
    found = []
    for what in _FITTED:
        if f"{name}_{what}" in data:
            value, low, high, *counts = (float(data[f"{name}_{what}{end}"]) for end in _PARTS)
            count, died, never = map(int, counts)
            found.append(Estimate(value, low, high, count, died, never))
    return SlopeFit(found[0], math.nan, tuple(found[1:]))
