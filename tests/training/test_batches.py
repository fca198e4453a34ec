"""Batches that the user brings: the steps of plain descent, resumed at their position."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import optax
import pytest
from training_problems import linear

from headcount.core import BadArgument
from headcount.training import gd, momentum, sgd, stack_seeds, train
from own_models import SHAPES

pytestmark = pytest.mark.usefixtures("as_users_write")
F, PARAMS, X, Y, LOSS = SHAPES["a dict"]
GIVEN: dict[str, Any] = {"rule": momentum(0.3, 0.9), "loss": LOSS, "dtype": "float64", "steps": 7}


def cut(at: Any) -> tuple[Any, Any]:
    return {name: leaf[at] for name, leaf in X.items()}, Y[at]


BATCHES = [cut(np.array(at)) for at in ([0, 3, 4], [1, 2, 12], [5, 9])]
"""The last one is short."""


def descended(steps: int) -> tuple[list[float], Any]:
    """Heavy-ball descent on the batches in turn, and where it ends."""

    def loss(p: Any, x: Any, y: Any) -> Any:
        return optax.losses.sigmoid_binary_cross_entropy(
            jax.vmap(F, (None, 0))(p, x), (y + 1) / 2
        ).mean()

    p, speed, found = PARAMS, jax.tree.map(np.zeros_like, PARAMS), []
    for k in range(steps):
        value, slope = jax.value_and_grad(loss)(p, *BATCHES[k % 3])
        speed = jax.tree.map(lambda v, g: 0.9 * v + g, speed, slope)
        p = jax.tree.map(lambda a, v: a - 0.3 * v, p, speed)
        found.append(float(value))
    return found, p


def test_every_step_takes_the_next_batch_and_a_list_begins_anew() -> None:
    losses, end = descended(7)
    run = train(F, PARAMS, X, Y, batches=BATCHES, record="loss", record_every=3, **GIVEN)
    np.testing.assert_allclose(run.loss, losses, rtol=1e-12)
    for name, leaf in end.items():
        np.testing.assert_allclose(run.params[name], leaf, rtol=1e-11)
    assert run.settings["batch_size"] == "given"
    # What is recorded and the final loss are those on x and y.
    np.testing.assert_allclose(run.records["loss"][-1], run.final_loss, rtol=1e-12)
    start = train(F, PARAMS, X, Y, rule=gd(0.1), steps=1, loss=LOSS, dtype="float64").loss[0]
    np.testing.assert_allclose(run.records["loss"][0], start, rtol=1e-12)


def test_all_seeds_take_the_same_batches() -> None:
    both = stack_seeds([PARAMS, jax.tree.map(lambda leaf: leaf + 0.1, PARAMS)])
    run = train(F, both, X, Y, batches=BATCHES, seeds=(4, 9), **GIVEN)
    alone = train(F, PARAMS, X, Y, batches=BATCHES, **GIVEN)
    np.testing.assert_array_equal(run.loss[0], alone.loss)
    assert run.loss.shape == (2, 7)
    assert not np.any(run.loss[1] == run.loss[0])


def test_an_iterator_that_ends_leaves_the_steps_it_had() -> None:
    with pytest.warns(UserWarning, match="batches ended after 3 of 7 steps"):
        run = train(F, PARAMS, X, Y, batches=iter(BATCHES), **GIVEN)
    assert run.loss.shape == (3,)
    assert run.settings["steps"] == 3


def test_models_of_the_papers_take_them() -> None:
    model, params, x, y = linear(n=6)
    given = {"rule": gd(0.1), "steps": 4}
    run = train(model, params, x, y, batches=[(x[:3], y[:3]), (x[3:], y[3:])], **given)
    half = train(model, params, x[:3], y[:3], rule=gd(0.1), steps=1)
    np.testing.assert_array_equal(run.loss[0], half.loss[0])
    again = train(model, half.params, x[3:], y[3:], rule=gd(0.1), steps=1)
    np.testing.assert_allclose(run.loss[1], again.loss[0], rtol=1e-6)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"batches": 3}, r"batches = 'int': is no iterable; give an iterable of \(x, y\)"),
        ({"batches": []}, "batches = 0: hold no batch; give one for each step"),
        ({"batches": [X]}, r"batches = 'batch 0: dict': is no pair of samples and labels"),
        ({"batches": [(X["ids"], Y)]}, "batch 0 x = .*differ from the training samples"),
        ({"batches": [BATCHES[0], (X, Y[:4])]}, "batch 1 y = .*does not fit 13 samples"),
        ({"batches": [(X, 2 * Y)]}, "batch 0 y = .*must hold only -1 and"),
        ({"batches": BATCHES, "rule": sgd(0.1, batch_size=3)}, "rule = 'sgd': draws batches of"),
        ({"batches": BATCHES, "trace": "validation", "validation": (X, Y)}, "trace = 'batches'"),
    ],
)
def test_what_does_not_fit_is_told(changes: Any, message: str) -> None:
    with pytest.raises(BadArgument, match=message):
        train(F, PARAMS, X, Y, **{**GIVEN, **changes})
