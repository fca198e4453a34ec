"""Beyond the figures of arda2026: what its theorems promise about steps, iterates and ProjSGD.

steps     loss against tau at fixed width                       [Theorem 1]
iterates  last against average against best iterate             [Theorem 1, (45) and (46)]
projsgd   ProjGD against ProjSGD at an equal number of steps    [Proposition 1]
"""

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
    draw_reference_slope,
    exponent,
    inside,
    log_log,
    monotone,
    over_seeds,
    paired_difference,
    power_law,
    register,
    separation,
    tick_at,
)
from ..measurements.problem import TEACHERS
from ..measurements.training import training
from .fig1 import training_config

if TYPE_CHECKING:
    import xarray as xr

PAPER = {"teacher": "paper", "step": "paper", "heads": "paired", "split": "all"}
AT_LEAST_HALF = (-math.inf, -0.35)
"""Slopes that count as "falls at least like tau^(-1/2)"."""

ITERATES = {
    "min_loss": "best iterate",
    "final_loss": "last iterate",
    "average_iterate_loss": "averaged iterate",
    "mean_loss": "mean over iterates",
}


def teacher_student_scales(
    smoke: dict[str, Any], quick: dict[str, Any], paper: dict[str, Any]
) -> dict[str, Any]:
    """The scales of a teacher-student figure."""
    return {
        "smoke": {"seeds": 3, "m": 8, "n": 100, "T": 16, "d": 8, "pool": 256, **smoke},
        "quick": {"seeds": 5, "m": 64, "n": 500, "T": 16, "d": 8, "pool": 2048, **quick},
        "paper": {"seeds": 10, "m": 64, "n": 5000, "T": 16, "d": 8, "pool": 8192, **paper},
    }


def with_defaults(options: Mapping[str, str]) -> dict[str, str]:
    return {**PAPER, **options}


def steps_trials(
    settings: Mapping[str, Any], seeds: Sequence[int], options: Mapping[str, str]
) -> list[Trial]:
    """One training run per number of steps: eta = 1/sqrt(tau) differs between them."""
    return [
        Trial(
            training,
            training_config(
                {**settings, "steps": tau}, settings["m"], seed, with_defaults(options)
            ),
            {"tau": tau, "seed": seed},
            f"tau={tau}",
        )
        for tau in settings["taus"]
        for seed in seeds
    ]


def by_seed(data: xr.Dataset, name: str, x: str) -> Any:
    return data[name].transpose("seed", x).values


def iterate_statistics(data: xr.Dataset) -> xr.Dataset:
    """Losses of all kinds of iterates against tau, with their power laws."""
    import xarray as xr

    parts = [over_seeds(data[name]) for name in ITERATES]
    return xr.merge([*parts, *(power_law(data[name], "tau") for name in ITERATES)])


def steps_verdicts(data: xr.Dataset) -> list[Finding]:
    """Theorem 1's optimisation term falls like tau^(-1/2); the width's terms are a floor."""
    tau = data["tau"].values
    found = []
    for name in ("min_loss", "mean_loss"):
        y = by_seed(data, name, "tau")
        title = {"min_loss": "smallest loss", "mean_loss": "mean loss over iterates"}[name]
        found.append(monotone(f"the {title} decreases with tau", tau, y, "decreasing"))
        claim = f"the {title} falls at least like tau^(-1/2)"
        found.append(exponent(claim, tau, y, AT_LEAST_HALF))
    return found


def iterates_verdicts(data: xr.Dataset) -> list[Finding]:
    """What (45) and (46) promise, and what they leave open about the last iterate."""
    tau = data["tau"].values
    at_end = {name: by_seed(data, name, "tau")[:, -1] for name in ITERATES}
    average = by_seed(data, "average_iterate_loss", "tau")
    best_to_last = paired_difference(np.log(at_end["min_loss"]), np.log(at_end["final_loss"]))
    return [
        exponent(
            "the averaged iterate falls at least like tau^(-1/2)", tau, average, AT_LEAST_HALF
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


def draw_losses(data: xr.Dataset, ax: Any, x: str, names: Mapping[str, str], x_label: str) -> None:
    for index, (name, label) in enumerate(names.items()):
        draw_interval(ax, data, f"mean_{name}", x, label=label, index=index)
        draw_power_law(ax, data, name, x, index=index)
    log_log(ax, x_label, "loss" if "min_loss" in names else "error")
    tick_at(ax, data[x].values)


def steps_plot(data: xr.Dataset, axes: Sequence[Any]) -> None:
    """Smallest and mean loss against tau."""
    (ax,) = axes
    first = float(data["mean_mean_loss"].values[0])
    draw_reference_slope(ax, data["tau"].values, first, -0.5, "predicted: slope -1/2")
    shown = {name: ITERATES[name] for name in ("min_loss", "mean_loss")}
    draw_losses(data, ax, "tau", shown, "steps tau")


def iterates_plot(data: xr.Dataset, axes: Sequence[Any]) -> None:
    """All kinds of iterates against tau."""
    (ax,) = axes
    draw_losses(data, ax, "tau", ITERATES, "steps tau")


_STEPS = teacher_student_scales(
    {"taus": [20, 40, 80]}, {"taus": [100, 400, 1600]}, {"taus": [250, 1000, 4000, 16000]}
)
CHOICES = {"teacher": tuple(TEACHERS)}

steps_figure = register(
    Figure(
        id="arda2026/steps",
        title="Loss against the number of steps tau at fixed width",
        reference="[arda2026, Theorem 1]",
        scales=_STEPS,
        trials=steps_trials,
        statistics=iterate_statistics,
        verdicts=steps_verdicts,
        plot=steps_plot,
        options=CHOICES,
    )
)

iterates_figure = register(
    Figure(
        id="arda2026/iterates",
        title="Last, averaged and best iterate against the number of steps tau",
        reference="[arda2026, Theorem 1, Eqs. (45) and (46)]",
        scales=_STEPS,
        trials=steps_trials,
        statistics=iterate_statistics,
        verdicts=iterates_verdicts,
        plot=iterates_plot,
        options=CHOICES,
    )
)


RULES = {"ProjGD": None, "ProjSGD": 1}


def projsgd_trials(
    settings: Mapping[str, Any], seeds: Sequence[int], options: Mapping[str, str]
) -> list[Trial]:
    """Both rules at equal tau and eta = 1/sqrt(tau); a ProjSGD step sees one sample."""
    return [
        Trial(
            training,
            training_config(
                {**settings, "steps": tau}, settings["m"], seed, with_defaults(options), batch
            ),
            {"rule": rule, "tau": tau, "seed": seed},
            f"{rule} tau={tau}",
        )
        for rule, batch in RULES.items()
        for tau in settings["taus"]
        for seed in seeds
    ]


def projsgd_statistics(data: xr.Dataset) -> xr.Dataset:
    """Mean loss over iterates and smallest loss, per rule."""
    import xarray as xr

    names = ("mean_loss", "min_loss", "average_iterate_loss")
    parts = [over_seeds(data[name]) for name in names]
    return xr.merge([*parts, *(power_law(data[name], "tau") for name in names)])


def projsgd_verdicts(data: xr.Dataset) -> list[Finding]:
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
    found.append(monotone(claim, tau, sgd, "decreasing"))
    claim = "ProjSGD costs loss: its mean over iterates exceeds that of ProjGD at the largest tau"
    gd = by_seed(by_rule["ProjGD"], "mean_loss", "tau")
    return [*found, difference(claim, sgd[:, -1], gd[:, -1])]


def projsgd_plot(data: xr.Dataset, axes: Sequence[Any]) -> None:
    """Mean loss over iterates, and the loss of the averaged iterate, of both rules."""
    for ax, name in zip(axes, ("mean_loss", "average_iterate_loss"), strict=True):
        for index, rule in enumerate(RULES):
            chosen = data.sel(rule=rule)
            draw_interval(ax, chosen, f"mean_{name}", "tau", label=rule, index=index)
            draw_power_law(ax, chosen, name, "tau", index=index)
        log_log(ax, "steps tau", f"loss, {ITERATES[name]}")
        tick_at(ax, data["tau"].values)


projsgd_figure = register(
    Figure(
        id="arda2026/projsgd",
        title="ProjGD against ProjSGD (one sample per step) at an equal number of steps",
        reference="[arda2026, Proposition 1]",
        scales=_STEPS,
        trials=projsgd_trials,
        statistics=projsgd_statistics,
        verdicts=projsgd_verdicts,
        plot=projsgd_plot,
        options=CHOICES,
        layout=(1, 2),
    )
)
