"""Small things that the figures share: curves over epochs, names of scalings, flattened samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ....lab import COLOURS
from ....lab._drawing import EVERYWHERE, draw_band

if TYPE_CHECKING:
    import xarray as xr

SCALINGS = {"realistic": "$\\tau_0 = d_m^{-1/2}$", "ntk": "$\\tau_0 = d_m^{-1}$"}
STYLES = {"realistic": "-", "ntk": "--"}


def draw_curve(
    ax: Any,
    data: xr.Dataset,
    name: str,
    x: str,
    *,
    label: str,
    index: int,
    style: str = "-",
    within: tuple[float, float] = EVERYWHERE,
) -> Any:
    """`name` against `x` as a line, with its band (`name_low`, `name_high`) cut off at `within`."""
    at, centre = np.asarray(data[x].values, float), np.asarray(data[name].values, float)
    colour = COLOURS[index % len(COLOURS)]
    ax.plot(at, centre, color=colour, linestyle=style, label=label)
    if f"{name}_low" in data:
        low, high = (
            np.asarray(data[f"{name}_{end}"].values, float).clip(*within) for end in ("low", "high")
        )
        draw_band(ax, at, low, high, colour)
    return ax


def finish(ax: Any, x_label: str, y_label: str, *, log_y: bool = False) -> Any:
    """Labels, scale and a legend through which curves stay visible."""
    ax.set_xlabel(x_label)
    ax.set_ylabel(y_label)
    if log_y:
        ax.set_yscale("log")
    if ax.get_legend_handles_labels()[0]:
        ax.legend(framealpha=0.6, edgecolor="none")
    return ax


def with_stability(words: str, one: xr.Dataset) -> str:
    """A label with gamma c lambda_max(K_0): gradient descent is stable where it is below 2."""
    return f"{words}, $\\gamma c \\lambda_{{\\max}}$ = {float(one['mean_stability']):.2g}"


def by_seed(data: xr.DataArray, *rest: str) -> Any:
    """The numbers with the seeds first, then the given dimensions."""
    return data.transpose("seed", *rest).values


def numbers(data: xr.Dataset, name: str) -> Any:
    """A coordinate as floating point numbers, as fits and trends take them."""
    return data[name].values.astype(float)
