"""Beyond the figures of arda2026: last, averaged and best iterate [Theorem 1, (45) and (46)]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ....lab import (
    Finding,
    fitted_exponent,
    inside,
    paired_difference,
    register,
    separation,
)
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
    """What (45) and (46) promise, and what they leave open about the last iterate."""
    at_end = {name: by_seed(data, name, "tau")[:, -1] for name in ITERATES}
    best_to_last = paired_difference(np.log(at_end["min_loss"]), np.log(at_end["final_loss"]))
    return [
        fitted_exponent(
            "the averaged iterate falls at least like tau^(-1/2)",
            data,
            "average_iterate_loss",
            AT_LEAST_HALF,
            source=IN_TIME,
        ),
        separation(
            "the averaged iterate is no worse than the mean over iterates, as for a convex loss",
            at_end["mean_loss"],
            at_end["average_iterate_loss"],
        ),
        separation(
            "the last iterate is better than the averaged one",
            at_end["average_iterate_loss"],
            at_end["final_loss"],
        ),
        inside(
            "the best iterate is the last one, up to 1 % of the loss",
            best_to_last,
            (-0.01, 0.01),
            "log ratio",
        ),
    ]


def plot(data: xr.Dataset, axes: Sequence[Any]) -> None:
    """All kinds of iterates against tau."""
    (ax,) = axes
    draw_losses(data, ax, "tau", ITERATES, "steps tau")


figure = register(
    figure_over_steps(
        id="arda2026/iterates",
        title="Last, averaged and best iterate against the number of steps tau",
        reference="[arda2026, Theorem 1, Eqs. (45) and (46)]",
        verdicts=verdicts,
        plot=plot,
        axes=choices("iterates"),
    )
)
