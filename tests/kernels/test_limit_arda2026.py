"""The limiting kernel of arda2026: Gaussian moments, Monte Carlo against Rao-Blackwell, limits."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from headcount.core import BadArgument, FixedQuery, activations, head_features, normal, stream
from headcount.papers.arda2026 import PooledAttention
from headcount.papers.arda2026.gaussian_moments import Pair, closed_moments
from headcount.papers.arda2026.limit import draw_heads, limit_arda2026

CLOSED = ("erf", "erf-normal", "sin", "cos", "gaussian", "gaussian-narrow")


def unit_tokens(n: int, T: int, d: int, seed: int = 0) -> np.ndarray:
    x = normal(stream(seed, "tokens"), (n, T, d))
    return x / np.maximum(1.0, np.linalg.norm(x, axis=-1, keepdims=True))


def moments_at(moments, pairs: list[tuple[np.ndarray, np.ndarray]], P: np.ndarray) -> np.ndarray:
    """The three moments for every pair of vectors: (pairs, 3)."""
    forms = [
        (a @ a, b @ b, a @ b, np.trace(P), a @ P @ a, a @ P @ b + b @ P @ a, b @ P @ b)
        for a, b in pairs
    ]
    columns = [jnp.asarray(column).reshape(-1, 1, 1) for column in zip(*forms, strict=True)]
    found = jax.jit(lambda pairs: jax.lax.map(moments, pairs))(Pair(*columns))
    return np.stack([np.asarray(m)[:, 0, 0] for m in found], axis=1)


def by_quadrature(activation, a: np.ndarray, b: np.ndarray, P: np.ndarray) -> np.ndarray:
    """The moments by Gauss-Hermite in an orthonormal basis of span(a, b); the rest of U is free.

    The square root of S comes from a singular value decomposition, so S may be singular.
    """
    basis, sizes, _ = np.linalg.svd(np.stack([a, b], axis=1), full_matrices=False)
    basis = basis[:, sizes > 1e-12]
    k = basis.shape[1]
    z, w = np.polynomial.hermite_e.hermegauss(120)
    w = w / np.sqrt(2 * np.pi)
    grid = np.stack([g.ravel() for g in np.meshgrid(*[z] * k, indexing="ij")])
    weight = np.prod(np.meshgrid(*[w] * k, indexing="ij"), axis=0).ravel()
    U = basis @ grid
    s, t = jnp.asarray(a @ U), jnp.asarray(b @ U)
    quadratic = np.einsum("iz,ij,jz->z", U, P, U) + np.trace(P) - np.trace(basis.T @ P @ basis)
    slopes = activation.derivative(s) * activation.derivative(t)
    values = (activation(s) * activation(t), slopes, slopes * quadratic)
    return np.array([float(np.sum(weight * v)) for v in values])


def degenerate_pairs() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    a, b = 0.8 * unit_tokens(2, 1, 4, seed=3)[:, 0]
    return {"general": (a, b), "equal": (a, a), "opposite": (a, -0.5 * a), "zero": (a, 0 * a)}


@pytest.mark.parametrize("name", [*CLOSED, "tanh"])
def test_moments_against_two_dimensional_quadrature(name: str) -> None:
    activation = activations[name]
    pairs = list(degenerate_pairs().values())
    P = normal(stream(1, "P"), (4, 4))
    closed = closed_moments(activation)
    assert (closed is not None) == (name in CLOSED)
    if closed:
        expected = np.stack([by_quadrature(activation, a, b, P) for a, b in pairs])
        np.testing.assert_allclose(moments_at(closed, pairs, P), expected, rtol=1e-11, atol=1e-13)


def test_plain_estimate_is_the_mean_over_its_heads() -> None:
    model = PooledAttention(3, 2, activations["tanh"], FixedQuery((0.5, -0.3, 0.4)))
    x = unit_tokens(4, 5, 3)
    result = limit_arda2026(model, x[:3], x[1:], heads=7, method="plain", seed=4)
    U, W = draw_heads(stream(4, "limit", "heads"), 0, count=7, d=3)
    features = jax.jit(lambda s, u, w: head_features(s, model.query(s), u, w, model.activation))
    samples = []
    for u, w in zip(U, W, strict=True):
        f = [features(s, u, w) for s in jnp.asarray(x)]
        q = [model.query(s) for s in jnp.asarray(x)]
        samples.append(
            [
                [[f[i].phi_c * f[j].phi_c for j in (1, 2, 3)] for i in (0, 1, 2)],
                [[f[i].phi_u @ f[j].phi_u for j in (1, 2, 3)] for i in (0, 1, 2)],
                [
                    [(f[i].w_left @ f[j].w_left) * (q[i] @ q[j]) for j in (1, 2, 3)]
                    for i in (0, 1, 2)
                ],
            ]
        )
    heads = np.array(samples)
    for k, block in enumerate(("c", "U", "W")):
        np.testing.assert_allclose(result.blocks[block], heads[:, k].mean(0), rtol=1e-12)
        error = heads[:, k].std(0, ddof=1) / np.sqrt(7)
        np.testing.assert_allclose(result.errors[block], error, rtol=1e-10)
    total = heads.sum(axis=1)
    np.testing.assert_allclose(result.total_error, total.std(0, ddof=1) / np.sqrt(7), rtol=1e-10)


@pytest.mark.parametrize("name", ["sin", "erf", "gaussian"])
def test_rao_blackwell_agrees_with_plain_within_stated_errors(name: str) -> None:
    model = PooledAttention(4, 2, activations[name])
    x = unit_tokens(8, 5, 4)
    plain = limit_arda2026(model, x, heads=3000, method="plain", seed=0)
    integrated = limit_arda2026(model, x, heads=3000, method="rao-blackwell", seed=1)
    upper = np.triu_indices(8)
    for block in ("c", "U", "W"):
        spread = np.hypot(plain.errors[block], integrated.errors[block])[upper]
        z = (plain.blocks[block] - integrated.blocks[block])[upper] / spread
        # 36 correlated entries: the largest standard normal of 108 exceeds 4.5 once in 1400 runs.
        assert np.max(np.abs(z)) < 4.5, (name, block, z)
        assert np.median((plain.errors[block] / integrated.errors[block]) ** 2) > 1
    z = (plain.total - integrated.total) / np.hypot(plain.total_error, integrated.total_error)
    assert np.max(np.abs(z)) < 4.5


def test_standard_errors_describe_the_spread_over_seeds() -> None:
    model = PooledAttention(3, 2, activations["erf"])
    x = unit_tokens(3, 4, 3)
    runs = [limit_arda2026(model, x, heads=64, seed=s) for s in range(40)]
    for block in ("c", "U", "W"):
        spread = np.std([r.blocks[block] for r in runs], axis=0, ddof=1)
        stated = np.sqrt(np.mean([r.errors[block] ** 2 for r in runs], axis=0))
        # A ratio of standard deviations with 39 degrees of freedom: sd about 0.11.
        assert np.all(np.abs(spread / stated - 1) < 0.5)


@pytest.mark.parametrize("name", ["erf", "sin"])
def test_one_token_needs_no_heads(name: str) -> None:
    """T = 1: attention is constant, so the estimate is exact and K_w vanishes."""
    model = PooledAttention(3, 2, activations[name])
    x = unit_tokens(4, 1, 3)
    result = limit_arda2026(model, x, heads=2, method="rao-blackwell")
    assert result.largest_error < 1e-14
    assert np.max(np.abs(result.blocks["W"])) == 0
    a = x[:, 0]
    expected = [[by_quadrature(model.activation, p, q, np.eye(3))[:2] for q in a] for p in a]
    np.testing.assert_allclose(result.blocks["c"], np.array(expected)[..., 0], atol=1e-6)
    np.testing.assert_allclose(
        result.blocks["U"], np.array(expected)[..., 1] * (a @ a.T), atol=1e-6
    )


def test_tiles_and_chunks_do_not_change_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    model = PooledAttention(3, 2, activations["erf"])
    x = unit_tokens(7, 4, 3)
    whole = limit_arda2026(model, x, heads=20)
    crossed = limit_arda2026(model, x, x[:5], heads=20)
    monkeypatch.setattr("headcount.papers.arda2026.limit._TILE", 3)
    monkeypatch.setattr("headcount.papers.arda2026.limit._BUDGET", 3000)
    tiled = limit_arda2026(model, x, heads=20)
    for block in ("c", "U", "W"):
        np.testing.assert_allclose(tiled.blocks[block], whole.blocks[block], rtol=1e-12)
        np.testing.assert_allclose(tiled.errors[block], whole.errors[block], rtol=1e-9, atol=1e-16)
        np.testing.assert_allclose(crossed.blocks[block], whole.blocks[block][:, :5], rtol=1e-12)
        assert np.array_equal(tiled.blocks[block], tiled.blocks[block].T)


def test_kernel_is_symmetric_positive_and_blind_to_token_order() -> None:
    model = PooledAttention(4, 2, activations["erf"], FixedQuery((0.5, 0.5, 0.1, -0.2)))
    x = unit_tokens(6, 5, 4)
    result = limit_arda2026(model, np.concatenate([x, x[:1]]), heads=200)
    assert np.array_equal(result.total, result.total.T)
    smallest = np.linalg.eigvalsh(result.total)[0]
    assert abs(smallest) < 1e-13 * np.trace(result.total)  # one duplicate: exactly singular
    shuffled = limit_arda2026(model, x[:, ::-1], heads=200)
    np.testing.assert_allclose(shuffled.total, result.total[:6, :6], rtol=1e-11)


def test_target_error_doubles_until_met_and_says_so() -> None:
    model = PooledAttention(3, 2, activations["erf"])
    x = unit_tokens(3, 4, 3)
    met = limit_arda2026(model, x, target_error=2e-3)
    assert met.target_met is True
    assert met.largest_error <= 2e-3
    assert met.heads & (met.heads - 1) == 0
    half = limit_arda2026(model, x, heads=met.heads // 2)
    assert half.largest_error > 2e-3
    again = limit_arda2026(model, x, heads=met.heads)
    np.testing.assert_allclose(again.total, met.total, rtol=1e-12)
    missed = limit_arda2026(model, x, target_error=1e-9, most_heads=300)
    assert missed.target_met is False
    assert missed.heads == 300


def test_float64_whatever_the_caller_uses() -> None:
    model = PooledAttention(3, 2, activations["sin"])
    x = unit_tokens(2, 4, 3)
    here = limit_arda2026(model, x, heads=10, method="rao-blackwell")
    with jax.enable_x64(False):
        there = limit_arda2026(model, x, heads=10, method="rao-blackwell")
        assert jnp.zeros(()).dtype == jnp.float32
    assert there.total.dtype == np.float64
    assert np.array_equal(here.total, there.total)


def test_dataset_and_bad_arguments() -> None:
    model = PooledAttention(3, 2, activations["erf"])
    x = unit_tokens(1, 4, 3)
    result = limit_arda2026(model, x, heads=4)
    data = result.to_xarray()
    assert data.kernel.sel(block="total").item() == result.total.item()
    assert result.method == "rao-blackwell"  # chosen, because erf has a closed form
    assert limit_arda2026(PooledAttention(3, 2), x, heads=4).method == "plain"
    assert list(data.block.values) == ["c", "U", "W", "total"]
    with pytest.raises(BadArgument, match=r"method.*no closed form for tanh.*plain"):
        limit_arda2026(PooledAttention(3, 2), x, heads=4, method="rao-blackwell")
    with pytest.raises(BadArgument, match="exactly one"):
        limit_arda2026(model, x)
    with pytest.raises(BadArgument, match="exactly one"):
        limit_arda2026(model, x, heads=4, target_error=0.1)
    with pytest.raises(BadArgument, match="features"):
        limit_arda2026(model, unit_tokens(2, 3, 4), heads=4)
    with pytest.raises(BadArgument, match="NaN"):
        limit_arda2026(model, np.full((1, 2, 3), np.nan), heads=4)
