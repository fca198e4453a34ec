"""The proved lower bound of the smallest eigenvalue: on the safe side, by the right amount."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from headcount.core import normal, stream
from headcount.kernels import smallest_eigenvalue
from headcount.kernels._lambda_min import _cholesky_bound, _smallest_pair, equal_samples

UNIT = Fraction(1, 2**53)


@pytest.mark.parametrize("n", [2, 5, 40])
def test_the_backward_error_of_cholesky_is_taken_off(n: int) -> None:
    """K = I and a shift of 1/2: Cholesky succeeds at once, and tr(K - mu I) = n/2."""
    mu = Fraction(1, 2)
    growth = (n + 1) * UNIT / (1 - (n + 1) * UNIT)
    exact = growth / (1 - growth) * n / 2
    bound = _cholesky_bound(np.eye(n), 1.0, 0.5)
    assert bound < 0.5
    assert float(mu - Fraction(bound)) == pytest.approx(float(exact), rel=0.5, abs=2**-54)
    # A quarter of the trace is off the diagonal of another matrix with the same diagonal.
    K = np.full((n, n), 0.25) + 0.75 * np.eye(n)
    assert _cholesky_bound(K, 0.75, 0.25) == pytest.approx(bound, abs=2**-53)


def test_the_step_grows_until_cholesky_succeeds() -> None:
    """From a value that is too large by 1: steps 1/16, 1/4, 1, 4."""
    bound = _cholesky_bound(np.eye(3), 2.0, 0.0625)
    assert -2 - 1e-13 < bound < -2
    assert _cholesky_bound(np.eye(3), 1.0, 0.0) == pytest.approx(1.0, abs=1e-14)


@pytest.mark.parametrize("seed", range(5))
def test_the_bound_lies_below_an_eigenvalue_known_exactly(seed: int) -> None:
    """Householder reflections of a diagonal matrix of integers: lambda_min is 1."""
    n = 12
    v = np.asarray(normal(stream(seed, "householder"), (n,)))
    H = np.eye(n) - 2 * np.outer(v, v) / (v @ v)
    K = H @ np.diag(np.arange(1.0, n + 1)) @ H
    K = (K + K.T) / 2
    found = smallest_eigenvalue(K)
    assert found.lower < 1 < found.upper
    assert found.certified
    assert not found.below_rounding
    assert found.upper == found.value + found.rounding
    assert 1 - found.lower < 20 * found.rounding
    size = min(np.linalg.norm(K), np.abs(K).sum(axis=1).max())
    assert found.rounding == pytest.approx(n * np.finfo(float).eps * size)


def test_value_and_residual_of_the_smallest_pair() -> None:
    K = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 5.0]])
    value, residual = _smallest_pair(K)
    assert value == pytest.approx(1.0, rel=1e-14)
    assert 0 <= residual < 1e-14


def test_equal_samples_are_found_to_rounding() -> None:
    eps = float(np.finfo(float).eps)
    K = np.array([[1.0, 0.5, 1.0], [0.5, 2.0, 0.5], [1.0, 0.5, 1.0]])
    assert equal_samples(K, eps) == ((0, 2),)
    apart = K.copy()
    apart[0, 2] = apart[2, 0] = 1 - 7 * eps  # K_00 + K_22 - 2 K_02 = 14 eps <= 16 eps
    assert equal_samples(apart, eps) == ((0, 2),)
    apart[0, 2] = apart[2, 0] = 1 - 9 * eps
    assert equal_samples(apart, eps) == ()
    same = np.ones((8, 8))
    assert len(equal_samples(same, eps)) == 20
    assert equal_samples(same, eps, at_most=9) == (
        *((0, j) for j in range(1, 8)),
        *((1, j) for j in range(2, 4)),
    )
