"""Drawing helpers for figures: each takes and returns an axes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ._statistics import SlopeFit, fitted_slope

if TYPE_CHECKING:
    import xarray as xr

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's palette: told apart with every common kind of colour blindness."""

MARKERS = ("o", "s", "^", "D", "v", "P", "X")
"""Of curves, in the order of `COLOURS`."""

EVERYWHERE = (-math.inf, math.inf)
"""Any number is a value."""
NOT_NEGATIVE = (0.0, math.inf)
"""Where norms, errors and counts have values: bands are cut off there."""


def draw_interval(
    ax: Any,
    data: xr.Dataset,
    name: str,
    x: str,
    *,
    label: str = "",
    index: int = 0,
    beside: tuple[int, int] | None = None,
    within: tuple[float, float] = EVERYWHERE,
) -> Any:
    """`name` against the dimension `x`, with the band from `name_low` to `name_high`.

    `index` picks colour and marker. Points without a number are left out. Where several bands
    would lie on each other, `beside=(i, k)` draws the i-th of k as bars, side by side (log x).
    The band is cut off at `within`, outside of which the quantity has no values.
    """
    centre = np.asarray(data[name].transpose(x).values, dtype=float)
    at = np.asarray(data[x].values, dtype=float)
    if beside is not None:
        at = at * 1.05 ** (beside[0] - (beside[1] - 1) / 2)
    colour = COLOURS[index % len(COLOURS)]
    ax.plot(at, centre, color=colour, marker=MARKERS[index % len(MARKERS)], label=label or name)
    if f"{name}_low" in data and f"{name}_high" in data:
        low, high = (
            np.asarray(data[f"{name}_{end}"].values, dtype=float).clip(*within)
            for end in ("low", "high")
        )
        if beside is None:
            draw_band(ax, at, low, high, colour)
        else:
            ax.vlines(at, low, high, color=colour, linewidth=1.0)
    return ax


def draw_band(ax: Any, at: Any, low: Any, high: Any, colour: str) -> Any:
    """A faint band whose ends are marked by lines: several on each other can be told apart."""
    from matplotlib.collections import LineCollection

    ax.fill_between(at, low, high, color=colour, alpha=0.12, linewidth=0)
    ends = [np.column_stack([at, end])[np.isfinite(end)] for end in (low, high)]
    ax.add_collection(LineCollection(ends, colors=colour, linewidths=0.5, alpha=0.6), autolim=False)
    return ax


def draw_power_law(
    ax: Any, data: xr.Dataset, name: str, x: str, *, index: int = 0, label: str = ""
) -> Any:
    """What `power_law` stored for `name`: dashed fit, slope and interval in the legend.

    A `label` makes it the entry for the points as well: their marker stands in it.
    """
    estimate = fitted_slope(data, name)
    text = SlopeFit(estimate, math.nan).describe()
    (line,) = ax.plot(data[x].values, data[f"{name}_fit"].values, linestyle="--", label=text)
    line.set_color(COLOURS[index % len(COLOURS)])
    if label:
        line.set(label=f"{label}, {text}", marker=MARKERS[index % len(MARKERS)], markevery=[])
    return ax


def draw_reference_slope(ax: Any, x: Any, y_at_first: float, slope: float, label: str) -> Any:
    """A predicted power law through (x[0], y_at_first), as a grey dotted line."""
    at = np.asarray(x, dtype=float)
    ax.plot(at, y_at_first * (at / at[0]) ** slope, color="0.45", linestyle=":", label=label)
    return ax


def log_log(ax: Any, x_label: str, y_label: str) -> Any:
    """Both axes logarithmic, labelled, with a legend."""
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel(x_label)
    ax.set_ylabel(y_label)
    # Curves stay visible behind the words.
    ax.legend(framealpha=0.6, edgecolor="none")
    return ax


def tick_at(ax: Any, values: Any) -> Any:
    """Label a logarithmic x axis at the measured values and nowhere else."""
    shown = [float(value) for value in values]
    ax.set_xticks(shown, [f"{value:g}" for value in shown])
    ax.set_xticks([], minor=True)
    return ax
