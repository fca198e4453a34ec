"""What the figures at a fixed width share: the problem, its scales, runs, losses against a size."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ....lab import (
    Figure,
    Trial,
    draw_interval,
    draw_power_law,
    log_log,
    open_choices,
    over_seeds,
    power_law,
    tick_at,
)
from ....lab._readings import Axis
from .fig1 import training_config
from .training import training

if TYPE_CHECKING:
    import xarray as xr

PAPER = {"teacher": "paper", "step": "paper", "heads": "paired", "split": "all"}


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


def by_seed(data: xr.Dataset, name: str, x: str) -> Any:
    return data[name].transpose("seed", x).values


def draw_losses(data: xr.Dataset, ax: Any, x: str, names: Mapping[str, str], x_label: str) -> None:
    for index, (name, label) in enumerate(names.items()):
        place = (index, len(names)) if len(names) > 1 else None  # bands would hide each other
        draw_interval(ax, data, f"mean_{name}", x, label=label, index=index, beside=place)
        draw_power_law(ax, data, name, x, index=index)
    log_log(ax, x_label, "loss" if "min_loss" in names else "error")
    tick_at(ax, data[x].values)


AT_LEAST_HALF = (-math.inf, -0.35)
"""Slopes that count as "falls at least like tau^(-1/2)"."""

ITERATES = {
    "min_loss": "best iterate",
    "final_loss": "last iterate",
    "average_iterate_loss": "averaged iterate",
    "mean_loss": "mean over iterates",
}


SCALES = teacher_student_scales(
    {"taus": [20, 40, 80]}, {"taus": [100, 400, 1600]}, {"taus": [250, 1000, 4000, 16000]}
)


def steps_trials(
    settings: Mapping[str, Any], seeds: Sequence[int], options: Mapping[str, str]
) -> list[Trial]:
    """One training run per number of steps: eta = 1/sqrt(tau) differs between them."""
    return [steps_trial(settings, tau, seed, options) for tau in settings["taus"] for seed in seeds]


def steps_trial(
    settings: Mapping[str, Any],
    tau: int,
    seed: int,
    options: Mapping[str, str],
    rule: str | None = None,
    batch: int | None = None,
) -> Trial:
    """A run of tau steps; with `rule` it is one of several, which see `batch` samples a step."""
    sizes = {**settings, "steps": tau}
    config = training_config(sizes, settings["m"], seed, with_defaults(options), batch)
    place = {"tau": tau, "seed": seed}
    if rule is None:
        return Trial(training, config, place, f"tau={tau}")
    return Trial(training, config, {"rule": rule, **place}, f"{rule} tau={tau}")


def iterate_statistics(data: xr.Dataset, names: Sequence[str] = tuple(ITERATES)) -> xr.Dataset:
    """Losses of these kinds of iterates against tau, with their power laws."""
    import xarray as xr

    parts = [over_seeds(data[name]) for name in names]
    return xr.merge([*parts, *(power_law(data[name], "tau") for name in names)])


figure_over_steps = partial(
    Figure, scales=SCALES, trials=steps_trials, statistics=iterate_statistics
)
"""A figure of losses against tau."""


def choices(figure: str) -> dict[str, Axis]:
    """What the text leaves open of a figure."""
    return open_choices("headcount.papers.arda2026:choices.toml", figure)
