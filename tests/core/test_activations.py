"""Every registered activation: derivatives against autodiff, bounds on a grid and attained."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from headcount.core import BadArgument, activations

GRID = np.linspace(-14, 14, 280_001)

entries = {**dict(activations.items()), "scaled": activations["erf"].scaled(0.7, 2.5)}
every_activation = pytest.mark.parametrize("name", entries)


@every_activation
def test_derivatives_match_autodiff(name):
    act = entries[name]
    s = jnp.asarray(np.linspace(-6, 6, 401) + 0.0123)
    first = jax.vmap(jax.grad(act.function))
    second = jax.vmap(jax.grad(jax.grad(act.function)))
    np.testing.assert_allclose(act.derivative(s), first(s), rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(act.second_derivative(s), second(s), rtol=1e-9, atol=1e-13)
    np.testing.assert_array_equal(act(s), act.function(s))


@every_activation
def test_bounds_hold_and_are_attained(name):
    act = entries[name]
    for function, bound in [
        (act.function, act.sigma0),
        (act.derivative, act.sigma1),
        (act.second_derivative, act.sigma2),
    ]:
        largest = float(jnp.max(jnp.abs(function(GRID))))
        assert largest <= bound * (1 + 1e-12)
        if function is act.function:  # Some are attained only at infinity.
            largest = max(largest, float(jnp.abs(function(1e9))))
        assert largest >= bound * (1 - 1e-6)


@every_activation
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_precision_is_kept_and_large_arguments_stay_finite(name, dtype):
    act = entries[name]
    s = jnp.asarray([-1e4, -1.0, 0.0, 1.0, 1e4], dtype)
    for function in (act.function, act.derivative, act.second_derivative):
        assert function(s).dtype == dtype
        assert bool(jnp.all(jnp.isfinite(function(s))))


def test_scaling_is_checked():
    for A, k, argument in [(0.0, 1.0, "A"), (1.0, -1.0, "k")]:
        with pytest.raises(BadArgument) as caught:
            activations["tanh"].scaled(A, k)
        assert caught.value.argument == argument
