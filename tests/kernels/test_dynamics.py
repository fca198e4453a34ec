"""Kernel gradient flow and descent, against closed forms and linearised training."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

from headcount.core import LOGISTIC, MEAN_SQUARED, BadArgument, Loss, losses, normal, stream, total
from headcount.kernels import (
    compare_runs,
    kernel_descent,
    kernel_flow,
    kernel_regression,
    train_linearised,
)
from headcount.models import outputs
from headcount.papers.arda2026 import PooledAttention, unpaired

FEATURES = normal(stream(0, "features"), (5, 7))
NEW = normal(stream(0, "new"), (3, 7))
K, K_NEW = FEATURES @ FEATURES.T, NEW @ FEATURES.T
Y, F0, F0_NEW = (normal(stream(0, name), (k,)) for name, k in (("y", 5), ("f", 5), ("g", 3)))
START = {"f0": F0, "kernel_test": K_NEW, "f0_test": F0_NEW}


@pytest.mark.parametrize(
    ("loss", "rate"), [(MEAN_SQUARED, 2 / 5), (losses["half-squared-sum"], 1.0)]
)
def test_flow_at_zero_between_and_at_infinity(loss: Loss, rate: float) -> None:
    run = kernel_flow(K, Y, [0.0, 0.3, np.inf], loss=loss, **START)
    np.testing.assert_array_equal(run.train[0], F0)
    np.testing.assert_array_equal(run.test[0], F0_NEW)
    middle = Y + scipy.linalg.expm(-rate * K * 0.3) @ (F0 - Y)
    np.testing.assert_allclose(run.train[1], middle, rtol=1e-11)
    fit = kernel_regression(K, Y, f0=F0)
    np.testing.assert_allclose(run.train[2], fit.train, rtol=1e-11)
    np.testing.assert_allclose(run.test[2], fit.predict(K_NEW, F0_NEW), rtol=1e-11)
    np.testing.assert_allclose(run.predict(K_NEW, F0_NEW), run.test, rtol=1e-13)
    assert run.loss[0] > run.loss[1] > run.loss[2]
    # The flow solves its equation: a central difference of the test outputs against their slope.
    ends = kernel_flow(K, Y, [0.3 - 1e-5, 0.3 + 1e-5], loss=loss, **START).test
    slope = -rate * K_NEW @ (run.train[1] - Y)
    np.testing.assert_allclose((ends[1] - ends[0]) / 2e-5, slope, rtol=1e-7)


def test_flow_with_a_singular_kernel_and_with_one_sample() -> None:
    doubled = np.concatenate([FEATURES, FEATURES[:1]])
    y = np.append(Y, Y[0] + 1.0)
    run = kernel_flow(doubled @ doubled.T, y, [1e12, np.inf], kernel_test=NEW @ doubled.T)
    np.testing.assert_allclose(run.train[:, [0, 5]], Y[0] + 0.5, rtol=1e-9)
    np.testing.assert_allclose(run.test[0], run.test[1], rtol=1e-9)
    alone = kernel_flow(np.array([[2.0]]), np.array([3.0]), [0.5])
    np.testing.assert_allclose(alone.train, 3 * (1 - np.exp(-2.0)), rtol=1e-14)


@pytest.mark.parametrize("loss", [MEAN_SQUARED, losses["half-squared-sum"], LOGISTIC])
def test_descent_against_a_plain_loop(loss: Loss) -> None:
    y = np.sign(Y)
    run = kernel_descent(K, y, eta=0.05, steps=4, loss=loss, **START)
    f, g, weight = F0, F0_NEW, loss.weight(5)
    for k in range(5):
        np.testing.assert_allclose(run.train[k], f, rtol=1e-12)
        np.testing.assert_allclose(run.test[k], g, rtol=1e-12)
        np.testing.assert_allclose(run.loss[k], total(loss, jnp.asarray(f), jnp.asarray(y)))
        slope = np.asarray(loss.slope(jnp.asarray(f), jnp.asarray(y)))
        f, g = f - 0.05 * weight * K @ slope, g - 0.05 * weight * K_NEW @ slope


@pytest.mark.parametrize(
    ("loss", "radius"),
    [(MEAN_SQUARED, None), (losses["half-squared-sum"], 0.3), (LOGISTIC, None), (LOGISTIC, 0.3)],
)
def test_descent_equals_linearised_training_step_for_step(loss: Loss, radius: float | None) -> None:
    model = PooledAttention(3, 4)
    initial = unpaired(model, 1)
    x, x_new = normal(stream(0, "x"), (6, 4, 3)) / 2, normal(stream(0, "x-new"), (2, 4, 3)) / 2
    y = np.sign(normal(stream(0, "labels"), (6,)))
    jacobian = jax.jit(jax.vmap(jax.grad(model), (None, 0)))(initial, np.concatenate([x, x_new]))
    J = np.concatenate([np.reshape(leaf, (8, -1)) for leaf in jacobian], axis=1)
    f0 = np.asarray(jax.jit(partial(outputs, model))(initial, np.concatenate([x, x_new])))
    steps = {"eta": 0.05, "steps": 200, "loss": loss, "radius": radius}
    predicted = kernel_descent(
        J[:6] @ J[:6].T, y, f0=f0[:6], kernel_test=J[6:] @ J[:6].T, f0_test=f0[6:], **steps
    )
    trained = train_linearised(model, initial, x, y, x_test=x_new, **steps)
    np.testing.assert_allclose(predicted.train, trained.train, rtol=0, atol=1e-10)
    np.testing.assert_allclose(predicted.test, trained.test, rtol=0, atol=1e-10)
    np.testing.assert_allclose(predicted.loss, trained.loss, rtol=0, atol=1e-10)
    if radius is not None:
        square = predicted.coefficients[-1] @ (J[:6] @ J[:6].T) @ predicted.coefficients[-1]
        np.testing.assert_allclose(square, radius**2, rtol=1e-10)


def test_small_steps_approach_the_flow_and_large_ones_diverge() -> None:
    gaps = []
    for steps in (400, 800):
        run = kernel_descent(K, Y, eta=1.0 / steps, steps=steps, record_every=steps, **START)
        gaps.append(np.max(np.abs(run.train[-1] - kernel_flow(K, Y, [1.0], **START).train[0])))
    assert 1.8 < gaps[0] / gaps[1] < 2.2  # first order in the step size
    edge = 2 / (2 / 5 * np.linalg.eigvalsh(K)[-1])
    stable = kernel_descent(K, Y, eta=0.99 * edge, steps=400).loss
    unstable = kernel_descent(K, Y, eta=1.01 * edge, steps=400).loss
    assert stable[-1] < stable[0] < unstable[-1]


def test_comparison_with_a_recorded_run() -> None:
    predicted = kernel_descent(K, Y, eta=0.01, steps=10, **START)
    shifted = predicted.train[::2] + np.where(np.arange(6)[:, None] > 0, 0.1, 0.0)
    gap = compare_runs(predicted, shifted[:4], [0, 2, 4, 99])
    np.testing.assert_array_equal(gap.times, [0, 2, 4])
    np.testing.assert_allclose(gap.largest, [0, 0.1, 0.1], atol=1e-14)
    moved = np.sqrt(np.mean((shifted[1] - shifted[0]) ** 2))
    np.testing.assert_allclose(gap.relative[1], 0.1 / moved, rtol=1e-10)
    assert np.isnan(gap.relative[0])
    assert compare_runs(predicted, predicted.test, range(11), on="test").largest.max() == 0
    with pytest.raises(BadArgument, match="common"):
        compare_runs(predicted, shifted[:1], [77])


def test_float64_under_a_float32_caller() -> None:
    with jax.enable_x64(False):
        run = kernel_descent(K.astype(np.float32), Y.astype(np.float32), eta=0.1, steps=3)
        assert jnp.zeros(()).dtype == jnp.float32
    assert run.train.dtype == np.float64
    assert run.loss.dtype == np.float64
    assert set(run.to_xarray().sizes) == {"step", "sample"}


def test_bad_arguments() -> None:
    with pytest.raises(BadArgument, match="no closed form"):
        kernel_flow(K, np.sign(Y), [1.0], loss=LOGISTIC)
    with pytest.raises(BadArgument, match="not -1 or 1"):
        kernel_descent(K, Y, eta=0.1, steps=1, loss=LOGISTIC)
    with pytest.raises(BadArgument, match="times"):
        kernel_flow(K, Y, [-1.0])
