"""What the figures against the number of steps tau share: runs, losses of iterates, statistics."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ....lab import Trial, over_seeds, power_law
from ..measurements.training import training
from .fig1 import training_config
from .fixed_width import teacher_student_scales, with_defaults

if TYPE_CHECKING:
    import xarray as xr

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
