"""Beyond the figures of arda2026: ProjGD against ProjSGD at an equal number of steps [Prop. 1]."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ....lab import (
    Figure,
    Finding,
    Trial,
    difference,
    draw_interval,
    draw_power_law,
    inside,
    log_log,
    monotone,
    paired_difference,
    register,
    tick_at,
)
from .fixed_width import ITERATES, SCALES, by_seed, choices, iterate_statistics, steps_trial

if TYPE_CHECKING:
    import xarray as xr

RULES = {"ProjGD": None, "ProjSGD": 1}


def trials(
    settings: Mapping[str, Any], seeds: Sequence[int], options: Mapping[str, str]
) -> list[Trial]:
    """Both rules at equal tau and eta = 1/sqrt(tau); a ProjSGD step sees one sample."""
    return [
        steps_trial(settings, tau, seed, options, rule, batch)
        for rule, batch in RULES.items()
        for tau in settings["taus"]
        for seed in seeds
    ]


def statistics(data: xr.Dataset) -> xr.Dataset:
    """Mean loss over iterates and smallest loss, per rule."""
    return iterate_statistics(data, ("mean_loss", "min_loss", "average_iterate_loss"))


def verdicts(data: xr.Dataset) -> list[Finding]:
    """Proposition 1 gives ProjSGD, in expectation, the bound of ProjGD at the same tau."""
    tau, found = data["tau"].values, []
    by_rule = {rule: data.sel(rule=rule) for rule in RULES}
    for name in ("mean_loss", "average_iterate_loss"):
        gd, sgd = (by_seed(by_rule[rule], name, "tau") for rule in RULES)
        ratio = paired_difference(np.log(sgd[:, -1]), np.log(gd[:, -1]))
        claim = f"at the largest tau, {ITERATES[name]}: ProjSGD within a factor 1.5 of ProjGD"
        found.append(inside(claim, ratio, (-math.inf, math.log(1.5)), "log ratio"))
    sgd = by_seed(by_rule["ProjSGD"], "mean_loss", "tau")
    claim = "ProjSGD: the mean loss over iterates decreases with tau"
    found.append(monotone(claim, tau, sgd, "decreasing", scale="log"))
    claim = "ProjSGD costs loss: its mean over iterates exceeds that of ProjGD at the largest tau"
    gd = by_seed(by_rule["ProjGD"], "mean_loss", "tau")
    return [*found, difference(claim, sgd[:, -1], gd[:, -1])]


def plot(data: xr.Dataset, axes: Sequence[Any]) -> None:
    """Mean loss over iterates, and the loss of the averaged iterate, of both rules."""
    for ax, name in zip(axes, ("mean_loss", "average_iterate_loss"), strict=True):
        for index, rule in enumerate(RULES):
            chosen = data.sel(rule=rule)
            place = (index, len(RULES))
            draw_interval(ax, chosen, f"mean_{name}", "tau", label=rule, index=index, beside=place)
            draw_power_law(ax, chosen, name, "tau", index=index)
        log_log(ax, "steps tau", f"loss, {ITERATES[name]}")
        tick_at(ax, data["tau"].values)


figure = register(
    Figure(
        id="arda2026/projsgd",
        title="ProjGD against ProjSGD (one sample per step) at an equal number of steps",
        reference="[arda2026, Proposition 1]",
        scales=SCALES,
        trials=trials,
        statistics=statistics,
        verdicts=verdicts,
        plot=plot,
        axes=choices("projsgd"),
        layout=(1, 2),
    )
)
