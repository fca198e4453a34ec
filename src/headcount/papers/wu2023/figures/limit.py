"""Beyond the figures of wu2023: distance of the tangent kernel from its limit [Lemma 1]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ....lab import (
    Figure,
    Finding,
    draw_interval,
    draw_power_law,
    fitted_exponent,
    log_log,
    over_seeds,
    power_law,
    register,
    threshold,
    tick_at,
)
from ..measurements.widths import LIMIT_ERRORS as ERRORS
from ..measurements.widths import limit_widths
from .curves import SCALINGS, by_seed
from .hessian import HALF, INITS, draw_schemes, width_trials

if TYPE_CHECKING:
    import xarray as xr

ONE = (-1.15, -0.85)
"""A slope whose whole interval lies here counts as -1."""
AWAY = 0.1
"""A relative error above this at the largest width counts as no convergence."""


def statistics(data: xr.Dataset) -> xr.Dataset:
    """Errors with intervals and fitted slopes."""
    import xarray as xr

    shown = [data[name] for name in ERRORS]
    return xr.merge([*map(over_seeds, shown), *(power_law(values, "d_m") for values in shown)])


def verdicts(data: xr.Dataset) -> list[Finding]:
    """Lemma 1 where it is stated, as printed and corrected; and outside its hypotheses."""
    proved = data.sel(init="ntk", scaling="ntk")
    found = [
        fitted_exponent(
            "ntk, tau0 = 1/d_m: distance to Lemma 1's kernel (entrywise product) like d_m^(-1/2)",
            proved,
            "limit_error",
            HALF,
        ),
        fitted_exponent(
            "ntk, tau0 = 1/d_m: the share of the W_Q and W_K blocks vanishes like 1/d_m",
            proved,
            "attention_share",
            ONE,
        ),
        threshold(
            "as printed: the kernel approaches the one with a matrix product (up to a factor)",
            by_seed(proved["printed_error"], "d_m")[:, -1],
            below=AWAY,
        ),
    ]
    for init in INITS:
        for scaling in SCALINGS:
            if (init, scaling) == ("ntk", "ntk"):
                continue
            tau0 = "1/d_m" if scaling == "ntk" else "d_m^(-1/2)"
            last = by_seed(data["shape_error"].sel(init=init, scaling=scaling), "d_m")[:, -1]
            claim = f"{init}, tau0 = {tau0}, not claimed: no limit of this shape (error above 0.1)"
            found.append(threshold(claim, last, above=AWAY))
    return found


def plot(data: xr.Dataset, axes: Sequence[Any]) -> None:
    """Errors up to a factor for all schemes; the readings of Lemma 1 where it is stated."""
    draw_schemes(axes[:2], data, "shape_error", "kernel's distance, up to a factor")
    proved = data.sel(init="ntk", scaling="ntk")
    labels = ("entrywise", "", "as printed", "share of $W_Q, W_K$")
    for index, (name, label) in enumerate(zip(ERRORS, labels, strict=True)):
        if label:
            draw_interval(axes[2], proved, f"mean_{name}", "d_m", label=f"_{label}", index=index)
            draw_power_law(axes[2], proved, name, "d_m", index=index, label=label)
    axes[2].set_title("NTK, $\\tau_0 = d_m^{-1}$")
    log_log(axes[2], "width $d_m$", "relative distance")
    tick_at(axes[2], data["d_m"].values)


_SMALL = {"n": 6, "T": 3, "d": 8, "tokens": "scaled"}
_SIZES = {"n": 20, "T": 5, "d": 20, "tokens": "scaled"}

figure = register(
    Figure(
        id="wu2023/limit",
        title="Distance of the tangent kernel from Lemma 1's limit against the width",
        reference="[wu2023, Lemma 1]",
        scales={
            "smoke": {"seeds": 3, "widths": [32, 128, 512], **_SMALL},
            "quick": {"seeds": 5, "widths": [32, 128, 512, 2048], **_SIZES},
            "paper": {"seeds": 10, "widths": [32, 128, 512, 2048, 8192, 32768], **_SIZES},
        },
        trials=width_trials(limit_widths),
        statistics=statistics,
        verdicts=verdicts,
        plot=plot,
        layout=(3, 1),
        notes="Tokens N(0, 1/d), sum pooling, float64. LeCun and He kernels grow with d_m, and "
        "their distance is taken after the best common factor.",
    )
)
