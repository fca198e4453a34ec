"""deora2024, Figure 5: DM2 with momentum and eta = O(sqrt H) (left), and with Adam (right)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....lab import Finding, Source, separation
from .curves import by_heads, last, register_curves
from .fig4 import QUANTITIES, SCALES, draw_dm2, optimiser_verdicts
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
        for index, which in ((0, "one head"), (-1, "the most heads")):
            claim = f"{title}: a smaller training loss than GD, {which}"
            found.append(separation(claim, plain[:, index], fast[:, index], source=HELPS))
    return found


figure = register_curves(
    "fig5",
    "DM2, momentum and Adam: effect of the number of heads",
    "[deora2024, Fig. 5, App. G]",
    scales=SCALES,
    trials=by_heads(dm2_run, [*OPTIMISERS, "gd"]),
    verdicts=verdicts,
    panels=QUANTITIES,
    draw=draw_dm2,
    runs=OPTIMISERS,
)
