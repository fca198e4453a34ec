"""Hessian-vector products, extreme eigenvalues and the Hessians of single heads."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from headcount.core import LOGISTIC, BadArgument, normal, stream
from headcount.kernels import (
    head_hessian,
    head_hessians,
    hessian_extremes,
    hessian_vector_product,
    loss_function,
    model_function,
)
from headcount.papers.arda2026 import PooledAttention, unpaired
from headcount.papers.deora2024.model import MultiHeadAttention, MultiHeadParams
from headcount.papers.wu2023.model import Encoder
from headcount.papers.wu2023.starts import ntk_normal


def dense(function, params) -> np.ndarray:
    flat, unravel = ravel_pytree(jax.tree.map(jnp.asarray, params))
    return np.asarray(jax.jit(jax.hessian(lambda p: function(unravel(p))))(flat))


def test_products_of_model_and_loss_match_the_dense_hessian() -> None:
    model = PooledAttention(2, 4)
    params = unpaired(model, 0)
    x = normal(stream(0, "x"), (3, 3, 2))
    y = np.array([1.0, -1.0, 1.0])
    vector = jax.tree.map(lambda p: np.cos(np.arange(p.size)).reshape(p.shape), params)
    for function in (model_function(model, x[0]), loss_function(model, LOGISTIC, x, y)):
        product = jax.jit(lambda p, v, f=function: hessian_vector_product(f, p, v))(params, vector)
        expected = dense(function, params) @ ravel_pytree(vector)[0]
        np.testing.assert_allclose(ravel_pytree(product)[0], expected, rtol=1e-11, atol=1e-14)


def test_wu2023_hessian_for_scalar_tokens_has_its_closed_form() -> None:
    """d = 1: blocks from moments of the attention weights, with the identity term of H_QK."""
    model = Encoder(d=1, d_m=5, tau0=0.3, tau1=0.7, pooling="sum")
    p = ntk_normal(model, 0)
    x = normal(stream(0, "x"), (4, 1))
    q, k, v, o = p.W_Q[:, 0], p.W_K[:, 0], p.W_V[:, 0], p.w_O
    s = x[:, 0]
    beta = np.exp(0.3 * (q @ k) * np.outer(s, s))
    beta = beta / beta.sum(axis=1, keepdims=True)
    mean = beta @ s
    centred = s[None, :] - mean[:, None]
    variance, third = np.sum(beta * centred**2, axis=1), np.sum(beta * centred**3, axis=1)
    D = (np.outer(mean, v) > 0).astype(float)
    weight = D @ (v * o)
    a = 0.3**2 * 0.7 * np.sum(s**2 * weight * third)
    b = 0.3 * 0.7 * np.sum(s * weight * variance)
    e = (s * variance) @ D
    H = dense(model_function(model, x), p)
    Q, K, V, O = (slice(5 * i, 5 * i + 5) for i in range(4))
    scale = 0.3 * 0.7
    np.testing.assert_allclose(H[Q, Q], a * np.outer(k, k), atol=1e-14)
    np.testing.assert_allclose(H[Q, K], a * np.outer(k, q) + b * np.eye(5), atol=1e-14)
    np.testing.assert_allclose(H[Q, V], scale * np.outer(k, o * e), atol=1e-14)
    np.testing.assert_allclose(H[K, O], scale * np.outer(q, v * e), atol=1e-14)
    np.testing.assert_allclose(H[O, V], 0.7 * np.diag(mean @ D), atol=1e-14)


@pytest.mark.parametrize("dense_below", [3, 1000])
def test_extremes_match_a_full_diagonalisation(dense_below: int) -> None:
    model = PooledAttention(3, 6)
    params = unpaired(model, 2)
    x = normal(stream(0, "x"), (4, 3, 3))
    function = loss_function(model, LOGISTIC, x, np.array([1.0, -1.0, 1.0, -1.0]))
    H = dense(function, params)
    values = np.linalg.eigvalsh(H)
    ends = hessian_extremes(function, params, dense_below=dense_below)
    for end, value in ((ends.smallest, values[0]), (ends.largest, values[-1])):
        assert end.converged
        assert end.lower <= value <= end.upper
        assert end.upper - end.lower < 1e-9
        unit = ravel_pytree(end.vector)[0]
        np.testing.assert_allclose(H @ unit, end.value * unit, atol=1e-9)
    assert ends.norm == max(abs(ends.smallest.value), abs(ends.largest.value))


def test_unfinished_lanczos_is_marked_and_its_interval_still_holds() -> None:
    spread = jnp.asarray(np.linspace(1.0, 2.0, 400))
    ends = hessian_extremes(
        lambda p: jnp.sum(spread * p**2) / 2, np.zeros(400), iterations=1, dense_below=3
    )
    assert not ends.largest.converged
    for end in (ends.smallest, ends.largest):
        assert np.any((end.lower <= spread) & (spread <= end.upper))
    assert 1.0 <= ends.smallest.value < 1.1
    assert 1.9 < ends.largest.value <= 2.0


def test_single_parameter_and_float32_caller() -> None:
    with jax.enable_x64(False):
        ends = hessian_extremes(lambda p: 3 * p[0] ** 2, np.array([0.1]))
        assert jnp.zeros(()).dtype == jnp.float32
    assert ends.smallest.value == ends.largest.value == 6.0
    with pytest.raises(BadArgument, match="no numbers"):
        hessian_extremes(lambda p: 0.0, ())


def test_head_blocks_are_the_blocks_of_the_models_hessian() -> None:
    model = PooledAttention(2, 4)
    params = unpaired(model, 1)
    x = normal(stream(0, "x"), (3, 2))
    H = dense(model_function(model, x), params)
    blocks = head_hessians(model, params, x)
    assert blocks.shape == (4, 6, 6)
    for i in range(4):
        at = np.r_[4 + 2 * i : 6 + 2 * i, 12 + 4 * i : 16 + 4 * i]
        np.testing.assert_allclose(
            H[np.ix_(at, at)], params.c[i] * blocks[i] / math.sqrt(4), atol=1e-13
        )
    np.testing.assert_allclose(blocks, np.swapaxes(blocks, 1, 2), atol=1e-13)


@pytest.mark.parametrize("readout", ["full", "last"])
def test_deora_head_blocks(readout: str) -> None:
    model = MultiHeadAttention(3, 2, 2, readout)
    shapes = model.shapes()
    params = MultiHeadParams(normal(stream(0, "U"), shapes.U), normal(stream(0, "W"), shapes.W))
    x = normal(stream(0, "x"), (3, 2))
    blocks = head_hessians(model, params, x)
    one = jax.jit(lambda u, w: head_hessian(model.head, (u, w), x))(params.U[1], params.W[1])
    np.testing.assert_allclose(blocks[1], one, atol=1e-14)
    size = params.U[0].size
    np.testing.assert_allclose(one[:size, :size], 0, atol=1e-15)  # linear in U
    with pytest.raises(BadArgument, match="no heads"):
        head_hessians(
            Encoder(2, 3, 1.0, 1.0, "sum"), ntk_normal(Encoder(2, 3, 1.0, 1.0, "sum"), 0), x
        )
