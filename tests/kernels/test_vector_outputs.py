"""Kernels of several outputs: regression, descent and flow agree with the flattened problem."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from headcount.core import BadArgument
from headcount.kernels import (
    compare_runs,
    kernel_descent,
    kernel_flow,
    kernel_regression,
    ntk,
    train_linearised,
)

N, K = 6, 2
RNG = np.random.default_rng(3)
X, Y, CLASSES = RNG.normal(size=(N, 4)), RNG.normal(size=(N, K)), RNG.integers(0, K, N)
PARAMS = {"a": RNG.normal(size=(4, 8)), "b": RNG.normal(size=(8, K)) * 0.3}
NEW = RNG.normal(size=(3, 4))


def network(p: Any, x: Any) -> Any:
    return jnp.tanh(x @ p["a"]) @ p["b"]


def outputs(x: Any) -> Any:
    return np.asarray(jax.vmap(network, in_axes=(None, 0))(PARAMS, x))


@pytest.mark.parametrize(("loss", "y"), [("mean-squared", Y), ("cross-entropy", CLASSES)])
def test_descent_in_the_kernel_is_descent_of_the_linearised_network(loss: str, y: Any) -> None:
    kernel, cross = ntk(network, PARAMS, X).total, ntk(network, PARAMS, NEW, X).total
    linear = train_linearised(
        network, PARAMS, X, y, eta=0.05, steps=6, loss=loss, x_test=NEW, radius=0.3, record_every=2
    )
    dual = kernel_descent(
        kernel, y, eta=0.05, steps=6, loss=loss, f0=outputs(X), kernel_test=cross,
        f0_test=outputs(NEW), radius=0.3, record_every=2,
    )  # fmt: skip
    np.testing.assert_allclose(dual.train, linear.train, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(dual.test, linear.test, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(dual.loss, linear.loss, rtol=1e-10)
    np.testing.assert_allclose(dual.predict(cross, outputs(NEW)), dual.test, rtol=1e-12)
    assert np.max(compare_runs(dual, linear.train, linear.steps).largest) < 1e-10
    assert dual.to_xarray()["train"].dims == ("step", "sample", "output")
    assert linear.to_xarray()["test"].shape == (4, 3, K)


def test_regression_of_coupled_outputs_is_that_of_the_flat_kernel() -> None:
    kernel, cross = ntk(network, PARAMS, X).total, ntk(network, PARAMS, NEW, X).total
    fit = kernel_regression(kernel, Y, ridge=0.1)
    flat = kernel_regression(kernel.reshape(N * K, N * K), Y.ravel(), ridge=0.1)
    np.testing.assert_allclose(fit.coefficients.ravel(), flat.coefficients, rtol=1e-12)
    np.testing.assert_allclose(
        fit.predict(cross), cross.reshape(3 * K, -1).dot(flat.coefficients).reshape(3, K)
    )
    assert fit.norm == pytest.approx(flat.norm, rel=1e-12)
    flow = kernel_flow(kernel, Y, [0.0, 2.0, np.inf])
    slow = kernel_flow(kernel.reshape(N * K, N * K), Y.ravel(), [0.0, 2.0 * K, np.inf])
    np.testing.assert_allclose(flow.train.reshape(3, -1), slow.train, atol=1e-10)  # weight 1/n
    np.testing.assert_allclose(flow.train[-1], Y, atol=1e-7)


def test_outputs_that_are_not_coupled_are_fitted_one_by_one() -> None:
    kernel = ntk(lambda p, x: network(p, x)[0], PARAMS, X).total + 0.1 * np.eye(N)
    both = kernel_descent(kernel, Y, eta=0.05, steps=4)
    flow = kernel_flow(kernel, Y, [0.0, 1.0])
    for k in range(K):
        one = kernel_descent(kernel, Y[:, k], eta=0.05, steps=4)
        np.testing.assert_allclose(both.train[..., k], one.train, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(
            flow.train[..., k], kernel_flow(kernel, Y[:, k], [0.0, 1.0]).train
        )


def test_labels_that_do_not_fit_the_kernel_are_told() -> None:
    kernel = ntk(network, PARAMS, X).total
    with pytest.raises(BadArgument, match=r"y = .*needs shape \(6, 2\)"):
        kernel_regression(kernel, Y[:, 0])
    with pytest.raises(BadArgument, match="is no kernel of several outputs"):
        kernel_descent(np.eye(N), CLASSES, eta=0.1, steps=1, loss="cross-entropy")
