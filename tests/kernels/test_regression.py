"""Kernel regression with and without a ridge."""

from __future__ import annotations

import numpy as np
import pytest

from headcount.core import BadArgument, normal, stream
from headcount.kernels import kernel_regression

FEATURES = normal(stream(0, "features"), (6, 9))
Y = normal(stream(0, "y"), (6,))


def test_ridge_solves_the_normal_equations() -> None:
    K = FEATURES @ FEATURES.T
    fit = kernel_regression(K, Y, ridge=0.7, f0=0.2)
    np.testing.assert_allclose((K + 0.7 * np.eye(6)) @ fit.coefficients, Y - 0.2, rtol=1e-12)
    primal = np.linalg.solve(FEATURES.T @ FEATURES + 0.7 * np.eye(9), FEATURES.T @ (Y - 0.2))
    new = normal(stream(0, "new"), (3, 9))
    np.testing.assert_allclose(
        fit.predict(new @ FEATURES.T, f0=0.1), 0.1 + new @ primal, rtol=1e-11
    )
    np.testing.assert_allclose(fit.norm, np.linalg.norm(primal), rtol=1e-12)


def test_ridgeless_interpolates_with_least_norm_and_is_the_limit_of_ridge() -> None:
    K = FEATURES @ FEATURES.T
    fit = kernel_regression(K, Y)
    assert fit.residual < 1e-12
    assert fit.rank == 6
    least = np.linalg.lstsq(FEATURES, Y, rcond=None)[0]
    np.testing.assert_allclose(fit.norm, np.linalg.norm(least), rtol=1e-11)
    close = kernel_regression(K, Y, ridge=1e-10)
    np.testing.assert_allclose(close.coefficients, fit.coefficients, rtol=1e-7)


def test_duplicates_give_the_least_squares_answer() -> None:
    doubled = np.concatenate([FEATURES, FEATURES[:1]])
    y = np.append(Y, Y[0] + 1.0)
    fit = kernel_regression(doubled @ doubled.T, y)
    assert fit.rank == 6
    np.testing.assert_allclose(fit.train[[0, 6]], Y[0] + 0.5, rtol=1e-10)
    np.testing.assert_allclose(fit.residual, 0.5, rtol=1e-10)


def test_one_sample_zero_kernel_and_several_outputs() -> None:
    np.testing.assert_allclose(
        kernel_regression(np.array([[4.0]]), np.array([2.0])).coefficients, [0.5]
    )
    dead = kernel_regression(np.zeros((2, 2)), np.array([1.0, 2.0]))
    np.testing.assert_array_equal(dead.coefficients, 0)
    assert dead.rank == 0
    K = FEATURES @ FEATURES.T
    both = kernel_regression(K, np.stack([Y, -2 * Y], axis=1), ridge=0.1)
    np.testing.assert_allclose(both.coefficients[:, 1], -2 * both.coefficients[:, 0], rtol=1e-12)


@pytest.mark.usefixtures("wrong_shapes")
def test_bad_arguments() -> None:
    with pytest.raises(BadArgument, match="not square"):
        kernel_regression(np.ones((2, 3)), [1.0, 2.0])
    with pytest.raises(BadArgument, match="not symmetric"):
        kernel_regression(np.array([[1.0, 2.0], [0.0, 1.0]]), [1.0, 2.0])
    with pytest.raises(BadArgument, match="rows"):
        kernel_regression(np.eye(2), [1.0, 2.0, 3.0])
    with pytest.raises(BadArgument, match="ridge"):
        kernel_regression(np.eye(2), [1.0, 2.0], ridge=-1.0)
