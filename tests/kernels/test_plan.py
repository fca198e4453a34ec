"""The memory plan: right to the byte where it can be, shown, and refused before any work."""

from __future__ import annotations

import numpy as np

from headcount.kernels import plan_ntk
from headcount.papers import arda2026

from .ntk_cases import D, random_params, samples

MODEL = arda2026.PooledAttention(D, 6)
PARAMS = random_params(MODEL)


def test_features_and_kernel_are_counted_to_the_byte():
    n, m = 8, 6
    plan = plan_ntk(MODEL, PARAMS, samples(n))
    assert plan.features == n * (m + 2 * m * D + D) * 8
    assert plan.kernel == 4 * n * n * 8
    assert plan_ntk(MODEL, PARAMS, samples(n), blocks="total").kernel == n * n * 8
    assert plan_ntk(MODEL, PARAMS, samples(n), dtype="float32").features == plan.features // 2
    both = plan_ntk(MODEL, PARAMS, samples(n), samples(3, "other"))
    assert both.features == (n + 3) * (m + 2 * m * D + D) * 8
    assert plan.peak == plan.features + plan.kernel + plan.scratch
    assert plan_ntk(MODEL, PARAMS, samples(n), frozen=("U", "W")).features == n * m * 8


def test_streaming_moves_the_kernel_to_disk():
    plan = plan_ntk(MODEL, PARAMS, samples(8), to_file=True, blocks="total")
    assert (plan.kernel, plan.file) == (0, 8 * 8 * 8)
    assert "on disk" in str(plan)


def test_a_huge_kernel_is_planned_and_refused_without_being_allocated():
    x = np.broadcast_to(samples(1), (1_000_000, 5, D))
    plan = plan_ntk(MODEL, PARAMS, x, blocks="total", dtype="float32")
    assert plan.kernel == 4 * 10**12
    assert not plan.fits


def test_features_too_large_to_keep_are_recomputed_per_tile():
    plan = plan_ntk(MODEL, PARAMS, samples(200), memory_limit=150_000, to_file=True, blocks="total")
    assert not plan.stored_features
    assert plan.tile < 200
    assert plan.chunk < 200
    assert plan.fits
