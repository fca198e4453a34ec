"""Seed after seed inside a program: what is a seed's own, and what is shared."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from headcount.core import losses
from headcount.papers.deora2024.model import LinearModel, LinearParams
from headcount.training import gd
from headcount.training._loop import Loop, Problem, batch_indices
from headcount.training._programs import _each_seed

KEYS = np.stack([jax.random.key_data(jax.random.key(k)) for k in range(2)])


def problem(own_data: bool, own_held_out: bool) -> Problem:
    """Two seeds, three samples and two held-out ones, of one number each."""
    seeds = np.array([10.0, 20.0])
    y = np.arange(3.0)[None] + seeds[:, None] if own_data else np.arange(3.0)
    held_out = np.arange(2.0)[None] + seeds[:, None] if own_held_out else np.arange(2.0)
    start = LinearParams(seeds[:, None, None])
    return Problem(start, y[..., None, None], y, KEYS, (held_out[..., None, None], held_out))


@pytest.mark.parametrize("own_data", [False, True])
@pytest.mark.parametrize("own_held_out", [False, True])
@pytest.mark.usefixtures("wrong_shapes")
def test_every_seed_sees_its_own(own_data: bool, own_held_out: bool) -> None:
    def seen(own: Problem, more: Any) -> Any:
        assert own.validation is not None
        assert own.x.shape == (3, 1, 1)
        assert own.validation[0].shape == (2, 1, 1)
        return own.start.U[0, 0], own.y, own.validation[1], more

    given = problem(own_data, own_held_out)
    with jax.disable_jit():
        own = (own_data, own_held_out)
        start, y, held_out, more = _each_seed(own, seen, given, jnp.array([5.0, 6.0]))
    np.testing.assert_array_equal(start, [10, 20])
    np.testing.assert_array_equal(more, [5, 6])
    np.testing.assert_array_equal(y, np.broadcast_to(given.y, (2, 3)))
    assert given.validation is not None
    np.testing.assert_array_equal(held_out, np.broadcast_to(given.validation[1], (2, 2)))


def test_batches_are_those_of_their_step() -> None:
    key = jax.random.key(3)
    first, again, other = (np.asarray(batch_indices(key, k, 50, 4)) for k in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    assert set(first) == {0, 1, 2, 3}


def test_the_state_before_the_first_step_and_after_some() -> None:
    """Gradient descent on <U, X> = y with one sample: by hand."""
    loop = Loop(
        LinearModel(1, 1), losses["mean-squared"], gd(0.25), 1, 1, None, ("average", "best")
    )
    start = LinearParams(jnp.array([[2.0]]))
    state = loop.initial(start)
    assert (int(state.step), int(state.diverged_at)) == (0, -1)
    assert np.isinf(state.best_loss)
    data = Problem(start, jnp.ones((1, 1, 1)), jnp.zeros(1), jax.random.key(0))
    with jax.disable_jit():
        state, traces = loop.advance(state, data, jnp.int32(3), 4)
    # U -> U - 2 eta U = U / 2.
    np.testing.assert_allclose(traces["loss"], [4, 1, 0.25, np.nan])
    assert float(state.params.U[0, 0]) == pytest.approx(0.25)
    assert float(state.average.U[0, 0]) == pytest.approx((2 + 1 + 0.5) / 3)
    assert float(state.best.U[0, 0]) == pytest.approx(0.5)
    assert float(state.best_loss) == pytest.approx(0.25)
    assert int(state.step) == 3
    wild = data._replace(y=jnp.full(1, jnp.inf))
    with jax.disable_jit():
        stopped, traces = loop.advance(state, wild, jnp.int32(2), 4)
    assert int(stopped.diverged_at) == 3
    assert float(stopped.params.U[0, 0]) == pytest.approx(0.25)
