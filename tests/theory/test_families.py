"""Pieces of families: a norm and a projection that gradient ascent can follow everywhere."""

import jax
import jax.numpy as jnp
import numpy as np

from headcount.theory.families import into_ball, log_uniform, safe_norm


def test_the_safe_norm_is_the_norm_with_gradient_zero_at_zero() -> None:
    x = np.random.default_rng(0).normal(size=(3, 2, 4))
    np.testing.assert_allclose(safe_norm(x, axis=(-2, -1)), np.linalg.norm(x, axis=(-2, -1)))
    np.testing.assert_allclose(jax.grad(safe_norm)(x[0, 0]), x[0, 0] / np.linalg.norm(x[0, 0]))
    np.testing.assert_array_equal(jax.grad(safe_norm)(jnp.zeros(4)), np.zeros(4))


def test_only_what_is_outside_the_ball_is_shortened() -> None:
    x = np.array([[3.0, 4.0], [0.3, -0.4]])
    np.testing.assert_allclose(into_ball(x, 2.0), [[1.2, 1.6], [0.3, -0.4]])
    np.testing.assert_allclose(into_ball(x, axes=2), x / np.linalg.norm(x))


def test_log_uniform_spreads_over_orders_of_magnitude() -> None:
    drawn = log_uniform(np.random.default_rng(0), 1e-3, 1e3, 500, 2)
    assert drawn.shape == (500, 2)
    assert 1e-3 <= drawn.min() < 1e-2
    assert 1e2 < drawn.max() <= 1e3
