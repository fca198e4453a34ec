"""Samples, labels and outputs of any shape: README's "any f(params, x)" in eight shapes."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from headcount.core import BadArgument
from headcount.training import from_optax, gd, sgd, stack_seeds, train
from own_models import CLASSES, REAL, SHAPES, VECTORS, K, N

pytestmark = pytest.mark.usefixtures("as_users_write")


def slow_losses(f: Any, p: Any, x: Any, y: Any, loss: Any, eta: float, steps: int) -> list[float]:
    """Plain descent, sample by sample."""
    each = {
        "mean-squared": lambda o, t: np.mean(1.0) * jnp.sum((o - t) ** 2),
        "half-squared-sum": lambda o, t: N * 0.5 * jnp.sum((o - t) ** 2),
        "logistic": lambda o, t: jnp.log1p(jnp.exp(-t * o)),
        "cross-entropy": lambda o, t: jnp.log(jnp.sum(jnp.exp(o))) - o[t],
    }.get(loss, loss)

    def whole(p: Any) -> Any:
        samples = [jax.tree.map(lambda leaf: leaf[j], x) for j in range(N)]  # noqa: B023
        return sum(each(f(p, one), y[j]) for j, one in enumerate(samples)) / N

    found, step = [], jax.jit(jax.value_and_grad(whole))
    for _ in range(steps):
        value, slope = step(p)
        found.append(float(value))
        p = jax.tree.map(lambda a, g: a - eta * g, p, slope)
    return found


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_descends_as_plain_descent_does(name: str) -> None:
    f, params, x, y, loss = SHAPES[name]
    run = train(f, params, x, y, rule=gd(0.02), steps=4, loss=loss, dtype="float64", chunk=5)
    with jax.enable_x64(True):
        expected = slow_losses(f, params, x, y, loss, 0.02, 4)
    np.testing.assert_allclose(run.loss, expected, rtol=1e-11)


@pytest.mark.parametrize("name", ["ids", "images"])
def test_recorders_validation_batches_and_seeds_take_them(name: str) -> None:
    f, params, x, y, loss = SHAPES[name]
    both = stack_seeds([params, jax.tree.map(lambda leaf: leaf + 0.1, params)])
    recorders = ["loss", "outputs", "validation", "jacobian", "gradient", "distance", "linearised"]
    held_out = (x[:4], y[:4])
    run = train(
        f, both, x, y, rule=sgd(0.05, batch_size=4), steps=3, loss=loss, seeds=(3, 8),
        record=recorders, record_every=3, validation=held_out,
    )  # fmt: skip
    alone = train(
        f, jax.tree.map(lambda leaf: leaf[1], both), x, y, rule=sgd(0.05, batch_size=4), steps=3,
        loss=loss, seeds=None, record=recorders, record_every=3, validation=held_out,
    )  # fmt: skip
    outputs = np.asarray(run.records["outputs"])
    assert outputs.shape == (2, 2, N, *(() if name == "ids" else (K,)))
    final, first = (
        jax.tree.map(jnp.asarray, run.parameters(*at)) for at in (("final", 8), ("initial", 3))
    )
    direct = jax.vmap(f, in_axes=(None, 0))(final, x)
    np.testing.assert_allclose(outputs[1, -1], direct, rtol=1e-5, atol=1e-6)
    assert alone.loss.shape == (3,)
    jacobian = jax.vmap(jax.jacrev(f), in_axes=(None, 0))(first, x)["b"]
    lengths = np.linalg.norm(np.asarray(jacobian).reshape(N, -1), axis=1)
    np.testing.assert_allclose(run.records["jacobian_max_b"][0, 0], lengths.max(), rtol=1e-4)
    assert run.to_xarray().sizes["seed"] == 2


def test_the_margin_of_classes_is_the_least_lead_of_the_right_one() -> None:
    f, params, x, _, _ = SHAPES["images"]
    y = CLASSES
    run = train(f, params, x, y, rule=gd(0.1), steps=1, loss="cross-entropy", record="margin",
                record_every=1)  # fmt: skip
    out = np.asarray(jax.vmap(f, in_axes=(None, 0))(params, x))
    lead = [out[j, y[j]] - max(out[j, k] for k in range(K) if k != y[j]) for j in range(N)]
    np.testing.assert_allclose(run.records["margin"][0], min(lead), rtol=1e-4)


def test_seeds_with_samples_of_their_own_and_any_optimiser() -> None:
    f, params, x, y, loss = SHAPES["matrix"]
    both = stack_seeds([params, params])
    xs, ys = np.stack([x, 2 * x]), np.stack([y, -y])
    run = train(
        f, both, xs, ys, rule=from_optax(optax.adam(0.01)), steps=3, loss=loss, seeds=(0, 1)
    )
    second = train(f, params, 2 * x, -y, rule=from_optax(optax.adam(0.01)), steps=3, loss=loss)
    np.testing.assert_array_equal(run.loss[1], second.loss)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y": VECTORS}, "y = .*hold \\(3,\\) for each sample, beside outputs of shape \\(\\)"),
        ({"y": REAL[:4]}, "y = .*does not fit 13 samples"),
        ({"loss": "cross-entropy"}, "y = .*are no classes; give whole numbers"),
        ({"loss": "cross-entropy", "y": CLASSES}, "model = .*one for each class is due"),
        ({"x": {"a": np.ones((2, 3)), "b": np.ones(3)}}, "x = .*same number of samples"),
        ({"validation": (np.ones((2, 6)), REAL[:2])}, "validation x = .*differ from the training"),
        ({"loss": 3}, "loss = 3: is a int; use .*or a function of one output and one label"),
    ],
)
def test_what_does_not_fit_is_told_before_any_work(changes: Any, message: str) -> None:
    f, params, x, y, loss = SHAPES["matrix"]
    arguments = {"x": x, "y": y, "loss": loss, "rule": gd(0.1), "steps": 1, **changes}
    with pytest.raises(BadArgument, match=message):
        train(f, params, **arguments)


def test_classes_must_be_among_the_outputs() -> None:
    f, params, x, _, loss = SHAPES["images"]
    with pytest.raises(
        BadArgument, match=r"classes from 1 to 3'?: do not fit 3 outputs; use 0\.\.k-1"
    ):
        train(f, params, x, CLASSES * 0 + np.r_[1, 3, np.ones(N - 2, int)], rule=gd(0.1), steps=1,
              loss=loss)  # fmt: skip
