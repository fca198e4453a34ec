"""deora2024, Figure 3: DM1 with eta = O(sqrt H) (left) and with Adam (right)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ....lab import OURS, Finding, Source, difference, monotone, threshold
from .curves import by_heads, last, points, register_curves
from .fig2 import GAMMA_ATTN, PANELS, REACHED, SCALES, draw_dm1
from .training_run import dm1_run

if TYPE_CHECKING:
    import xarray as xr

FASTER = Source(
    "in both these cases, the convergence speeds up for larger H, especially when optimizing with "
    "Adam",
    "App. G on Fig. 3",
)
BOTH_LOSSES = Source(
    "overparameterization speeds-up with train and test loss convergence in both the scenarios",
    "Fig. 3, caption",
)
FALLS_AWAY = Source(
    "the margin attained by GD for larger H continues to fall away from", "App. G on Fig. 3"
)
OPTIMISERS = {"gd": "GD, step ~ sqrt H", "adam": "Adam, constant step"}


def speed_up(data: xr.Dataset, optimiser: str) -> Any:
    """log(training loss of the smallest H / that of the largest) at the end, per seed."""
    logs = np.log(last(data, "train_loss", optimiser))
    return logs[:, 0] - logs[:, -1]


def verdicts(data: xr.Dataset) -> list[Finding]:
    """Faster with H for both, most with Adam; the margin for large H stays below gamma_attn."""
    H = points(data, "H")
    found = []
    for how, title in OPTIMISERS.items():
        for name in ("train_loss", "test_loss"):
            claim = f"{title}: more heads are faster, the {PANELS[name]} at the end falls with H"
            end = last(data, name, how)
            found.append(monotone(claim, H, end, "decreasing", scale="log", source=BOTH_LOSSES))
    found.append(
        difference(
            "more heads speed up Adam most: its log loss ratio exceeds that of GD",
            speed_up(data, "adam"),
            speed_up(data, "gd"),
            source=FASTER,
        )
    )
    for how, title in OPTIMISERS.items():
        margin = last(data, "margin", how)
        source = FALLS_AWAY if how == "gd" else OURS
        below = f"{title}: the margin of the most heads stays below {REACHED:.0%} of gamma_attn"
        found += [
            threshold(below, margin[:, -1], below=REACHED * GAMMA_ATTN, source=source),
            monotone(f"{title}: the margin falls with H", H, margin, "decreasing", source=source),
        ]
    return found


figure = register_curves(
    "fig3",
    "DM1, step proportional to sqrt(H), and Adam: effect of the number of heads",
    "[deora2024, Fig. 3, App. G]",
    scales=SCALES,
    trials=by_heads(dm1_run, list(OPTIMISERS)),
    verdicts=verdicts,
    panels=tuple(PANELS),
    draw=draw_dm1,
    runs=OPTIMISERS,
)
