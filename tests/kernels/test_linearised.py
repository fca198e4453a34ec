"""The linearised model and gradient descent on it."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from headcount.core import (
    LOGISTIC,
    MEAN_SQUARED,
    BadArgument,
    Loss,
    cast,
    losses,
    normal,
    stream,
    total,
)
from headcount.kernels import Linearised, train_linearised
from headcount.models import outputs
from headcount.papers.arda2026 import PooledAttention, PooledAttentionParams, unpaired
from headcount.papers.deora2024.model import MultiHeadAttention, MultiHeadParams
from headcount.papers.wu2023.model import Encoder
from headcount.papers.wu2023.starts import ntk_normal


def problem(n: int = 5) -> tuple[PooledAttention, PooledAttentionParams, np.ndarray, np.ndarray]:
    model = PooledAttention(3, 4)
    x = normal(stream(0, "x"), (n, 4, 3)) / 2
    return model, unpaired(model, 1), x, np.sign(normal(stream(0, "y"), (n,)))


@pytest.mark.parametrize("kind", ["arda2026", "deora2024", "wu2023"])
def test_value_and_gradient_are_those_of_the_tangent_plane(kind: str) -> None:
    models = {
        "arda2026": PooledAttention(3, 4),
        "deora2024": MultiHeadAttention(4, 3, 2),
        "wu2023": Encoder(3, 5, 0.4, 0.5, "mean"),
    }
    model = models[kind]
    if kind == "deora2024":
        shapes = model.shapes()
        params = MultiHeadParams(normal(stream(2, "U"), shapes.U), normal(stream(2, "W"), shapes.W))
    else:
        params = unpaired(model, 0) if kind == "arda2026" else ntk_normal(model, 0)
    x = normal(stream(0, "x"), (4, 3))
    flat = Linearised(model, params)
    moved = jax.tree.map(lambda p: p + 0.3 * np.cos(np.arange(p.size)).reshape(p.shape), params)
    value, gradient = jax.jit(jax.value_and_grad(model))(params, x)
    expected = value + sum(
        jnp.vdot(g, m - p) for g, m, p in zip(gradient, moved, params, strict=True)
    )
    there, flat_gradient = jax.jit(jax.value_and_grad(flat))(moved, x)
    np.testing.assert_allclose(there, expected, rtol=1e-12)
    np.testing.assert_allclose(jax.jit(flat)(params, x), value, rtol=1e-14)
    jax.tree.map(
        lambda g, h: np.testing.assert_allclose(g, h, rtol=1e-12, atol=1e-14),
        flat_gradient,
        gradient,
    )
    assert flat.shapes() == model.shapes()
    assert flat.name == f"{kind}-linearised"


@pytest.mark.parametrize("loss", [MEAN_SQUARED, losses["half-squared-sum"], LOGISTIC])
def test_training_equals_plain_gradient_descent_on_the_linearised_model(loss: Loss) -> None:
    model, initial, x, y = problem()
    run = train_linearised(model, initial, x, y, eta=0.2, steps=6, loss=loss, x_test=x[:2] + 0.1)
    flat = Linearised(model, initial)
    step = jax.jit(jax.value_and_grad(lambda p: total(loss, outputs(flat, p, x), y)))
    at = jax.jit(lambda p, s: outputs(flat, p, s))
    params = jax.tree.map(jnp.asarray, initial)
    for k in range(7):
        value, gradient = step(params)
        np.testing.assert_allclose(run.loss[k], value, rtol=1e-12)
        np.testing.assert_allclose(run.train[k], at(params, x), rtol=1e-11, atol=1e-13)
        np.testing.assert_allclose(run.test[k], at(params, x[:2] + 0.1), rtol=1e-11, atol=1e-13)
        if k < 6:
            params = jax.tree.map(lambda p, g: p - 0.2 * g, params, gradient)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-11), run.params, params)


def test_recording_every_k_steps_changes_nothing() -> None:
    model, initial, x, y = problem()
    dense = train_linearised(model, initial, x, y, eta=0.1, steps=6)
    sparse = train_linearised(model, initial, x, y, eta=0.1, steps=6, record_every=3)
    np.testing.assert_array_equal(sparse.steps, [0, 3, 6])
    np.testing.assert_allclose(sparse.train, dense.train[::3], rtol=1e-13)
    assert sparse.to_xarray().train.sizes == {"step": 3, "sample": 5}


def test_radius_keeps_the_parameters_in_their_ball() -> None:
    model, initial, x, y = problem()
    run = train_linearised(model, initial, x, y, eta=0.5, steps=20, radius=0.05)
    moved = jax.tree.map(np.subtract, run.params, initial)
    np.testing.assert_allclose(np.sqrt(sum(np.sum(m**2) for m in moved)), 0.05, rtol=1e-12)


def test_float64_under_a_float32_caller_and_single_precision_params() -> None:
    model, initial, x, y = problem()
    with jax.enable_x64(False):
        run = train_linearised(model, initial, x, y, eta=0.1, steps=2)
        assert jnp.zeros(()).dtype == jnp.float32
        single = jax.jit(Linearised(model, initial))(
            cast(initial, "float32"), jnp.asarray(x[0], "float32")
        )
    assert run.train.dtype == np.float64
    assert single.dtype == jnp.float32
    here = train_linearised(model, initial, x, y, eta=0.1, steps=2)
    np.testing.assert_array_equal(run.train, here.train)


def test_bad_arguments() -> None:
    model, initial, x, y = problem()
    with pytest.raises(BadArgument, match="not -1 or 1"):
        train_linearised(model, initial, x, 0.5 * y, eta=0.1, steps=2, loss=LOGISTIC)
    with pytest.raises(BadArgument, match="divide"):
        train_linearised(model, initial, x, y, eta=0.1, steps=5, record_every=2)
    with pytest.raises(BadArgument, match="eta"):
        train_linearised(model, initial, x, y, eta=-1.0, steps=5)
    holed = np.where(np.arange(x.size).reshape(x.shape) == 5, np.nan, x)
    with pytest.raises(BadArgument, match=r"x_test = .*has 1 NaN or infinite"):
        train_linearised(model, initial, x, y, eta=0.1, steps=5, x_test=holed)
    for wrong in (x[0], x[:, :2], x[..., :2]):
        with pytest.raises(BadArgument, match=r"x_test = .*must have shape \(4, 3\)"):
            train_linearised(model, initial, x, y, eta=0.1, steps=5, x_test=wrong)


def test_what_is_tested_does_not_touch_what_is_trained() -> None:
    """Test samples that overflow leave the run as it is without them."""
    model, initial, x, y = problem()
    alone = train_linearised(model, initial, x, y, eta=0.1, steps=3)
    beside = train_linearised(model, initial, x, y, eta=0.1, steps=3, x_test=1e200 * x)
    assert alone.test is None
    assert not np.all(np.isfinite(beside.test))
    jax.tree.map(np.testing.assert_array_equal, alone.params, beside.params)
    empty = train_linearised(model, initial, x, y, eta=0.1, steps=3, x_test=x[:0])
    assert empty.test.shape == (4, 0)
