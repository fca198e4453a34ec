"""Beyond the figures of arda2026: how its errors depend on the sizes n and T.

samples   approximation error against n: logarithmic            [Lemma 5]
tokens    errors against T: no growth                           [Secs. 4 and 5]
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ....lab import Figure, Finding, Trial, exponent, over_seeds, power_law, register
from ..measurements.samples import samples
from ..measurements.training import training
from ..measurements.widths import approximation, linearisation
from .fig1 import approximation_config, linearisation_config, training_config
from .steps import (
    CHOICES,
    by_seed,
    draw_losses,
    teacher_student_scales,
    with_defaults,
)

if TYPE_CHECKING:
    import xarray as xr

NO_GROWTH = (-math.inf, 0.1)
"""Slopes in T that count as no growth."""
NO_POWER = (-0.05, 0.15)
"""sqrt(ln n) has local slope 1/(2 ln n): 0.13 at n = 50, 0.05 at n = 10^4."""


def samples_trials(
    settings: Mapping[str, Any], seeds: Sequence[int], options: Mapping[str, str]
) -> list[Trial]:
    """One trial per seed: the first n of its inputs are a sample of size n."""
    counts, chosen = {"counts": settings["counts"]}, with_defaults(options)
    return [
        Trial(
            samples,
            approximation_config(settings, settings["m"], seed, chosen) | counts,
            {"seed": seed},
        )
        for seed in seeds
    ]


def samples_statistics(data: xr.Dataset) -> xr.Dataset:
    """Mean error against n, with its power law."""
    error = data["approximation_sup"]
    return over_seeds(error).merge(power_law(error, "n"))


def samples_verdicts(data: xr.Dataset) -> list[Finding]:
    """Lemma 5: n enters through ln(2n/delta) alone."""
    n, error = data["n"].values, by_seed(data, "approximation_sup", "n")
    return [
        exponent("the approximation error has no power law in n", n, error, NO_POWER),
        exponent(
            "the approximation error grows no faster than ln n", np.log(n), error, (-math.inf, 1.0)
        ),
    ]


def samples_plot(data: xr.Dataset, axes: Sequence[Any]) -> None:
    """Error against n, beside sqrt(ln n)."""
    (ax,) = axes
    n = np.asarray(data["n"].values, dtype=float)
    curve = np.sqrt(np.log(n)) * float(data["mean_approximation_sup"].values[0])
    ax.plot(n, curve / math.sqrt(math.log(n[0])), color="0.45", linestyle=":", label="sqrt(ln n)")
    draw_losses(data, ax, "n", {"approximation_sup": "mean"}, "samples n")
    ax.set_ylabel("approximation error")


samples_figure = register(
    Figure(
        id="arda2026/samples",
        title="Approximation error against the number of samples n at fixed width: logarithmic",
        reference="[arda2026, Lemma 5]",
        scales=teacher_student_scales(
            {"n": 100, "counts": [25, 50, 100]},
            {"n": 3200, "counts": [50, 200, 800, 3200]},
            {"n": 12800, "counts": [50, 200, 800, 3200, 12800]},
        ),
        trials=samples_trials,
        statistics=samples_statistics,
        verdicts=samples_verdicts,
        plot=samples_plot,
        options=CHOICES,
    )
)

_TOKEN_ERRORS = {
    "linearisation_sup": "linearisation error",
    "adversarial_sup": "worst linearisation error per input",
    "approximation_sup": "approximation error",
}


def tokens_trials(
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


def tokens_statistics(data: xr.Dataset) -> xr.Dataset:
    """Errors and the relative loss against T, with power laws."""
    import xarray as xr

    relative = (data["min_loss"] / data["mean_square_label"]).rename("relative_min_loss")
    shown = [*(data[name] for name in _TOKEN_ERRORS), relative]
    return xr.merge([*map(over_seeds, shown), *(power_law(values, "T") for values in shown)])


def tokens_verdicts(data: xr.Dataset) -> list[Finding]:
    """No constant of the theory contains T."""
    T = data["T"].values
    found = [
        exponent(f"the {words} does not grow with T", T, by_seed(data, name, "T"), NO_GROWTH)
        for name, words in _TOKEN_ERRORS.items()
    ]
    relative = by_seed(data.assign(r=data["min_loss"] / data["mean_square_label"]), "r", "T")
    claim = "the smallest loss, relative to the labels' mean square, does not grow with T"
    return [*found, exponent(claim, T, relative, NO_GROWTH)]


def tokens_plot(data: xr.Dataset, axes: Sequence[Any]) -> None:
    """Errors, and the relative loss."""
    draw_losses(data, axes[0], "T", _TOKEN_ERRORS, "tokens T")
    draw_losses(data, axes[1], "T", {"relative_min_loss": "mean"}, "tokens T")
    axes[1].set_ylabel("smallest loss / mean $y^2$")


tokens_figure = register(
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
        trials=tokens_trials,
        statistics=tokens_statistics,
        verdicts=tokens_verdicts,
        plot=tokens_plot,
        options=CHOICES,
        layout=(1, 2),
    )
)
