"""The vision Transformer: its collapse is exact under momentum; epochs by a NumPy loop."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from headcount.core import BadArgument, normal, stream
from headcount.papers.wu2023.vit import (
    BLOCKS,
    READOUTS,
    STARTS,
    VisionTransformer,
    collapse,
    vision_start,
)
from headcount.training import EpochTraining, cross_entropy, sign_regression

P, T, D, N = 5, 6, 3, 40


def uncollapsed(model, params, x):
    """The twin: queries, keys and values of all d_m features, no product of two matrices."""
    parts = BLOCKS[model.block]

    def norm(which, z):
        if "norm" not in parts:
            return z
        scaled = (z - z.mean(axis=1, keepdims=True)) / jnp.sqrt(z.var(axis=1) + 1e-6)[:, None]
        return params.scales[which][None] * scaled + params.shifts[which][None]

    z = x @ params.E
    if model.readout == "class":
        z = jnp.pad(z, ((1, 0), (0, 0)))
    z = z + params.positions
    u = norm(0, z)
    q, k, v = u @ params.W_Q.T, u @ params.W_K.T, u @ params.W_V.T
    h = model.tau1 * jax.nn.softmax(model.tau0 * q @ k.T, axis=-1) @ v @ params.W_H.T
    if model.block == "relu":
        h = jnp.maximum(h, 0)
    if "residual" in parts:
        h = z + h
    if "mlp" in parts:
        s = norm(1, h) @ params.W_1.T + params.b_1[None]
        gelu = s * (1 + jnp.tanh((2 / jnp.pi) ** 0.5 * (s + 0.044715 * s**3))) / 2
        h = gelu @ params.W_2.T + params.b_2[None] + (h if "residual" in parts else 0.0)
    h = norm(2, h)
    return params.W_O @ (h[0] if model.readout == "class" else h.mean(axis=0)) + params.b


def problem(d_m, block="vit", outputs=4, dtype="float64", readout="mean", tau1=1.0):
    model = VisionTransformer(P, T, D, d_m, d_m**-0.5, outputs, block, readout, tau1)
    x = normal(stream(0, "x"), (N, T, P))
    labels = np.arange(N) % outputs
    params = vision_start(model, 1)
    moved = {"scales": 0.1, "shifts": 0.2, "b_1": 0.3, "b_2": 0.1}
    params = params._replace(
        **{n: getattr(params, n) + c * normal(stream(2, n), np.shape(getattr(params, n)))
           for n, c in moved.items()}
    )  # fmt: skip
    return model, params, jnp.asarray(x, dtype), jnp.asarray(labels)


@pytest.mark.parametrize("readout", READOUTS)
@pytest.mark.parametrize("block", BLOCKS)
def test_the_model_is_its_uncollapsed_twin(block, readout):
    model, params, x, _ = problem(7, block, readout=readout)
    for sample in x[:3]:
        np.testing.assert_allclose(
            model(params, sample), uncollapsed(model, params, sample), rtol=1e-12
        )
        rows = model.attention(params, sample)
        np.testing.assert_allclose(rows.sum(axis=1), 1, rtol=1e-12)


def test_the_collapse_keeps_the_function_and_leads_back():
    model, params, x, _ = problem(50)
    narrow = collapse(model, params)
    assert narrow.model == dataclasses.replace(model, d_m=2 * D)
    for wide, back in zip(params, narrow.expand(narrow.params), strict=True):
        np.testing.assert_allclose(back, wide, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(narrow.model(narrow.params, x[0]), model(params, x[0]), rtol=1e-10)
    assert collapse(*problem(4)[:2]).model.d_m == 4  # below 2d there is nothing to gain


@pytest.mark.parametrize(
    ("block", "tau1", "falling"), [*((block, 1.0, 0) for block in BLOCKS), ("vit", 0.14, 3)]
)
def test_collapsed_training_is_the_uncollapsed_one_momentum_included(block, tau1, falling):
    """Parameters of all d_m features, after 3 epochs of batches with momentum, to rounding."""
    model, params, x, labels = problem(50, block, tau1=tau1)
    narrow = collapse(model, params)
    rule = {"loss": cross_entropy, "eta": 0.1, "beta": 0.9, "batch_size": 8}
    rule["falling_over"] = falling
    fast = EpochTraining(narrow.model, **rule)
    slow = EpochTraining(lambda theta, sample: uncollapsed(model, theta, sample), **rule)
    ours, twin = fast.start(narrow.params, "float64"), slow.start(params, "float64")
    for _ in range(3):
        ours, loss = fast.advance(ours, x, labels, stream(5, "batches"))
        twin, other = slow.advance(twin, x, labels, stream(5, "batches"))
        np.testing.assert_allclose(loss, other, rtol=1e-9)
    moved = max(float(jnp.max(jnp.abs(a - b))) for a, b in zip(twin.params, params, strict=True))
    assert moved > 0.1
    for wide, back in zip(twin.params, narrow.expand(ours.params), strict=True):
        np.testing.assert_allclose(back, wide, rtol=1e-7, atol=1e-10)


def test_an_epoch_is_heavy_ball_on_a_shuffled_pass():
    model, params, x, labels = problem(4, "relu", outputs=1)
    y = np.where(np.asarray(labels) + np.arange(N) % 2, 1.0, -1.0)
    training = EpochTraining(model, sign_regression, eta=0.2, beta=0.5, batch_size=12)
    state = training.start(params, "float64")
    state, _ = training.advance(state, x, jnp.asarray(y), stream(3, "batches"))
    state, mean_loss = training.advance(state, x, jnp.asarray(y), stream(3, "batches"))
    theta, velocity, losses = params, jax.tree.map(np.zeros_like, params), []
    for epoch in range(2):
        order = np.asarray(
            jax.random.permutation(jax.random.fold_in(stream(3, "batches"), epoch), N)
        )
        for start in (0, 12, 24):

            def loss(p, chosen=order[start : start + 12]):
                each = [(model(p, x[i])[0] - y[i]) ** 2 for i in chosen]
                return sum(each) / len(each)

            value, grad = jax.value_and_grad(loss)(theta)
            losses.append(float(value))
            velocity = jax.tree.map(lambda v, g: 0.5 * v + g, velocity, grad)
            theta = jax.tree.map(lambda p, v: p - 0.2 * v, theta, velocity)
    np.testing.assert_allclose(mean_loss, np.mean(losses[3:]), rtol=1e-9)
    for got, wanted in zip(state.params, theta, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-8, atol=1e-12)
    f = training.outputs(state.params, x)
    np.testing.assert_allclose(f[-1], model(theta, x[-1]), rtol=1e-8)
    np.testing.assert_allclose(training.losses(f, jnp.asarray(y))[0], (f[0, 0] - y[0]) ** 2)


def test_the_step_falls_like_a_cosine_and_the_scale_outside_changes_no_start():
    model, params, x, labels = problem(4)
    key, rule = stream(3, "batches"), (model, cross_entropy)
    falling = EpochTraining(*rule, 0.2, 0.5, 8, falling_over=3)
    got, wanted = falling.start(params, "float64"), falling.start(params, "float64")
    for eta in (0.2, 0.15, 0.05):  # 0.1 (1 + cos(pi k/3))
        got, _ = falling.advance(got, x, labels, key)
        wanted, _ = EpochTraining(*rule, eta, 0.5, 8).advance(wanted, x, labels, key)
        for one, other in zip(got.params, wanted.params, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    scaled = dataclasses.replace(model, tau1=0.1)
    start, other = vision_start(model, 1), vision_start(scaled, 1)
    np.testing.assert_allclose(other.W_H, 10 * start.W_H)
    np.testing.assert_allclose(scaled(other, x[0]), model(start, x[0]), rtol=1e-12)


def test_losses_and_refusals():
    assert float(cross_entropy(jnp.array([1.0, 2.0]), jnp.int32(0))) == pytest.approx(
        np.log(1 + np.e)
    )
    model, params, x, labels = problem(4)
    training = EpochTraining(model, cross_entropy, 0.1, 0.9, N + 1)
    with pytest.raises(BadArgument, match="is above n = 40"):
        training.advance(training.start(params, "float64"), x, labels, stream(0, "b"))
    with pytest.raises(BadArgument, match="must be below 1"):
        EpochTraining(model, cross_entropy, 0.1, 1.0, 8)
    with pytest.raises(BadArgument, match="choose from: vit, no-norm"):
        VisionTransformer(P, T, D, 8, 1.0, 2, "gelu")


def test_a_start_has_the_sizes_that_it_names():
    model = VisionTransformer(49, 16, 64, 1000, 0.1, 10)
    for init, sizes in zip(STARTS, ((1 / 7, 1 / 8, 1000**-0.5), (0.02,) * 3), strict=True):
        params = vision_start(model, 0, init)
        found = [np.std(params.E), np.std(params.W_Q), np.std(params.W_H)]
        np.testing.assert_allclose(found, sizes, rtol=0.05)  # of 3136 numbers at least
        assert np.all(params.scales == 1)
        assert not np.any(params.b_1)
        assert abs(np.std(params.positions) / 0.02 - 1) < 0.1
