"""Rao-Blackwell against plain Monte Carlo for the limiting kernel of arda2026, at equal time."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks._timing import target
from headcount.core import activations, normal, stream
from headcount.papers.arda2026 import PooledAttention, limit_arda2026

N, T, D, HEADS = 64, 16, 8, 512


def _measure(model: PooledAttention, x: np.ndarray, method: str) -> tuple[float, dict[str, float]]:
    """Processor seconds per head (best of three, after compilation) and variances per head."""
    limit_arda2026(model, x, heads=HEADS, method=method)
    seconds = []
    for seed in range(3):
        begin = time.process_time()
        result = limit_arda2026(model, x, heads=HEADS, method=method, seed=seed)
        seconds.append(time.process_time() - begin)
    errors = {**result.errors, "total": result.total_error}
    variances = {name: float(np.mean(error**2)) * HEADS for name, error in errors.items()}
    return min(seconds) / HEADS, variances


def run() -> dict[str, Any]:
    """Ratios above one: the variance that plain Monte Carlo has left when both used equal time."""
    x = normal(stream(0, "tokens"), (N, T, D))
    x = x / np.maximum(1.0, np.linalg.norm(x, axis=-1, keepdims=True))
    figures, ratios = {}, {}
    for name in ("erf", "sin", "gaussian"):
        model = PooledAttention(D, 2, activations[name])
        plain_time, plain = _measure(model, x, "plain")
        time_per_head, integrated = _measure(model, x, "rao-blackwell")
        figures[name] = {
            "plain_seconds_per_head": plain_time,
            "rao_blackwell_seconds_per_head": time_per_head,
            "variance_ratio_per_head": {b: plain[b] / integrated[b] for b in plain},
        }
        ratios[name] = {b: plain[b] * plain_time / (integrated[b] * time_per_head) for b in plain}
    return {
        "name": "limit_variance",
        "figures": figures,
        "ratios": ratios,
        "targets": [
            target(f"erf, block {block}: plain / Rao-Blackwell", ratios["erf"][block], at_least=1.0)
            for block in ("c", "W")
        ],
    }
