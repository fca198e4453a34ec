"""deora2024, Figure 2: gradient descent with a constant step on DM1, by the number of heads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ....lab import OURS, Finding, Source, inside, mean, monotone, threshold
from .curves import (
    DM1_DEFAULTS,
    by_heads,
    draw_curves,
    last,
    over_heads,
    points,
    reference_line,
    register_curves,
    scales,
)
from .training_run import LEVEL, dm1_run

if TYPE_CHECKING:
    import xarray as xr

PANELS = {
    "train_loss": "training loss",
    "test_loss": "test loss",
    "norm_W": "average |W|",
    "norm_U": "average |U|",
    "attention": "attention on relevant tokens",
    "margin": "margin / |U~|",
}
SLOWER = Source("rate of train loss decay reduces as we increase H", "App. G on Fig. 2")
REACHES = Source("at least for smaller H, GD indeed achieves margin", "App. G on Fig. 2")
RUNS = {"gd-constant": "GD, constant step"}
ONE_OVER_K = (-1.15, -0.85)
"""A slope whose whole interval lies here counts as O(1/k)."""
REACHED = 0.95
"""Share of gamma_attn from which on a margin counts as reaching it."""
GAMMA_ATTN = DM1_DEFAULTS["S"] * math.sqrt(DM1_DEFAULTS["T"] / 2)
"""S sqrt(T/2), the limit of gamma_attn(eps) as eps -> 0 [deora2024, (11)]."""


def verdicts(data: xr.Dataset) -> list[Finding]:
    """What the text and the caption say, and how far the attention score follows H."""
    H, how = points(data, "H"), "gd-constant"
    margin = last(data, "margin", how)
    found = [
        monotone(
            f"more heads are slower: iterations to a training loss of {LEVEL} grow with H",
            H,
            over_heads(data, "iterations_to_level", how),
            "increasing",
            source=SLOWER,
        )
    ]
    for name, source in (("train_loss", SLOWER), ("test_loss", OURS)):
        claim = f"the {PANELS[name]} after the last iteration grows with H"
        end = last(data, name, how)
        found.append(monotone(claim, H, end, "increasing", scale="log", source=source))
    found += [
        threshold(
            f"a single head reaches gamma_attn: {REACHED:.0%} of it after the last iteration",
            margin[:, 0],
            above=REACHED * GAMMA_ATTN,
            source=REACHES,
        ),
        monotone("the margin falls with H", H, margin, "decreasing"),
        monotone(
            "the attention on relevant tokens falls with H",
            H,
            last(data, "attention", how),
            "decreasing",
        ),
    ]
    slopes = over_heads(data, "late_slope", how)
    for index, which in ((0, "one head"), (-1, "the most heads")):
        claim = f"the training loss falls like 1/k in the last tenth to whole, {which}"
        found.append(inside(claim, mean(slopes[:, index]), ONE_OVER_K, "slope"))
    return found


def draw_dm1(data: xr.Dataset, axes: Sequence[Any], run: str, title: str) -> None:
    """The six panels of one kind of run on DM1."""
    for ax, (name, label) in zip(axes, PANELS.items(), strict=True):
        draw_curves(ax, data, name, run, log=name.endswith("loss"))
        ax.set_ylabel(label)
        ax.set_title(title)
    reference_line(axes[4], DM1_DEFAULTS["zeta"], "zeta: uniform attention", below=True)
    axes[4].set_ylim(0, 1.02)
    reference_line(axes[5], GAMMA_ATTN, "gamma_attn", below=True)
    axes[5].set_ylim(0, 1.05 * GAMMA_ATTN)


COMMON: dict[str, Any] = {
    "data": "dm1",
    "data_options": DM1_DEFAULTS,
    "step_constant": 1.0,
    "adam_step": 0.06,
    "n": 100,
    "n_test": 300,
}
SCALES = scales(
    COMMON,
    {"steps": 40, "record_every": 5},
    {"steps": 500, "record_every": 10},
    {"steps": 1500, "record_every": 10},
)

figure = register_curves(
    "fig2",
    "DM1, gradient descent with a constant step: effect of the number of heads",
    "[deora2024, Fig. 2, App. G]",
    scales=SCALES,
    trials=by_heads(dm1_run, list(RUNS)),
    verdicts=verdicts,
    panels=tuple(PANELS),
    draw=draw_dm1,
    runs=RUNS,
)
