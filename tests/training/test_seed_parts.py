"""Seed after seed inside a program: what is a seed's own, and what is shared."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from training_problems import STATEFUL, MemoryCheckpoint, assert_same, linear

from headcount.core import BadArgument, losses
from headcount.papers.arda2026 import omega
from headcount.papers.deora2024.model import LinearModel, LinearParams
from headcount.training import Run, gd, momentum, projgd, stack_seeds, train
from headcount.training import _train as training_module
from headcount.training._loop import Loop, Problem, batch_indices
from headcount.training._programs import _each_seed
from own_models import SHAPES

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


@pytest.fixture(scope="module")
def reference() -> Run:
    model, params, x, y = linear(n=7)
    return train(model, params, x, y, **STATEFUL)


@pytest.mark.parametrize(("room", "seconds"), [(1024, 1e9), (1024, 1e-9), (2, 1e9)])
def test_how_steps_are_cut_into_calls_changes_nothing(
    room: int, seconds: float, reference: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training_module, "_ROOM", room)
    monkeypatch.setattr(training_module, "_SECONDS_PER_CALL", seconds)
    model, params, x, y = linear(n=7)
    seen: list[tuple[int, int, float]] = []
    run = train(model, params, x, y, progress=lambda *told: seen.append(told), **STATEFUL)
    assert_same(run, reference)
    assert [done for done, _, _ in seen] == sorted({done for done, _, _ in seen})
    assert seen[-1][:2] == (9, 9)
    assert seen[-1][2] == pytest.approx(run.loss[-1])
    if seconds < 1:
        assert len(seen) == 9


@pytest.mark.parametrize("interrupt_after", [1, 4, 5, 9])
def test_resumed_equals_uninterrupted(
    interrupt_after: int, reference: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training_module, "_SECONDS_PER_CALL", 1e-9)
    model, params, x, y = linear(n=7)
    checkpoint = MemoryCheckpoint(interrupt_after)
    with pytest.raises(KeyboardInterrupt):
        train(model, params, x, y, checkpoint=checkpoint, **STATEFUL)
    assert int(checkpoint.kept["done"]) == interrupt_after
    resumed = train(model, params, x, y, checkpoint=checkpoint, **STATEFUL)
    assert checkpoint.saves == 9, "a resumed run must not repeat steps"
    assert_same(resumed, reference)


def bad_inputs() -> dict[str, tuple[dict[str, Any], str]]:
    _, params, x, y = linear()
    holed = x.copy()
    holed[1, 2, 0] = np.nan
    infinite = np.where(np.arange(5) == 3, np.inf, y)
    wrong = LinearParams(np.zeros((2, 2)))
    nan_start = LinearParams(np.full((3, 2), np.nan))
    two = {"seeds": [0, 1], "initial": stack_seeds([params] * 2)}
    return {
        "nan-x": ({"x": holed}, r"x = .*has 1 NaN or infinite entries; clean the data first"),
        "inf-y": ({"y": infinite}, r"y = .*has 1 NaN or infinite"),
        "x-2d": ({"x": x[0]}, r"x = 'array of shape \(3, 2\)': must have shape \(any, any, any\)"),
        "x-text": ({"x": [["a"]]}, r"x = .*must hold numbers"),
        "x-ragged": ({"x": [[1.0], [1.0, 2.0]]}, r"x = .*is no array"),
        "y-short": ({"y": y[:-1]}, r"y = 'array of shape \(4,\)': must have shape \(5\)"),
        "y-column": ({"y": y[:, None]}, r"y = 'array of shape \(5, 1\)': must have shape \(5\)"),
        "empty": ({"x": x[:0], "y": y[:0]}, r"x = .*is empty; give n, T, d >= 1"),
        "other-d": ({"x": x[:, :, :1]}, r"x = 'samples of shape \(3, 1\)': do not fit LinearModel"),
        "params": (
            {"initial": wrong},
            r"U = 'array of shape \(1, 2, 2\)': must have shape \(1, 3, 2\)",
        ),
        "nan-params": ({"initial": nan_start}, r"U = .*has 6 NaN"),
        "seeds": (
            {"seeds": [0, 1, 2], "initial": two["initial"]},
            r"U = .*must have shape \(3, 3, 2\)",
        ),
        "no-seeds": ({"seeds": []}, r"seeds = \(\): is empty"),
        "negative-seed": ({**two, "seeds": [0, -1]}, r"seed = -1: must be a whole number"),
        "seed-data": ({**two, "x": x[None]}, r"x = .*must have shape \(2, any, any, any\)"),
        "signs": ({"loss": "logistic"}, r"y = .*must hold only -1 and \+1"),
        "loss": ({"loss": "hinge"}, r"loss = 'hinge': is not known"),
        "rule": ({"rule": "gd"}, r"rule = 'gd': is no update rule"),
        "steps": ({"steps": 0}, r"steps = 0: must be a whole number >= 1"),
        "record-every": ({"record_every": 0}, r"record_every = 0: must be"),
        "chunk": ({"chunk": 0}, r"chunk = 0: must be"),
        "dtype": ({"dtype": "float16"}, r"dtype = 'float16': is not a known choice"),
        "keep": ({"keep": "last"}, r"keep = 'last': is not a known choice; .*average, best"),
        "radii": ({"rule": projgd(0.1, omega(1, 1, 1))}, r"radii = .*does not name every block"),
        "validation": ({"validation": (holed, y)}, r"validation x = .*NaN"),
        "validation-d": ({"validation": (x[:, :, :1], y)}, r"validation x = .*must have shape"),
        "validation-y": ({"validation": (x, y[:2])}, r"validation y = .*must have shape \(5\)"),
    }


@pytest.mark.usefixtures("wrong_shapes")
@pytest.mark.parametrize("case", list(bad_inputs()))
def test_bad_input_is_named_before_any_compilation(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: Any) -> None:
        raise AssertionError("compiled before the arguments were checked")

    monkeypatch.setattr(training_module, "programs", lambda *_: None)
    monkeypatch.setattr(training_module._Trainer, "run", never)
    model, params, x, y = linear()
    changes, message = bad_inputs()[case]
    arguments = {"initial": params, "x": x, "y": y, "rule": gd(0.1), "steps": 1, **changes}
    with pytest.raises(BadArgument, match=message):
        train(model, **arguments)


F, PARAMS, X, Y, LOSS = SHAPES["a dict"]
GIVEN: dict[str, Any] = {"rule": momentum(0.3, 0.9), "loss": LOSS, "dtype": "float64", "steps": 7}


def cut(at: Any) -> tuple[Any, Any]:
    return {name: leaf[at] for name, leaf in X.items()}, Y[at]


BATCHES = [cut(np.array(at)) for at in ([0, 3, 4], [1, 2, 12], [5, 9])]
"""The last one is short."""


@pytest.mark.usefixtures("as_users_write")
@pytest.mark.parametrize("kind", ["list", "generator", "function"])
@pytest.mark.parametrize("interrupt_after", [1, 3, 5])
def test_resumed_at_its_position_it_equals_an_uninterrupted_run(
    kind: str, interrupt_after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training_module, "_SECONDS_PER_CALL", 1e-9)
    asked: list[int] = []

    def from_there(k: int) -> Any:
        asked.append(k)
        return (BATCHES[j % 3] for j in range(k, 100))

    def batches() -> Any:
        given = {"list": BATCHES, "function": from_there, "generator": from_there(0)}
        return given[kind]

    whole = train(F, PARAMS, X, Y, batches=batches(), **GIVEN)
    checkpoint = MemoryCheckpoint(interrupt_after)
    with pytest.raises(KeyboardInterrupt):
        train(F, PARAMS, X, Y, batches=batches(), checkpoint=checkpoint, **GIVEN)
    resumed = train(F, PARAMS, X, Y, batches=batches(), checkpoint=checkpoint, **GIVEN)
    np.testing.assert_array_equal(resumed.loss, whole.loss)
    for name, leaf in whole.params.items():
        np.testing.assert_array_equal(resumed.params[name], leaf)
    if kind == "function":
        assert asked[-1] == interrupt_after
