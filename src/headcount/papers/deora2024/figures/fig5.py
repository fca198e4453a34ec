"""deora2024, Figure 5: DM2 with momentum and eta = O(sqrt H) (left), and with Adam (right)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ....lab import Figure, Finding, Source, Trial, open_choices, register, separation
from .curves import (
    NOTES,
    RANGE,
    draw_runs,
    head_trials,
    last,
    of_reading,
)
from .fig4 import SCALES, draw_dm2, optimiser_verdicts, statistics
from .training_run import dm2_run

if TYPE_CHECKING:
    import xarray as xr

FASTER = Source("overparameterization speeds up convergence in both scenarios", "Fig. 5, caption")
HELPS = Source(
    "Addition of momentum significantly helps speeding up convergence (see Figure 5, left) and so "
    "does optimizing with Adam",
    "App. G on Fig. 5",
)
OPTIMISERS = {"momentum": "momentum, step ~ sqrt H", "adam": "Adam, constant step"}


def trials(
    settings: Mapping[str, Any], seeds: Sequence[int], options: Mapping[str, str]
) -> list[Trial]:
    """Both optimisers for every H, and the plain descent of Fig. 4 to compare with."""
    return head_trials(dm2_run, of_reading(settings, options), seeds, [*OPTIMISERS, "gd"])


def verdicts(data: xr.Dataset) -> list[Finding]:
    """What the paper says of both, and that both are faster than plain descent."""
    found = [
        verdict
        for how, title in OPTIMISERS.items()
        for verdict in optimiser_verdicts(data, how, title, FASTER)
    ]
    plain = last(data, "train_loss", "gd")
    for how, title in OPTIMISERS.items():
        fast = last(data, "train_loss", how)
        for index in (0, -1):
            claim = f"{title}: a smaller training loss than GD, H = {data['H'].values[index]}"
            found.append(separation(claim, plain[:, index], fast[:, index], source=HELPS))
    return found


def plot(data: xr.Dataset, axes: Sequence[Any]) -> None:
    """Six panels per optimiser."""
    draw_runs(draw_dm2, data, axes, OPTIMISERS)


figure = register(
    Figure(
        id="deora2024/fig5",
        title="DM2, momentum and Adam: effect of the number of heads",
        reference="[deora2024, Fig. 5, App. G]",
        scales=SCALES,
        trials=trials,
        statistics=statistics,
        verdicts=verdicts,
        plot=plot,
        axes=open_choices("headcount.papers.deora2024:choices.toml", "fig5"),
        layout=(4, 3),
        notes=NOTES,
        bands=RANGE,
    )
)
