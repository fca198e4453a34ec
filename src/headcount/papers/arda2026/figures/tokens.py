"""Beyond the figures of arda2026: errors against T, no growth [Secs. 4 and 5]."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ....lab import OURS, Figure, Finding, Trial, fitted_exponent, over_seeds, power_law, register
from .errors_at_start import approximation, linearisation
from .fig1 import approximation_config, linearisation_config, training_config
from .fixed_width import choices, draw_losses, teacher_student_scales, with_defaults
from .sentences import APPROXIMATION_IN_TOKENS, IN_TOKENS
from .training import training

if TYPE_CHECKING:
    import xarray as xr

NO_GROWTH = (-math.inf, 0.1)
"""Slopes in T that count as no growth."""
_SOURCES = {"linearisation_sup": IN_TOKENS, "approximation_sup": APPROXIMATION_IN_TOKENS}
_TOKEN_ERRORS = {
    "linearisation_sup": "linearisation error",
    "adversarial_sup": "worst linearisation error per input",
    "approximation_sup": "approximation error",
}


def trials(
    settings: Mapping[str, Any], seeds: Sequence[int], options: Mapping[str, str]
) -> list[Trial]:
    """Three kinds of trials per number of tokens."""
    m, chosen, result = settings["m"], with_defaults(options), []
    for T in settings["tokens"]:
        sizes = {**settings, "T": T}
        for seed in seeds:
            place, group = {"T": T, "seed": seed}, f"T={T}"
            own = training_config(sizes, m, seed, chosen)
            result += [
                Trial(linearisation, linearisation_config(sizes, m, seed), place, group),
                Trial(approximation, approximation_config(sizes, m, seed, chosen), place, group),
                Trial(training, own, place, group),
            ]
    return result


def statistics(data: xr.Dataset) -> xr.Dataset:
    """Errors and the relative loss against T, with power laws."""
    import xarray as xr

    relative = (data["min_loss"] / data["mean_square_label"]).rename("relative_min_loss")
    shown = [*(data[name] for name in _TOKEN_ERRORS), relative]
    return xr.merge([*map(over_seeds, shown), *(power_law(values, "T") for values in shown)])


def verdicts(data: xr.Dataset) -> list[Finding]:
    """No constant of the theory contains T."""
    found = [
        fitted_exponent(
            f"the {words} does not grow with T",
            data,
            name,
            NO_GROWTH,
            source=_SOURCES.get(name, OURS),
        )
        for name, words in _TOKEN_ERRORS.items()
    ]
    claim = "the smallest loss, relative to the labels' mean square, does not grow with T"
    last = fitted_exponent(claim, data, "relative_min_loss", NO_GROWTH, source=IN_TOKENS)
    return [*found, last]


def plot(data: xr.Dataset, axes: Sequence[Any]) -> None:
    """Errors, and the relative loss."""
    draw_losses(data, axes[0], "T", _TOKEN_ERRORS, "tokens T")
    draw_losses(data, axes[1], "T", {"relative_min_loss": "mean"}, "tokens T")
    axes[1].set_ylabel("smallest loss / mean $y^2$")


figure = register(
    Figure(
        id="arda2026/tokens",
        title="Errors against the number of tokens T: no growth",
        reference="[arda2026, Sec. 4]",
        scales={
            scale: {name: value for name, value in settings.items() if name != "T"}
            for scale, settings in teacher_student_scales(
                {"tokens": [4, 16], "steps": 40},
                {"tokens": [4, 16, 64], "steps": 400},
                {"tokens": [4, 16, 64, 256], "n": 2000, "steps": 1000},
            ).items()
        },
        trials=trials,
        statistics=statistics,
        verdicts=verdicts,
        plot=plot,
        axes=choices("tokens"),
        layout=(1, 2),
    )
)
