"""Beyond deora2024: Fig. 2 with heads that start differently, so that their number can matter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ....lab import Finding, Trial, difference, monotone, threshold
from .curves import last, over_heads, points, register_curves, scales
from .fig2 import COMMON, PANELS, draw_dm1
from .training_run import LEVEL, dm1_run, run_config

if TYPE_CHECKING:
    import xarray as xr

STARTS = {
    "zero": ("zero start: equal heads", {"model": "deora2024-groups", "init": "zero"}),
    "two-phase": ("two-phase start: 2 classes", {"model": "deora2024-groups", "init": "two-phase"}),
    "gaussian": ("Gaussian start", {"model": "deora2024", "init": "gaussian"}),
}
ORDER_ONE = (0.1, 3.0)
"""Root mean square outputs that count as of order one."""


def trials(
    settings: Mapping[str, Any], seeds: Sequence[int], options: Mapping[str, str]
) -> list[Trial]:
    """GD with eta = 1 for every start and H."""
    result = []
    for start, (_, values) in STARTS.items():
        for H in settings["heads"]:
            for seed in seeds:
                config = run_config(
                    settings,
                    width=H,
                    seeds=[seed],
                    optimiser="gd",
                    eta=settings["step_constant"],
                    data=settings["data"],
                    data_options=settings["data_options"],
                    init_options=settings["init_options"].get(start, {}),
                    **values,
                )
                place = {"run": start, "H": H, "seed": seed}
                result.append(Trial(dm1_run, config, place, f"{start} H={H}"))
    return result


def slow_down(data: xr.Dataset, start: str) -> Any:
    """log(training loss of the most heads / that of one) at the end, per seed."""
    logs = np.log(last(data, "train_loss", start))
    return logs[:, -1] - logs[:, 0]


def verdicts(data: xr.Dataset) -> list[Finding]:
    """The claims on Fig. 2 for every start, and how much of the effect is left."""
    H = points(data, "H")
    found = []
    for start, (title, _) in STARTS.items():
        claim = f"{title}: more heads are slower to a training loss of {LEVEL}"
        reached = over_heads(data, "iterations_to_level", start)
        found.append(monotone(claim, H, reached, "increasing"))
        claim = f"{title}: the margin falls with H"
        found.append(monotone(claim, H, last(data, "margin", start), "decreasing"))
    for start in ("two-phase", "gaussian"):
        claim = f"{STARTS[start][0]}: H slows training down less than from zero (log loss ratio)"
        found.append(difference(claim, slow_down(data, "zero"), slow_down(data, start)))
    size = over_heads(data, "start_output", "gaussian")
    for index in (0, len(H) - 1):
        claim = f"the Gaussian start keeps Phi~ of order one, H = {H[index]:g}"
        found.append(threshold(claim, size[:, index], above=ORDER_ONE[0], below=ORDER_ONE[1]))
    return found


figure = register_curves(
    "random-start",
    "DM1, gradient descent from zero, from the two-phase and from a Gaussian start",
    "[deora2024, Fig. 2 and Sec. 5.1; not in the paper]",
    scales=scales(
        {
            **COMMON,
            "init_options": {"two-phase": {"n_init": 100}, "gaussian": {"scale": 1.0}},
            "record_every": 10,
        },
        {"heads": [1, 4], "steps": 60},
        {"heads": [1, 4, 16], "steps": 500},
        {"heads": [1, 4, 16, 64], "steps": 1500},
    ),
    trials=trials,
    verdicts=verdicts,
    panels=tuple(PANELS),
    draw=draw_dm1,
    runs={start: title for start, (title, _) in STARTS.items()},
)
