"""Beyond the figures of arda2026: approximation error against n, logarithmic [Lemma 5]."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ....lab import (
    Context,
    Figure,
    Finding,
    Measurement,
    Trial,
    exponent,
    fitted_exponent,
    over_seeds,
    power_law,
    register,
)
from .errors_at_start import linear_change
from .fig1 import approximation_config
from .fixed_width import by_seed, choices, draw_losses, teacher_student_scales, with_defaults
from .problem import label_seconds, sample_numbers, student, transport_shift
from .sentences import IN_SAMPLES

if TYPE_CHECKING:
    import xarray as xr

NO_POWER = (-math.inf, 0.15)
"""sqrt(ln n) has local slope 1/(2 ln n): 0.13 at n = 50, 0.05 at n = 10^4."""


def measure_samples(config: dict[str, Any], context: Context) -> dict[str, Any]:
    """max over j <= n of |f_lin(X_j; phi~) - y_j| for every n of `counts` [arda2026, Lemma 5]."""
    counts = np.asarray(config["counts"])
    own = student({name: value for name, value in config.items() if name != "counts"})
    context.progress(1, 2)
    line = linear_change(own.model, own.initial, transport_shift(config, own), own.x)
    largest = np.maximum.accumulate(np.abs(line - own.y))
    return {"approximation_sup": largest[counts - 1], "n": counts}


def _cost(config: dict[str, Any]) -> tuple[float, float]:
    size = config["n"] * config["data_options"]["T"] * config["width"]
    return 0.1 + 1e-7 * size + label_seconds(config), 3e8 + 24.0 * sample_numbers(config)


samples = Measurement(
    name="arda2026-samples",
    version=1,
    function=measure_samples,
    outputs={"approximation_sup": ("n",), "n": ("n",)},
    estimate=_cost,
)


def trials(
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


def statistics(data: xr.Dataset) -> xr.Dataset:
    """Mean error against n, with its power law."""
    error = data["approximation_sup"]
    return over_seeds(error).merge(power_law(error, "n"))


def verdicts(data: xr.Dataset) -> list[Finding]:
    """Lemma 5: n enters through ln(2n/delta) alone."""
    n, error = data["n"].values, by_seed(data, "approximation_sup", "n")
    return [
        fitted_exponent(
            "the approximation error does not grow like a power of n",
            data,
            "approximation_sup",
            NO_POWER,
            source=IN_SAMPLES,
        ),
        exponent(
            "the approximation error grows no faster than ln n",
            np.log(n),
            error,
            (-math.inf, 1.0),
            source=IN_SAMPLES,
        ),
    ]


def plot(data: xr.Dataset, axes: Sequence[Any]) -> None:
    """Error against n, beside sqrt(ln n)."""
    (ax,) = axes
    n = np.asarray(data["n"].values, dtype=float)
    curve = np.sqrt(np.log(n)) * float(data["mean_approximation_sup"].values[0])
    ax.plot(n, curve / math.sqrt(math.log(n[0])), color="0.45", linestyle=":", label="sqrt(ln n)")
    draw_losses(data, ax, "n", {"approximation_sup": "mean"}, "samples n")
    ax.set_ylabel("approximation error")


figure = register(
    Figure(
        id="arda2026/samples",
        title="Approximation error against the number of samples n at fixed width: logarithmic",
        reference="[arda2026, Lemma 5]",
        scales=teacher_student_scales(
            {"n": 100, "counts": [25, 50, 100]},
            {"n": 3200, "counts": [50, 200, 800, 3200]},
            {"n": 12800, "counts": [50, 200, 800, 3200, 12800]},
        ),
        trials=trials,
        statistics=statistics,
        verdicts=verdicts,
        plot=plot,
        axes=choices("samples"),
    )
)
