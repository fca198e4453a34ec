"""Approximation error over the first n inputs, for many n from one set of labels."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from ....lab import Context, Measurement
from ....models import PooledAttention, PooledAttentionParams, paired
from .problem import label_seconds, labelled
from .widths import linear_change


def measure_samples(config: dict[str, Any], context: Context) -> dict[str, Any]:
    """max over j <= n of |f_lin(X_j; phi~) - y_j| for every n of `counts` [arda2026, Lemma 5]."""
    from ....data import transported

    model = PooledAttention(config["d"], config["m"])
    start = paired(model, config["seed"])
    x, y, transport = labelled(config)
    context.progress(1, 2)
    point = PooledAttentionParams(*transported(start.c, start.U, start.W, transport))
    moved = jax.tree.map(np.subtract, point, start)
    largest = np.maximum.accumulate(np.abs(linear_change(model, start, moved, x) - y))
    counts = np.asarray(config["counts"])
    return {"approximation_sup": largest[counts - 1], "n": counts}


def _cost(config: dict[str, Any]) -> tuple[float, float]:
    size = config["n"] * config["T"] * config["m"]
    return 2.0 + 1e-7 * size + label_seconds(config), 3e8 + 24.0 * config["n"] * config["T"] * 8


samples = Measurement(
    name="arda2026-samples",
    version=1,
    function=measure_samples,
    outputs={"approximation_sup": ("n",), "n": ("n",)},
    estimate=_cost,
)
