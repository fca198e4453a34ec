"""Margins and smallest eigenvalues of matrices that can be worked out by hand."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pytest
from rich.filesize import decimal

from headcount.core import BadArgument
from headcount.core._memory import available_memory
from headcount.kernels import (
    RoundingWarning,
    direction_margins,
    kernel_margin,
    linear_margin,
    normalised_margin,
    ntk,
    smallest_eigenvalue,
)
from headcount.kernels import _lambda_min as lambda_min
from headcount.kernels import _margin as margins
from headcount.kernels._lambda_min import (
    SmallestEigenvalue,
    _cholesky_bound,
    _smallest_pair,
    equal_samples,
)
from headcount.kernels._margin import _gap, _polished
from headcount.kernels._plan import KernelTooLarge
from headcount.papers import arda2026
from headcount.papers.deora2024.model import LinearModel, LinearParams

from .ntk_cases import D, random_params, samples

EPS = float(np.finfo(np.float64).eps)
BOTH = np.array([1, -1])


def test_equal_features_of_unlike_labels() -> None:
    """Weights 1/2 make a combination of length zero, up to 2 eps (4 + |w|^2 |K|)."""
    found = kernel_margin(np.ones((2, 2)), BOTH, norm=3.0)
    assert found.status == margins.NOT_SEPARABLE
    rounding = 2 * EPS * (4 * 1.0 + 0.5 * 2.0)
    assert found.upper == pytest.approx(3 * math.sqrt(rounding), rel=1e-6)
    np.testing.assert_allclose(found.weights, [0.5, 0.5])
    assert found.coefficients.tolist() == [0, 0]
    assert found.support.tolist() == [0, 1]
    assert (found.gamma, found.norm) == (0.0, 3.0)
    nothing = kernel_margin(np.zeros((4, 4)), np.ones(4))
    assert nothing.weights.tolist() == [0.25] * 4
    assert nothing.upper == 0.0


def test_the_margin_of_two_features() -> None:
    """|a| = 2, |b| = 1, at right angles: a/5 and 4b/5 are the shortest combination, 2/sqrt 5."""
    found = kernel_margin(np.diag([4.0, 1.0]), BOTH, norm=1.0)
    np.testing.assert_allclose(found.weights, [0.2, 0.8])
    assert found.gamma == pytest.approx(2 / math.sqrt(5))
    assert found.dual == pytest.approx(2 / math.sqrt(5))
    np.testing.assert_allclose(found.coefficients, np.array([0.2, -0.8]) * math.sqrt(5) / 2)
    summary = found.summary()
    assert (summary["n"], summary["support"], summary["status"]) == (2, 2, "separable")
    # A long second feature in the same direction carries no weight.
    one = kernel_margin(np.array([[1.0, 3.0], [3.0, 9.0]]), np.ones(2), norm=1.0)
    assert one.support.tolist() == [0]
    assert one.gamma == pytest.approx(1.0)
    rounding = 2 * EPS * (4 * 9.0 + 1.0 * 10.0)
    assert one.upper == pytest.approx(math.sqrt(1 + rounding), rel=1e-15)
    assert one.lower == pytest.approx((1 - rounding) / math.sqrt(1 + rounding), rel=1e-15)


def made(**changes: Any) -> margins.Margin:
    values: dict[str, Any] = {
        "primal": -0.1,
        "dual": 0.2,
        "lower": -0.3,
        "upper": 0.3,
        "status": margins.UNDECIDED,
        "norm": 1.0,
        "coefficients": np.zeros(2),
        "weights": np.zeros(2),
        "support": np.zeros(0, int),
    }
    return margins.Margin(**{**values, **changes})


def test_a_margin_is_never_negative() -> None:
    assert made().gamma == 0.0
    assert made(primal=0.4).gamma == 0.4
    assert made(primal=0.4, status=margins.NOT_SEPARABLE).gamma == 0.0


def test_samples_that_the_gram_matrix_cannot_tell_apart() -> None:
    """Two samples 1e-9 apart, labelled apart: their Gram matrix is singular to rounding."""
    near = np.array([[[1.0, 0.0]], [[1.0, 1e-9]]])
    assert linear_margin(near, BOTH).status == "undecided"
    assert linear_margin(np.repeat(near[:1], 2, axis=0), BOTH).status == "not separable"
    far = linear_margin(np.array([[[1.0, 0.0]], [[0.0, 1.0]]]), BOTH, norm=2.0)
    assert far.gamma == pytest.approx(2 / math.sqrt(2))


def test_margins_of_a_given_direction() -> None:
    model, params = LinearModel(1, 2), LinearParams(np.zeros((1, 2)))
    x, direction = np.array([[[1.0, 2.0]], [[3.0, -1.0]]]), LinearParams(np.array([[3.0, 4.0]]))
    slopes = np.array([11.0, 5.0])
    for norm, scale in ((None, 1.0), (10.0, 2.0), (math.sqrt(2), math.sqrt(2) / 5)):
        found = direction_margins(model, params, direction, x, BOTH, norm=norm)
        np.testing.assert_allclose(found, [11 * scale, -5 * scale])
        np.testing.assert_allclose(found, BOTH * slopes * scale)
    with pytest.raises(BadArgument, match="norm"):
        direction_margins(model, params, direction, x, BOTH, norm=-1.0)
    zero = LinearParams(np.zeros((1, 2)))
    assert direction_margins(model, params, zero, x, BOTH, norm=None).tolist() == [0, 0]


def test_the_margin_of_outputs() -> None:
    readout = {"a": np.array([3.0]), "b": np.array([[4.0]])}
    assert normalised_margin(np.array([2.0, -0.5]), BOTH, readout) == pytest.approx(0.1)
    assert normalised_margin(np.array([-2.0, -0.5]), BOTH, readout) == pytest.approx(-0.4)
    assert math.isnan(normalised_margin(np.array([1.0, 1.0]), BOTH, {"a": np.zeros(2)}))


def known(K: Any) -> SmallestEigenvalue:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RoundingWarning)
        return smallest_eigenvalue(np.asarray(K))


def test_the_smallest_eigenvalue_of_a_diagonal() -> None:
    K = np.diag([3.0, 2.0, 7.0])
    found = known(K)
    assert found.value == pytest.approx(2.0, rel=1e-15)
    assert (found.n, found.dtype, found.method, found.certified) == (3, "float64", "dense", True)
    assert found.rounding == pytest.approx(3 * EPS * 7.0)
    assert found.upper == found.value + found.rounding
    assert found.lower < 2 - found.rounding
    assert not found.below_rounding
    assert known(K.astype(np.float32)).rounding == pytest.approx(3 * np.finfo(np.float32).eps * 7)
    wide = known(np.array([[2.0, 2.0], [2.0, 2.0]]))
    assert wide.rounding == pytest.approx(2 * EPS * 4.0)
    assert wide.below_rounding
    assert wide.equal_samples == ((0, 1),)
    at = known(np.zeros((2, 2)))
    assert (at.value, at.rounding, at.below_rounding) == (0.0, 0.0, True)


def test_what_is_said_of_an_eigenvalue() -> None:
    found = known(np.diag([3.0, 2.0]))
    assert found.summary()["lower end"] == "proved"
    assert found.summary()["n"] == 2
    data = found.to_xarray()
    assert float(data["value"]) == found.value
    assert int(data["certified"]) == 1
    assert data["equal_samples"].shape == (0, 2)
    assert known(np.ones((2, 2))).to_xarray()["equal_samples"].values.tolist() == [[0, 1]]


@pytest.mark.parametrize(
    ("K", "words"),
    [
        (np.ones((2, 2)), "samples 0 and 1 have the same tangent features: the kernel"),
        (np.ones((3, 3)), r"features \(and 2 more pairs\)"),
        (np.diag([1.0, 0.0]), "singular up to rounding$"),
        (np.diag(np.float32([1.0, 0.0])), "compute it in float64"),
    ],
)
def test_a_value_below_rounding_is_warned_about(K: Any, words: str) -> None:
    with pytest.warns(RoundingWarning, match=words):
        smallest_eigenvalue(K)


@pytest.mark.usefixtures("wrong_shapes")
def test_from_products_alone_only_the_upper_end_is_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    class Operator:
        shape, dtype = (5, 5), "float64"

    def pairs(operator: Any, *, seed: int, which: str = "largest") -> Any:
        assert seed == 3
        value, residual = (2.0, 1e-9) if which == "smallest" else (-80.0, 0.0)
        return SimpleNamespace(
            values=np.array([99.0, value] if which != "smallest" else [value, 99.0]),
            residuals=np.array([residual, 5.0]),
            method="lanczos",
        )

    monkeypatch.setattr(lambda_min, "NTKOperator", Operator)
    monkeypatch.setattr(lambda_min, "as_operator", lambda kernel: kernel)
    monkeypatch.setattr(lambda_min, "extreme_eigenvalues", pairs)
    found = lambda_min.smallest_eigenvalue(Operator(), seed=3)  # type: ignore[arg-type]
    assert (found.value, found.residual, found.method, found.certified) == (
        2,
        1e-9,
        "lanczos",
        False,
    )
    assert found.rounding == pytest.approx(5 * EPS * 80)
    assert found.lower == 2 - 1e-9 - found.rounding
    assert found.upper == 2 + found.rounding
    assert found.equal_samples == ()


def test_pairs_of_equal_samples_are_cut_at_a_count() -> None:
    K = np.ones((4, 4))
    assert lambda_min.equal_samples(K, EPS, at_most=3) == ((0, 1), (0, 2), (0, 3))
    assert lambda_min.equal_samples(K, EPS, at_most=4)[-1] == (1, 2)
    assert lambda_min.equal_samples(np.eye(2), EPS) == ()
    assert lambda_min.equal_samples(np.ones((1, 1)), EPS) == ()


def test_weights_are_refined_on_their_support_only_if_that_helps() -> None:
    signed = np.array([[2.0, 0.5, 3.0], [0.5, 1.0, 3.0], [3.0, 3.0, 20.0]])
    best = np.array([0.25, 0.75, 0.0])  # (2 - 1/2) a = (1 - 1/2) (1 - a)
    rough = np.array([0.2501, 0.7499, 0.0])
    np.testing.assert_allclose(_polished(signed, rough), best, rtol=1e-14)
    assert _gap(signed, best) < 1e-15 < 1e-6 < _gap(signed, rough)
    # With the third sample in the support the refinement would be negative there.
    spread = np.array([0.3, 0.6, 0.1])
    np.testing.assert_array_equal(_polished(signed, spread), spread)
    np.testing.assert_array_equal(_polished(signed, best), best)


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


MODEL = arda2026.PooledAttention(D, 6)


PARAMS = random_params(MODEL)


def test_a_kernel_that_cannot_fit_is_refused_with_its_plan():
    with pytest.raises(KernelTooLarge, match="ntk_to_file") as refusal:
        ntk(MODEL, PARAMS, samples(100), memory_limit=100_000)
    plan = refusal.value.plan
    assert not plan.fits
    assert decimal(plan.peak) in str(refusal.value)
    assert plan.to_dict()["peak"] == plan.peak > 100_000


def test_available_memory_agrees_with_psutil():
    assert available_memory() == pytest.approx(psutil.virtual_memory().available, rel=0.2)
