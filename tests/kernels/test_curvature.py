"""Gauss-Newton and Fisher matrices against dense ones; spectral densities against eigenvalues."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from headcount.core import normal, stream
from headcount.kernels import (
    gauss_newton,
    hessian_extremes,
    hessian_vector_product,
    loss_function,
    ntk,
    ntk_vector_product,
    spectral_density,
)
from headcount.papers.deora2024 import HeadGroups, MultiHeadAttention

N, D, K = 9, 3, 3
X = normal(stream(0, "x"), (N, D))
PARAMS = {"a": normal(stream(1, "a"), (D, 6)), "b": 0.5 * normal(stream(2, "b"), (6, K))}
SIGNS = np.where(np.arange(N) % 3 == 0, 1.0, -1.0)
CLASSES = np.arange(N) % K


def network(p: Any, x: Any) -> Any:
    return jnp.tanh(x @ p["a"]) @ p["b"]


def first(p: Any, x: Any) -> Any:
    return network(p, x)[0]


def dense(model: Any, x: Any, bent: Any, params: Any = None) -> np.ndarray:
    """sum_j J_j^T bent_j J_j in plain loops, bent a matrix over the outputs of each sample."""
    params = PARAMS if params is None else params
    flat, unravel = ravel_pytree(jax.tree.map(jnp.asarray, params))
    total = np.zeros((flat.size, flat.size))
    for j in range(len(x)):
        J = np.asarray(jax.jacrev(lambda p: jnp.atleast_1d(model(unravel(p), x[j])))(flat))  # noqa: B023
        total += J.T @ np.atleast_2d(bent(j, np.asarray(J))) @ J
    return total


def sigmoid(z: Any) -> Any:
    return 1 / (1 + np.exp(-z))


CASES: dict[str, Any] = {
    "mean-squared": (network, normal(stream(3, "y"), (N, K)), lambda j, o: 2 / N * np.eye(K)),
    "logistic": (first, SIGNS, lambda j, f: sigmoid(f) * sigmoid(-f) / N),
    "cross-entropy": (network, CLASSES, lambda j, f: (np.diag(f) - np.outer(f, f)) / N),
}


@pytest.mark.parametrize("loss", CASES)
def test_extremes_and_density_are_those_of_the_dense_matrix(loss: str) -> None:
    model, y, bend = CASES[loss]

    def bent(j: int, J: Any) -> Any:
        f = np.asarray(model(PARAMS, X[j]))
        return bend(j, np.exp(f) / np.exp(f).sum() if loss == "cross-entropy" else f)

    values = np.linalg.eigvalsh(dense(model, X, bent))
    matrix = gauss_newton(model, loss, X, y)
    for limit in (128, 3):  # formed, and by Lanczos
        found = hessian_extremes(matrix, PARAMS, dense_below=limit)
        assert found.largest.value == pytest.approx(values[-1], rel=1e-9)
        assert abs(found.smallest.value) < 1e-8
    spectrum = spectral_density(matrix, PARAMS, probes=40, order=36)
    trace, error = spectrum.trace
    assert abs(trace - values.sum()) < 4.5 * error
    share, own = spectrum.share_below(values[-1] / 3)
    assert abs(share[0] - np.mean(values <= values[-1] / 3)) < 4.5 * own[0] + 1e-9
    np.testing.assert_allclose(spectrum.nodes.max(axis=1), values[-1], rtol=1e-6)
    grid = np.linspace(-2 * values[-1], 3 * values[-1], 4001)
    smooth, _ = spectrum.density(grid, 0.1 * values[-1])
    assert np.trapezoid(smooth, grid) == pytest.approx(1, abs=1e-6)


def test_the_empirical_fisher_matrix_has_the_gradients_of_the_samples() -> None:
    gradients = []
    for j in range(N):
        loss = lambda p: jax.nn.softplus(-SIGNS[j] * first(p, X[j]))  # noqa: B023, E731
        gradients.append(ravel_pytree(jax.grad(loss)(jax.tree.map(jnp.asarray, PARAMS)))[0])
    G = np.stack(gradients)
    values = np.linalg.eigvalsh(G.T @ G / N)
    found = hessian_extremes(gauss_newton(first, "logistic", X, SIGNS, empirical=True), PARAMS)
    assert found.largest.value == pytest.approx(values[-1], rel=1e-9)


def test_where_the_model_is_linear_the_hessian_is_the_gauss_newton_matrix() -> None:
    linear, y = lambda p, x: x @ p["a"], CLASSES
    params = {"a": PARAMS["a"][:, :K]}
    hessian = loss_function(linear, "cross-entropy", X, y)
    both = (hessian, gauss_newton(linear, "cross-entropy", X, y))
    a, b = (spectral_density(function, params, probes=3, order=5, seed=1) for function in both)
    np.testing.assert_allclose(a.nodes, b.nodes, rtol=1e-8, atol=1e-10)
    assert hessian_extremes(both[0], params).norm == pytest.approx(
        hessian_extremes(both[1], params).norm, rel=1e-9
    )


def test_equal_heads_count_as_all_their_heads() -> None:
    """The Gauss-Newton matrix of groups has the largest eigenvalue of that of all heads."""
    x = normal(stream(5, "x"), (4, 2, 2))
    groups, heads = HeadGroups(2, 2, (3, 1)), MultiHeadAttention(2, 2, 4)
    few = jax.tree.map(lambda s: normal(stream(6, str(s)), s), groups.shapes(), is_leaf=_is_shape)
    many = jax.tree.map(lambda leaf: np.repeat(leaf, [3, 1], axis=0), few)
    y = np.array([1.0, -1.0, 1.0, 1.0])
    found = [
        hessian_extremes(gauss_newton(model, "logistic", x, y), params).largest.value
        for model, params in ((groups, few), (heads, type(many)(*many)))
    ]
    assert found[0] == pytest.approx(found[1], rel=1e-9)


def _is_shape(value: Any) -> bool:
    return type(value) is tuple and all(isinstance(n, int) for n in value)


@pytest.mark.parametrize("empirical", [False, True])
def test_products_are_those_of_the_dense_matrix(*, empirical: bool) -> None:
    def bent(j: int, J: Any) -> Any:
        f = np.asarray(network(PARAMS, X[j]))
        share = np.exp(f) / np.exp(f).sum()
        slope = share - np.eye(K)[CLASSES[j]]
        return (
            np.outer(slope, slope) if empirical else np.diag(share) - np.outer(share, share)
        ) / N

    G = gauss_newton(network, "cross-entropy", X, CLASSES, empirical=empirical)
    v = jax.tree.map(lambda leaf: normal(stream(8, "v"), leaf.shape), PARAMS)
    got = ravel_pytree(hessian_vector_product(G, PARAMS, v))[0]
    want = dense(network, X, bent) @ ravel_pytree(v)[0]
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-12 * np.abs(want).max())


@pytest.mark.usefixtures("as_users_write")
def test_parameters_in_float32_and_vectors_in_float64_meet() -> None:
    low = jax.tree.map(lambda leaf: leaf.astype("float32"), PARAMS)
    x, u = X.astype("float32"), normal(stream(9, "u"), (N, K))
    moved = ntk_vector_product(network, low, x, u)
    want = np.tensordot(ntk(network, low, x).total, u, axes=2)
    np.testing.assert_allclose(moved, want, rtol=0, atol=1e-12 * np.abs(want).max())
    low_v, v = low, jax.tree.map(np.float64, low)
    loss = loss_function(network, "cross-entropy", x, CLASSES)
    one, other = (hessian_vector_product(loss, low, w) for w in (low_v, v))
    np.testing.assert_allclose(one["a"], other["a"], rtol=0, atol=1e-5)
    assert other["a"].dtype == np.float64
