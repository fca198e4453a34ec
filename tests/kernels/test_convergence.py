"""Rates of convergence of empirical kernels to their limits."""

from __future__ import annotations

import numpy as np
import pytest

from headcount.core import BadArgument, activations, normal, stream
from headcount.kernels import kernel_rate
from headcount.papers.arda2026 import PooledAttention
from headcount.papers.wu2023.model import Encoder


def test_wu2023_rate_is_one_half_and_queries_vanish_like_one_over_width() -> None:
    x = normal(stream(0, "tokens"), (6, 3, 4)) / 2
    model = Encoder(d=4, d_m=2, tau0=1.0, tau1=1.0, pooling="mean")
    rate = kernel_rate(model, x, widths=[128, 512, 2048, 8192], seeds=range(8))
    total = rate.slopes["total"]
    assert total.lower < -0.5 < total.upper
    assert -0.65 < total.value < -0.38  # the ledger measured -0.52
    for block in ("W_Q", "W_K"):
        assert -1.25 < rate.slopes[block].value < -0.8  # the ledger measured -0.91
    assert all(error == 0 for error in rate.limit_error.values())
    data = rate.to_xarray()
    assert data.error.sizes == {"block": 5, "seed": 8, "width": 4}
    assert data.slope.sel(block="total").item() == total.value


def test_arda2026_rate_is_one_half_in_every_block() -> None:
    x = normal(stream(1, "tokens"), (6, 4, 3))
    x = x / np.maximum(1, np.linalg.norm(x, axis=-1, keepdims=True))
    model = PooledAttention(3, 2, activations["erf"])
    rate = kernel_rate(model, x, widths=[16, 64, 256], seeds=range(8), confidence=0.999)
    for block in ("c", "U", "W", "total"):
        slope = rate.slopes[block]
        assert slope.lower < -0.5 < slope.upper, (block, slope)
        assert -0.65 < slope.value < -0.38, (block, slope)
        assert rate.limit_error[block] < 0.3 * rate.errors[block][:, -1].mean()


def test_bad_arguments() -> None:
    model = PooledAttention(3, 2)
    x = np.ones((1, 2, 3)) / 2
    with pytest.raises(BadArgument, match="widths"):
        kernel_rate(model, x, widths=[8], seeds=[0, 1])
    with pytest.raises(BadArgument, match="seeds"):
        kernel_rate(model, x, widths=[8, 16], seeds=[0])
