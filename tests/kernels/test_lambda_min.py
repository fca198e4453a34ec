"""The proved lower bound of the smallest eigenvalue: on the safe side, by the right amount."""

from __future__ import annotations

import numpy as np
import pytest

from headcount.core import normal, stream
from headcount.kernels import smallest_eigenvalue


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
