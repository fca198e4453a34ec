"""Update rules against recursions written out in NumPy, on the linear model <U, X>."""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np
import optax
import pytest
from training_problems import linear, linear_gradient, linear_loss

from headcount.core import BadArgument, stream
from headcount.training import (
    HeadBalls,
    NoProjection,
    adam,
    from_optax,
    gd,
    momentum,
    optimisers,
    projgd,
    projsgd,
    sgd,
    train,
)
from headcount.training._loop import batch_indices
from headcount.training._rules import UpdateRule

STEPS, SEED, RHO = 6, 11, 0.2
BALLS = HeadBalls((("U", RHO),))
Update = Callable[[np.ndarray, np.ndarray, int, dict], np.ndarray]


def plain(eta: float) -> Update:
    return lambda U, g, k, memory: U - eta * g


def heavy_ball(eta: float, beta: float) -> Update:
    def update(U, g, k, memory):
        memory["b"] = beta * memory.get("b", 0) + g
        return U - eta * memory["b"]

    return update


def adam_recursion(eta: float, b1: float, b2: float, eps: float) -> Update:
    def update(U, g, k, memory):
        memory["m"] = b1 * memory.get("m", 0) + (1 - b1) * g
        memory["v"] = b2 * memory.get("v", 0) + (1 - b2) * g**2
        first = memory["m"] / (1 - b1 ** (k + 1))
        second = memory["v"] / (1 - b2 ** (k + 1))
        return U - eta * first / (np.sqrt(second) + eps)

    return update


def onto_balls(U: np.ndarray, start: np.ndarray) -> np.ndarray:
    radius = RHO / np.sqrt(len(U))
    away = U - start
    lengths = np.linalg.norm(away, axis=1, keepdims=True)
    return start + away * np.minimum(1, radius / lengths)


CASES = {
    "gd": (gd(0.1), plain(0.1)),
    "projgd": (projgd(0.1, BALLS), plain(0.1)),
    "sgd": (sgd(0.1, batch_size=3), plain(0.1)),
    "projsgd": (projsgd(0.1, BALLS), plain(0.1)),
    "momentum": (momentum(0.05, beta=0.7), heavy_ball(0.05, 0.7)),
    "momentum-batches": (momentum(0.05, 0.7, batch_size=2), heavy_ball(0.05, 0.7)),
    "adam": (adam(0.1, 0.8, 0.9, 1e-4), adam_recursion(0.1, 0.8, 0.9, 1e-4)),
    "optax": (from_optax(optax.sgd(0.05, momentum=0.7), BALLS), heavy_ball(0.05, 0.7)),
}


@pytest.mark.parametrize("case", CASES)
def test_rule_follows_its_recursion(case: str) -> None:
    rule, update = CASES[case]
    model, params, x, y = linear()
    key = stream(SEED, "batches")
    U, memory, losses = params.U, {}, []
    for k in range(STEPS):
        index = np.arange(len(y))
        if rule.batch_size is not None:
            index = np.asarray(batch_indices(key, k, rule.batch_size, len(y)))
        losses.append(linear_loss(U, x[index], y[index]))
        U = update(U, linear_gradient(U, x[index], y[index]), k, memory)
        if not isinstance(rule.projection, NoProjection):
            U = onto_balls(U, params.U)
    stacked = jax.tree.map(lambda leaf: leaf[None], params)
    run = train(model, stacked, x, y, rule=rule, steps=STEPS, seeds=[SEED], dtype="float64")
    run = run.without_seeds()
    np.testing.assert_allclose(run.params.U, U, rtol=1e-10)
    np.testing.assert_allclose(run.loss, losses, rtol=1e-10)
    np.testing.assert_allclose(run.final_loss, linear_loss(U, x, y), rtol=1e-10)


def test_batches_are_a_function_of_key_and_step() -> None:
    key = stream(3, "batches")
    drawn = np.asarray(jax.vmap(lambda k: batch_indices(key, k, 4, 10))(np.arange(200)))
    for k in (0, 7, 199):
        np.testing.assert_array_equal(drawn[k], batch_indices(key, k, 4, 10))
    counts = np.bincount(np.ravel(drawn), minlength=10)
    assert len(counts) == 10
    # 800 draws: each count is Binomial(800, 1/10), standard error 8.5.
    assert np.abs(counts - 80).max() < 5 * 8.5
    assert not np.array_equal(drawn[0], np.asarray(batch_indices(stream(4, "batches"), 0, 4, 10)))


def example(name: str, eta: float = 0.05) -> UpdateRule:
    """The rule `name` with plain arguments."""
    arguments = {"projgd": (BALLS,), "projsgd": (BALLS, 4), "sgd": (4,)}
    return optimisers[name](eta, *arguments.get(name, ()))


@pytest.mark.parametrize("name", list(optimisers))
def test_every_optimiser_conforms(name: str) -> None:
    assert optimisers[name].__doc__
    rule = example(name)
    assert rule.name == name
    assert dict(rule.settings)["eta"] == 0.05
    assert rule == example(name), "equal settings must share compiled programs"
    assert hash(rule) == hash(example(name))
    assert rule != example(name, eta=0.06)
    for eta in (0, -0.1, float("nan"), float("inf"), True, None):
        with pytest.raises(BadArgument, match=r"eta = .*must be a finite number > 0; set eta > 0"):
            example(name, eta=eta)
    model, params, x, y = linear(n=8)
    run = train(model, params, x, y, rule=rule, steps=20, dtype="float64")
    assert run.final_loss < linear_loss(params.U, x, y)


def test_rules_of_different_transformations_differ() -> None:
    """Equal names do not make equal rules: each would run the other's compiled program."""
    slow, fast = UpdateRule("mine", optax.sgd(0.01)), UpdateRule("mine", optax.sgd(0.1))
    assert slow != fast
    model, params, x, y = linear()
    ends = [train(model, params, x, y, rule=rule, steps=2).params.U for rule in (slow, fast)]
    assert not np.allclose(ends[0], ends[1])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: projgd(0.1, NoProjection()), "projection = .*is missing, and projgd projects"),
        (lambda: projsgd(0.1, None), "projection = None: is missing, and projsgd projects"),
        (lambda: sgd(0.1, 0), "batch_size = 0: must be a whole number >= 1"),
        (lambda: adam(0.1, batch_size=0), "batch_size = 0: must be"),
        (lambda: momentum(0.1, batch_size=1.5), "batch_size = 1.5: must be"),
        (lambda: momentum(0.1, beta=1.0), "beta = 1.0: must be below 1"),
        (lambda: momentum(0.1, beta=-0.1), "beta = -0.1: must be"),
        (lambda: adam(0.1, b2=1.0), "b2 = 1.0: must be below 1"),
        (lambda: adam(0.1, eps=0.0), "eps = 0.0: must be a finite number > 0"),
        (lambda: from_optax("adam"), "transform = 'adam': is no optax transformation"),
        (lambda: optimisers["adan"], "optimiser = 'adan': is not known; did you mean adam"),
    ],
)
def test_bad_rules_are_named(make: Callable[[], object], message: str) -> None:
    with pytest.raises(BadArgument, match=message):
        make()
