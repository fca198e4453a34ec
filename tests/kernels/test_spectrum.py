"""Matrix-free products, Lanczos, traces, and the quotable smallest eigenvalue."""

from __future__ import annotations

import warnings

import jax
import mpmath
import numpy as np
import pytest

from headcount.core import BadArgument, normal, stream
from headcount.kernels import (
    NTKOperator,
    RoundingWarning,
    extreme_eigenvalues,
    ntk,
    smallest_eigenvalue,
    trace,
)
from headcount.papers import arda2026

from .ntk_cases import ALL, D, random_params, samples

WIDE = arda2026.PooledAttention(D, 64)
THETA = random_params(WIDE)


@pytest.mark.parametrize(
    "case", ["arda2026", "deora2024-full", "deora2024-last", "wu2023-sum", "indrnn"]
)
def test_operator_is_the_matrix(case):
    model, x = ALL[case], samples(7)
    params = random_params(model)
    K = ntk(model, params, x).total
    operator = NTKOperator(model, params, x)
    v = normal(stream(1, "v"), (7,))
    np.testing.assert_allclose(operator @ v, K @ v, atol=1e-11 * np.abs(K).max())
    np.testing.assert_allclose(operator.diagonal(), np.diag(K), rtol=1e-11)
    exact = trace(operator)
    assert exact.standard_error == 0
    assert exact.value == pytest.approx(np.trace(K), rel=1e-12)


def test_operator_by_passes_goes_in_chunks(monkeypatch):
    monkeypatch.setattr("headcount.kernels._source._CHUNK_BYTES", 1)
    model, x = ALL["groups-full"], samples(5)
    params = random_params(model)
    operator = NTKOperator(model, params, x, method="jacobian")
    v = normal(stream(1, "v"), (5,))
    np.testing.assert_allclose(operator @ v, ntk(model, params, x).total @ v, rtol=1e-9)


def test_hutchinson_is_within_its_standard_error():
    K = ntk(WIDE, THETA, samples(40))
    estimate = trace(K, method="hutchinson", samples=200, seed=3)
    assert 0 < estimate.standard_error < 0.2 * np.trace(K.total)
    assert abs(estimate.value - np.trace(K.total)) < 4 * estimate.standard_error


@pytest.mark.parametrize("which", ["largest", "smallest"])
@pytest.mark.parametrize("n", [1, 6, 60])
def test_lanczos_is_eigvalsh(which, n):
    x = samples(n)
    K = ntk(WIDE, THETA, x).total
    values = np.linalg.eigvalsh(K)
    for kernel in (K, NTKOperator(WIDE, THETA, x)):
        found = extreme_eigenvalues(kernel, min(3, n), which=which)
        want = values[-min(3, n) :] if which == "largest" else values[: min(3, n)]
        np.testing.assert_allclose(found.values, want, atol=1e-11 * values[-1])
        assert np.all(found.residuals <= 1e-10 * values[-1])
    assert found.method == ("dense" if n < 32 else "lanczos")
    assert found.to_xarray()["values"].dims == ("eigenvalue",)


def exact_smallest(K):
    """lambda_min in 50 digits."""
    with mpmath.workdps(50):
        return float(mpmath.mp.eigsy(mpmath.matrix(K.tolist()), eigvals_only=True)[0])


@pytest.mark.parametrize("n", [1, 2, 12])
def test_interval_holds_the_exact_eigenvalue(n):
    K = ntk(WIDE, THETA, samples(n))
    found = smallest_eigenvalue(K)
    assert found.certified
    assert not found.below_rounding
    assert found.lower <= exact_smallest(K.total) <= found.upper
    assert found.upper - found.lower < 1e-11 * np.trace(K.total)
    assert found.residual <= found.rounding


@pytest.mark.parametrize("smallest", [1e-3, 1e-9, 1e-13, 0.0])
def test_interval_holds_for_a_prescribed_spectrum(smallest):
    Q, _ = np.linalg.qr(normal(stream(2, "basis"), (16, 16)))
    K = (Q * np.geomspace(1, 100, 16)) @ Q.T
    K = K - (1 - smallest) * np.outer(Q[:, 0], Q[:, 0])
    K = (K + K.T) / 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RoundingWarning)
        found = smallest_eigenvalue(K)
    assert found.lower <= exact_smallest(K) <= found.upper
    assert found.below_rounding == (smallest < 1e-12)


def test_operator_interval_says_what_it_does_not_prove():
    x = samples(40)
    found = smallest_eigenvalue(NTKOperator(WIDE, THETA, x))
    dense = smallest_eigenvalue(ntk(WIDE, THETA, x))
    assert not found.certified
    assert found.value == pytest.approx(dense.value, abs=2 * dense.rounding)


def test_equal_samples_are_named():
    x = samples(6)
    x[4] = x[1]
    with pytest.warns(RoundingWarning, match="samples 1 and 4 have the same tangent features"):
        found = smallest_eigenvalue(ntk(WIDE, THETA, x))
    assert found.below_rounding
    assert found.equal_samples == ((1, 4),)
    assert found.lower <= 0 <= found.upper
    assert found.to_xarray().equal_samples.values.tolist() == [[1, 4]]


def test_a_float32_kernel_is_judged_by_its_own_precision():
    x = samples(30) * 0.05
    double = smallest_eigenvalue(ntk(WIDE, THETA, x))
    with pytest.warns(RoundingWarning, match="compute it in float64"):
        single = smallest_eigenvalue(ntk(WIDE, THETA, x, dtype="float32"))
    assert single.rounding > 1e8 * double.rounding
    assert single.lower <= double.value <= single.upper


def test_setting_is_untouched_and_answers_are_double():
    x = samples(5)
    want = smallest_eigenvalue(ntk(WIDE, THETA, x)).value
    with jax.enable_x64(False):
        operator = NTKOperator(ALL["indrnn"], random_params(ALL["indrnn"]), x)
        assert (operator @ np.ones(5)).dtype == np.float64
        assert smallest_eigenvalue(ntk(WIDE, THETA, x)).value == want


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (np.ones((2, 3)), "not square"),
        (np.array([[1.0, 2.0], [0.0, 1.0]]), "not symmetric"),
        (np.array([[1.0, 0.5], [0.5 + 1e-8, 1.0]]), "not symmetric"),
        (np.array([[np.nan]]), "NaN"),
    ],
)
@pytest.mark.usefixtures("wrong_shapes")
def test_bad_kernels_are_named(kernel, message):
    with pytest.raises(BadArgument, match=message):
        smallest_eigenvalue(kernel)


def test_bad_requests_are_named():
    rectangular = ntk(WIDE, THETA, samples(2), samples(2, "other"))
    with pytest.raises(BadArgument, match="without x2"):
        smallest_eigenvalue(rectangular)
    with pytest.raises(BadArgument, match="above n"):
        extreme_eigenvalues(np.eye(3), 4)
