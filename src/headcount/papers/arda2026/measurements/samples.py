"""Approximation error over the first n inputs, for many n from one set of labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....lab import Context, Measurement
from .problem import label_seconds, sample_numbers, student, transport_shift
from .widths import linear_change


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
