"""deora2024, Figure 4: the planted data DM2, gradient descent with eta = O(sqrt H)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ....lab import OURS, Finding, Source, monotone
from ....lab._readings import chosen_options
from .curves import (
    DM2_DEFAULTS,
    by_heads,
    draw_curves,
    last,
    of_reading,
    points,
    reached,
    reference_line,
    register_curves,
    scales,
)
from .training_run import dm2_run

if TYPE_CHECKING:
    import xarray as xr

PANELS = {
    "train_loss": "training loss",
    "test_loss": "test loss",
    "norm_W": "average |W|",
    "norm_U": "average |U|",
    "margin": "margin / |U~|",
    "alignment_W": "alignment with W*, U* (dashed)",
}
IMPROVES = Source(
    "overparameterization somewhat improves convergence speeds for GD", "App. G on Fig. 4"
)
ALL_REACH = Source("all the models reach the expected margin", "App. G on Figs. 4 and 5")
ALL_FIND = Source("all the optimizers find the planted model", "App. G on Figs. 4 and 5")
RUNS = {"gd": "GD, step ~ sqrt H"}
QUANTITIES = (*PANELS, "alignment_U")
FOUND = 0.99
"""Cosine from which on a planted matrix counts as found."""
REACHED = 0.95
"""Share of the planted margin from which on it counts as reached."""


def optimiser_verdicts(
    data: xr.Dataset, optimiser: str, title: str, faster: Source
) -> list[Finding]:
    """Faster with H; the planted margin and the planted head are reached for every H.

    The paper shows averages of trials: they decide, unless the reading asks it of every run.
    """
    H = points(data, "H")
    found = []
    for name, source in (("train_loss", faster), ("test_loss", OURS)):
        claim = f"{title}: more heads are faster, the {PANELS[name]} at the end falls with H"
        end = last(data, name, optimiser)
        found.append(monotone(claim, H, end, "decreasing", scale="log", source=source))
    aligned = {name: last(data, name, optimiser) for name in ("alignment_W", "alignment_U")}
    every_H = np.all(aligned["alignment_W"] >= FOUND, axis=1)
    losses = np.where(every_H[:, None], last(data, "train_loss", optimiser), np.nan)
    among = "trials where every H finds W*"
    claim = f"{title}: the training loss falls with H in the {among}"
    found.append(monotone(claim, H, losses, "decreasing", scale="log", among=among))
    claim = f"{title}: every H reaches {REACHED:.0%} of the planted margin"
    share = last(data, "margin", optimiser) / planted_margins(data)[:, None]
    found.append(reached(data, claim, share, REACHED, source=ALL_REACH))
    for name, target in (("alignment_W", "W*"), ("alignment_U", "U*")):
        claim = f"{title}: every H finds {target}, with a cosine of {FOUND} or more"
        found.append(reached(data, claim, aligned[name], FOUND, source=ALL_FIND))
    return found


def planted_margins(data: xr.Dataset) -> Any:
    """What each trial's planted head is sure of, in parts of |U*|."""
    from ..dm2 import DM2

    law = DM2(**of_reading(SCALES["paper"], chosen_options(data))["data_options"])
    lengths = [np.linalg.norm(law.planted(int(seed)).U) for seed in data["seed"].values]
    return law.margin / np.asarray(lengths)


def verdicts(data: xr.Dataset) -> list[Finding]:
    """What the paper says of GD on DM2."""
    return optimiser_verdicts(data, "gd", RUNS["gd"], IMPROVES)


def draw_dm2(data: xr.Dataset, axes: Sequence[Any], run: str, title: str) -> None:
    """The six panels of one kind of run on DM2."""
    for ax, (name, label) in zip(axes, PANELS.items(), strict=True):
        draw_curves(ax, data, name, run, log=name.endswith("loss"))
        ax.set_ylabel(label)
        ax.set_title(title)
    reference_line(axes[4], DM2_DEFAULTS["margin"], "planted margin", below=True)
    draw_curves(axes[5], data, "alignment_U", run, style="--")
    axes[5].set_ylim(None, 1.02)


COMMON: dict[str, Any] = {
    "data": "dm2",
    "data_options": DM2_DEFAULTS,
    "step_constant": 1.0,
    "adam_step": 0.06,
}
SCALES = scales(
    COMMON,
    {"n": 100, "n_test": 100, "steps": 20, "record_every": 5},
    {"n": 1000, "n_test": 3000, "steps": 300, "record_every": 10},
    {"n": 1000, "n_test": 3000, "steps": 1000, "record_every": 10},
)

figure = register_curves(
    "fig4",
    "DM2, step proportional to sqrt(H): effect of the number of heads",
    "[deora2024, Fig. 4, App. G]",
    scales=SCALES,
    trials=by_heads(dm2_run, list(RUNS)),
    verdicts=verdicts,
    panels=QUANTITIES,
    draw=draw_dm2,
    runs=RUNS,
)
