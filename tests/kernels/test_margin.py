"""Margins of tangent features, directions, the linear model and trained models."""

from __future__ import annotations

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

from headcount.core import BadArgument, normal, stream
from headcount.kernels import (
    direction_margins,
    kernel_margin,
    linear_margin,
    margin_path,
    normalised_margin,
    ntk_margin,
    tangent_kernel,
)
from headcount.papers.deora2024.model import (
    LinearModel,
    LinearParams,
    MultiHeadAttention,
    MultiHeadParams,
)


def separable(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    features = normal(stream(seed, "features"), (n, d))
    return features, np.where(features @ normal(stream(seed, "teacher"), (d,)) > 0, 1.0, -1.0)


def test_against_the_primal_problem() -> None:
    features, y = separable(12, 3)
    margin = kernel_margin(features @ features.T, y)
    signed = y[:, None] * features
    primal = scipy.optimize.minimize(
        lambda w: w @ w,
        np.linalg.lstsq(signed, np.ones(12), rcond=None)[0],
        jac=lambda w: 2 * w,
        constraints={"type": "ineq", "fun": lambda w: signed @ w - 1, "jac": lambda w: signed},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    np.testing.assert_allclose(margin.gamma, math.sqrt(2 / primal.fun), rtol=1e-6)
    assert margin.status == "separable"
    assert margin.lower <= margin.primal <= margin.dual * (1 + 1e-14)
    assert margin.dual <= margin.upper
    np.testing.assert_allclose(margin.primal, margin.dual, rtol=1e-12)
    theta = features.T @ margin.coefficients
    np.testing.assert_allclose(np.linalg.norm(theta), math.sqrt(2), rtol=1e-12)
    np.testing.assert_allclose(np.min(signed @ theta), margin.primal, rtol=1e-10)
    assert set(margin.support) <= set(np.flatnonzero(signed @ theta < margin.primal * (1 + 1e-9)))


def test_two_points_have_a_closed_form_and_scaling_is_linear() -> None:
    a, b = np.array([1.0, 0.2]), np.array([0.3, -0.9])
    K = np.array([[a @ a, a @ b], [a @ b, b @ b]])
    line = a + b  # y = (1, -1): the signed points are a and -b
    t = np.clip((a @ line) / (line @ line), 0, 1)
    shortest = np.linalg.norm(a - t * line)
    y, one = np.array([1, -1]), np.array([[4.0]])
    np.testing.assert_allclose(kernel_margin(K, y).gamma, math.sqrt(2) * shortest, rtol=1e-12)
    np.testing.assert_allclose(kernel_margin(9 * K, y, norm=1.0).gamma, 3 * shortest)
    np.testing.assert_allclose(kernel_margin(one, y[1:]).gamma, 2 * math.sqrt(2), rtol=1e-14)


@pytest.mark.parametrize(("dtype", "scale"), [("float64", 3.0), ("float32", 0.25)])
def test_the_bracket_is_widened_by_the_rounding_of_the_kernel(dtype: str, scale: float) -> None:
    """Two orthogonal features: weights 1/2, shortest combination scale/2, products scale/2."""
    margin = kernel_margin(scale * np.eye(2, dtype=dtype), np.array([1, -1]), norm=2.0)
    rounding = 2 * float(np.finfo(dtype).eps) * (4 * scale + 0.5 * scale)
    upper = 2.0 * math.sqrt(scale / 2 + rounding)
    assert margin.upper == pytest.approx(upper, rel=1e-14)
    assert margin.lower == pytest.approx(4 * (scale / 2 - rounding) / upper, rel=1e-14)
    assert margin.primal == pytest.approx(math.sqrt(2 * scale))
    assert margin.lower < margin.primal < margin.upper


@pytest.mark.parametrize("case", ["duplicate", "surrounded", "zero"])
def test_not_separable_is_said(case: str) -> None:
    features, y = separable(10, 3)
    if case == "duplicate":
        features, y = np.concatenate([features, features[:1]]), np.append(y, -y[0])
    elif case == "surrounded":
        y = np.where(np.arange(10) % 2 == 0, 1.0, -1.0)
        signed = y[:, None] * features
        feasible = scipy.optimize.linprog(
            np.zeros(3), A_ub=-signed, b_ub=-np.ones(10), bounds=(None, None)
        )
        assert not feasible.success
    else:
        features = np.zeros((4, 3))
        y = np.ones(4)
    margin = kernel_margin(features @ features.T, y)
    assert margin.status == "not separable"
    assert (margin.gamma, margin.primal, margin.dual) == (0, 0, 0)
    assert margin.lower == -math.inf
    assert margin.upper < 1e-6
    with pytest.raises(BadArgument, match="no direction"):
        margin.direction(LinearModel(1, 3), LinearParams(np.zeros((1, 3))), features[:, None])


def test_larger_problem_closes_its_bracket() -> None:
    features, y = separable(150, 200, seed=3)
    margin = kernel_margin(features @ features.T, y)
    assert margin.dual - margin.primal <= 1e-12 * margin.dual
    assert margin.upper - margin.lower <= 1e-9 * margin.dual


def test_linear_margin_equals_the_tangent_margin_of_the_linear_model() -> None:
    x = normal(stream(0, "x"), (6, 2, 4))
    y = np.where(np.arange(6) % 2 == 0, 1.0, -1.0)
    model, params = LinearModel(2, 4), LinearParams(np.zeros((2, 4)))
    linear = linear_margin(x, y)
    tangent = ntk_margin(model, params, x, y)
    np.testing.assert_allclose(math.sqrt(2) * linear.gamma, tangent.gamma, rtol=1e-12)
    theta = tangent.direction(model, params, x)
    achieved = direction_margins(model, params, theta, x, y, norm=None)
    np.testing.assert_allclose(np.min(achieved), tangent.gamma, rtol=1e-11)
    np.testing.assert_allclose(np.linalg.norm(theta.U), math.sqrt(2), rtol=1e-12)
    assert isinstance(theta, LinearParams)


def dm1(T: int, M: int, S: float) -> tuple[np.ndarray, np.ndarray]:
    """Noiseless tokenised mixtures of deora2024, one relevant token: every case, tokens S e_j."""
    samples, labels = [], []
    for sign, others in itertools.product((0, 1), itertools.product(range(M), repeat=T - 1)):
        tokens = [sign, *(2 + j for j in others)]
        samples.append(S * np.eye(M + 2)[tokens])
        labels.append(1.0 if sign == 0 else -1.0)
    return np.array(samples), np.array(labels)


def test_planted_direction_of_deora2024_has_its_exact_margin() -> None:
    """theta~_* at the exact first phase: gamma_* with zero noise, for any number of heads."""
    T, M, S, H = 4, 2, 2.0, 3
    zeta = 1 / T
    x, y = dm1(T, M, S)
    plus, minus = S * np.eye(M + 2)[:2]
    nus = S * np.eye(M + 2)[2:]
    u_star = plus - minus
    W_star = np.outer(plus, plus) + np.outer(minus, minus)
    W_star = W_star + sum(np.outer(nu, plus + minus) for nu in nus)
    alpha = np.array([1.0, -1.0, 1.0])
    model = MultiHeadAttention(T, M + 2, H)
    U0 = np.multiply.outer(alpha, np.tile(zeta / 4 * u_star, (T, 1)))
    params = MultiHeadParams(U0, np.zeros((H, M + 2, M + 2)))
    U_bar = np.tile(u_star, (T, 1)) / (S * math.sqrt(2 * T))
    W_bar = W_star / (S**2 * math.sqrt(2 * (M + 1)))
    theta = MultiHeadParams(np.stack([U_bar] * H), np.multiply.outer(alpha, W_bar))
    gamma_lin = zeta * S * math.sqrt(T / 2)
    gamma_star = T * (1 - zeta) * zeta**2 * S**4 / (4 * math.sqrt(2 * (M + 1))) + gamma_lin
    margins = direction_margins(model, params, theta, x, y)
    np.testing.assert_allclose(np.min(margins), gamma_star, rtol=1e-12)
    best = ntk_margin(model, params, x, y)
    assert best.lower > gamma_star
    achieved = direction_margins(model, params, best.direction(model, params, x), x, y)
    np.testing.assert_allclose(np.min(achieved), best.gamma, rtol=1e-9)


@pytest.mark.usefixtures("wrong_shapes")
def test_margin_along_a_run() -> None:
    """What the recorder stored gives the margin at every recorded step."""
    from headcount.core import LOGISTIC
    from headcount.training import gd, train

    model = MultiHeadAttention(3, 4, 2)
    x = normal(stream(0, "x"), (6, 3, 4))
    y = np.where(x[:, 0, 0] > 0, 1.0, -1.0)
    start = MultiHeadParams(normal(stream(1, "U"), (2, 3, 4)), normal(stream(1, "W"), (2, 4, 4)))
    settings = {"rule": gd(1.0), "steps": 4, "loss": LOGISTIC, "record_every": 4}
    run = train(model, start, x, y, record=[tangent_kernel], dtype="float64", **settings)
    path = margin_path(run.records["tangent_kernel"], y)
    expected = [ntk_margin(model, p, x, y).gamma for p in (start, run.parameters())]
    assert abs(expected[0] - expected[1]) > 1e-3 * expected[0] > 0
    np.testing.assert_allclose([margin.gamma for margin in path], expected, rtol=1e-9)
    with pytest.raises(BadArgument, match="kernels"):
        margin_path(run.records["tangent_kernel"], y[:5])


def test_a_float32_kernel_has_a_wider_bracket() -> None:
    features, y = separable(12, 3)
    K = features @ features.T
    wide, narrow = (kernel_margin(K.astype(t), y) for t in (np.float32, np.float64))
    assert wide.lower < narrow.lower <= narrow.upper < wide.upper
    assert wide.lower < narrow.gamma < wide.upper


def test_normalised_margin() -> None:
    U = np.array([[3.0], [4.0]])
    assert normalised_margin(np.array([2.0, -1.0]), np.array([1.0, -1.0]), U) == pytest.approx(0.2)
    assert normalised_margin(np.array([2.0, 1.0]), np.array([1.0, -1.0]), U) == pytest.approx(-0.2)
    assert math.isnan(normalised_margin(np.zeros(1), np.ones(1), 0 * U))


def test_float64_under_a_float32_caller() -> None:
    x = normal(stream(0, "x"), (4, 2, 3))
    y = np.array([1.0, -1.0, 1.0, -1.0])
    model, params = LinearModel(2, 3), LinearParams(np.zeros((2, 3)))
    here = ntk_margin(model, params, x, y)
    with jax.enable_x64(False):
        there = ntk_margin(model, params, x, y)
        assert jnp.zeros(()).dtype == jnp.float32
    np.testing.assert_allclose(there.gamma, here.gamma, rtol=1e-12)


def test_labels_must_be_signs() -> None:
    with pytest.raises(BadArgument, match=r"y = 0\.0: is not -1 or 1"):
        kernel_margin(np.eye(2), np.array([0.0, 1.0]))
    with pytest.raises(BadArgument, match="not -1 or 1"):
        linear_margin(np.ones((2, 1, 1)), np.array([2, 1]))
    with pytest.raises(BadArgument, match="no length"):
        direction_margins(
            LinearModel(1, 1), LinearParams(np.ones((1, 1))), LinearParams(np.zeros((1, 1))),
            np.ones((1, 1, 1)), np.ones(1),
        )  # fmt: skip
