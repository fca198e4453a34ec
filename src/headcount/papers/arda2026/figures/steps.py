"""Beyond the figures of arda2026: loss against tau at fixed width [Theorem 1]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ....lab import OURS, Finding, draw_reference_slope, fitted_exponent, monotone, register
from .fixed_width import (
    AT_LEAST_HALF,
    ITERATES,
    by_seed,
    choices,
    draw_losses,
    figure_over_steps,
)
from .sentences import IN_TIME

if TYPE_CHECKING:
    import xarray as xr


def verdicts(data: xr.Dataset) -> list[Finding]:
    """Theorem 1's optimisation term falls like tau^(-1/2); the width's terms are a floor."""
    tau = data["tau"].values
    found = []
    for name in ("min_loss", "mean_loss"):
        y = by_seed(data, name, "tau")
        title = {"min_loss": "smallest loss", "mean_loss": "mean loss over iterates"}[name]
        claim = f"the {title} decreases with tau"
        found.append(monotone(claim, tau, y, "decreasing", scale="log"))
        claim = f"the {title} falls at least like tau^(-1/2)"
        source = IN_TIME if name == "min_loss" else OURS
        found.append(fitted_exponent(claim, data, name, AT_LEAST_HALF, source=source))
    return found


def plot(data: xr.Dataset, axes: Sequence[Any]) -> None:
    """Smallest and mean loss against tau."""
    (ax,) = axes
    first = float(data["mean_mean_loss"].values[0])
    draw_reference_slope(ax, data["tau"].values, first, -0.5, "predicted: slope -1/2")
    shown = {name: ITERATES[name] for name in ("min_loss", "mean_loss")}
    draw_losses(data, ax, "tau", shown, "steps tau")


figure = register(
    figure_over_steps(
        id="arda2026/steps",
        title="Loss against the number of steps tau at fixed width",
        reference="[arda2026, Theorem 1]",
        verdicts=verdicts,
        plot=plot,
        axes=choices("steps"),
    )
)
