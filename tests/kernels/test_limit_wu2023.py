"""The limiting kernel of wu2023 in closed form."""

from __future__ import annotations

import numpy as np
import pytest

from headcount.core import BadArgument, normal, stream
from headcount.kernels import limit_ntk
from headcount.papers.wu2023.limit import limit_wu2023
from headcount.papers.wu2023.model import Encoder


def tokens(n: int = 4, T: int = 3, d: int = 3) -> np.ndarray:
    return normal(stream(0, "tokens"), (n, T, d))


def test_closed_forms_against_monte_carlo() -> None:
    x = tokens()
    result = limit_wu2023(x, pooling="sum")
    phi = x.mean(axis=1)
    hidden = normal(stream(1, "w"), (200_000, 3)) @ phi.T
    relu, active = np.maximum(hidden, 0), (hidden > 0).astype(float)
    for block, features, factor in (
        ("w_O", relu, np.ones((4, 4))),
        ("W_V", active, phi @ phi.T),
    ):
        draws = features[:, :, None] * features[:, None, :] * factor
        mean, error = 9 * draws.mean(0), 9 * draws.std(0) / np.sqrt(len(draws))
        assert np.max(np.abs(mean - result.blocks[block]) / (error + 1e-12)) < 4.5
    np.testing.assert_array_equal(result.blocks["W_Q"], 0)
    np.testing.assert_allclose(result.total, result.blocks["w_O"] + result.blocks["W_V"])


def test_diagonal_pooling_and_duplicates() -> None:
    x = np.concatenate([tokens(), tokens()[:1]])
    by_sum, by_mean = limit_wu2023(x, pooling="sum"), limit_wu2023(x, pooling="mean")
    np.testing.assert_allclose(by_mean.total, by_sum.total / 9, rtol=1e-13)
    np.testing.assert_allclose(np.diag(by_sum.total), 9 * np.sum(x.mean(1) ** 2, -1), rtol=1e-14)
    # The duplicate's entry must equal the diagonal to rounding: arccos would lose eight digits.
    np.testing.assert_allclose(by_sum.total[0, 4], by_sum.total[0, 0], rtol=1e-14)
    assert np.array_equal(by_sum.total, by_sum.total.T)
    crossed = limit_wu2023(x[:2], x, pooling="sum")
    np.testing.assert_allclose(crossed.total, by_sum.total[:2], rtol=1e-13)


def test_zero_and_opposite_samples() -> None:
    x = np.stack([tokens(1)[0], -tokens(1)[0], np.zeros((3, 3))])
    K = limit_wu2023(x, pooling="mean").total
    np.testing.assert_allclose(K[0, 1], 0, atol=1e-15)
    np.testing.assert_array_equal(K[2], 0)


def test_dispatch_by_model_and_bad_arguments() -> None:
    model = Encoder(d=3, d_m=8, tau0=1.0, tau1=1.0, pooling="mean")
    np.testing.assert_array_equal(
        limit_ntk(model, tokens()).total, limit_wu2023(tokens(), pooling="mean").total
    )
    with pytest.raises(BadArgument, match="closed form"):
        limit_ntk(model, tokens(), heads=3)
    with pytest.raises(BadArgument, match="no known limit"):
        limit_ntk(Encoder(3, 8, 1.0, 1.0, "sum", residual=True), tokens())
    with pytest.raises(BadArgument, match="pooling"):
        limit_wu2023(tokens(), pooling="max")
