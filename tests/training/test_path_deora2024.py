"""Head groups against the plain model with all its heads, gradients against differentiation."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from training_problems import agree

from headcount.core import losses, normal, stream
from headcount.papers.deora2024.fast import deora2024_chunk, deora2024_path
from headcount.papers.deora2024.model import HeadGroups, MultiHeadAttention, MultiHeadParams
from headcount.papers.deora2024.starts import two_phase_groups, zero
from headcount.training import gradient_path, naive_path

T, D = 4, 3


def draw(model: Any, n: int, seed: int = 0) -> tuple:
    def of(name: str, *shape: int) -> np.ndarray:
        return normal(stream(seed, "deora2024-path", name), shape)

    shapes = model.shapes()
    params = MultiHeadParams(of("U", *shapes.U), of("W", *shapes.W))
    return params, of("x", n, model.T, model.d).copy(), np.where(of("y", n) > 0, 1.0, -1.0)


def compare(model: Any, params: Any, x, y, chunk: int, tolerance: float, loss="logistic") -> None:
    """Fast path against the twin: for groups, against all heads of the expanded plain model."""
    grouped = isinstance(model, HeadGroups)

    @jax.jit
    def both(params: MultiHeadParams, x, y) -> list:
        fast = deora2024_path(model, losses[loss], chunk)
        slow = naive_path(model.plain if grouped else model, losses[loss])
        data = fast.prepare(x, y)
        value, gradient = fast.loss_and_gradient(params, data)
        got = value, model.expand(gradient) if grouped else gradient, fast.outputs(params, data)
        every = model.expand(params) if grouped else params
        return [got, (*slow.loss_and_gradient(every, (x, y)), slow.outputs(every, (x, y)))]

    agree(*both(params, x, y), tolerance)


MODELS = {
    "groups, full": HeadGroups(T, D, (3, 1, 2)),
    "groups, pooling": HeadGroups(T, D, (3, 1, 2), "pooling"),
    "groups, last": HeadGroups(T, D, (1, 4), "last"),
    "plain, full": MultiHeadAttention(T, D, 3),
    "plain, pooling": MultiHeadAttention(T, D, 2, "pooling"),
    "one token": HeadGroups(1, D, (2, 3)),
    "one feature": HeadGroups(T, 1, (2, 3), "last"),
    "one head": MultiHeadAttention(T, D, 1),
}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())
def test_equals_automatic_differentiation_of_all_heads(model, relative) -> None:
    compare(model, *draw(model, 7), 3, relative["float64"])


@pytest.mark.parametrize(("loss", "chunk"), [("mean-squared", 7), ("half-squared-sum", 1)])
def test_squared_losses(loss, chunk, relative) -> None:
    model = HeadGroups(T, D, (2, 1))
    compare(model, *draw(model, 7, seed=1), chunk, relative["float64"], loss)


@pytest.mark.parametrize("readout", ["full", "last"])
def test_saturated_softmax(readout, relative) -> None:
    """Logits of 1e3; two tokens tie, as without ties both gradients of W are rounding errors."""
    model = HeadGroups(T, D, (2, 1), readout)
    params, x, y = draw(model, 5, seed=2)
    x[:, 1, 0] = x[:, 0, 0] = 3.0
    W = params.W * np.array([1.0, 0.0, 0.0])
    logits = np.einsum("nid,hde,nje->nhij", x, W, x)
    compare(model, params._replace(W=W * 1e3 / np.max(logits)), x, y, 2, relative["float64"])


@pytest.mark.parametrize("readout", ["full", "pooling"])
def test_equal_tokens_leave_attention_alone(readout) -> None:
    """Every attention average is the one token, whatever W is: the gradient of W vanishes."""
    model = HeadGroups(T, D, (2, 1), readout)
    params, x, y = draw(model, 5, seed=3)
    fast = deora2024_path(model, losses["logistic"], 2)
    data = fast.prepare(np.repeat(x[:, :1], T, axis=1), y)
    _, gradient = jax.jit(fast.loss_and_gradient)(params, data)
    assert np.max(np.abs(gradient.U)) > 1e-3
    assert np.max(np.abs(gradient.W)) < 1e-14


def descend(path: Any, params: Any, x, y, rule: optax.GradientTransformation, steps: int) -> Any:
    data = path.prepare(x, y)

    @jax.jit
    def run(params: Any, data: Any) -> Any:
        def step(_: int, state: tuple) -> tuple:
            params, memory = state
            with jax.numpy_dtype_promotion("standard"):  # optax counts its steps in int32
                updates, memory = rule.update(path.loss_and_gradient(params, data)[1], memory)
            return optax.apply_updates(params, updates), memory

        return jax.lax.fori_loop(0, steps, step, (params, rule.init(params)))[0]

    return run(jax.tree.map(jnp.asarray, params), data)


RULES = {"gd": optax.sgd(0.5), "momentum": optax.sgd(0.2, momentum=0.9), "adam": optax.adam(0.03)}


@pytest.mark.parametrize(
    ("start", "name"), [("zero", "adam"), *(("two-phase", name) for name in RULES)]
)
def test_groups_follow_all_heads_for_a_hundred_steps(start, name) -> None:
    rule = RULES[name]
    _, x, y = draw(MultiHeadAttention(T, D, 1), 6, seed=4)
    if start == "zero":
        model = HeadGroups(T, D, (5,))
        params = zero(model)
    else:
        model, params = two_phase_groups(T, D, 5, seed=1, x=x, y=y)
        assert len(model.multiplicities) == 2
    loss = losses["logistic"]
    got = model.expand(descend(deora2024_path(model, loss, 4), params, x, y, rule, 100))
    start_of_all = model.expand(params)
    want = descend(naive_path(model.plain, loss), start_of_all, x, y, rule, 100)
    assert np.max(np.abs(want.U - start_of_all.U)) > 0.1
    agree(got, want, 1e-12)


@pytest.mark.parametrize("H", [7, 10**17])
def test_many_heads_from_zero_are_one_head_with_two_step_sizes(H: int) -> None:
    """GD(H, eta) is one head with step eta on sqrt(H) U and eta/H on W [ledger 1.4]."""
    model, eta, steps = HeadGroups(T, D, (H,)), 0.7, 60
    _, x, y = draw(model, 6, seed=5)
    loss = losses["logistic"]
    params = descend(deora2024_path(model, loss, 4), zero(model), x, y, optax.sgd(eta), steps)
    single = MultiHeadAttention(T, D, 1)
    two_rates = optax.multi_transform(
        {"U": optax.sgd(eta), "W": optax.sgd(eta / H)}, MultiHeadParams("U", "W")
    )
    one = descend(naive_path(single, loss), zero(single), x, y, two_rates, steps)
    assert np.max(np.abs(one.W)) > 0
    agree(MultiHeadParams(params.U * np.sqrt(float(H)), params.W), one, 1e-12)


def test_is_registered_and_chunks_by_cache_size() -> None:
    for model in (MultiHeadAttention(10, 4, 256), HeadGroups(10, 4, (10**17,))):
        path = gradient_path(model, losses["logistic"], n=5, T=10)
        assert path.outputs.__module__ == deora2024_path.__module__
    assert deora2024_chunk(MultiHeadAttention(10, 4, 256), 10) == 5
    assert deora2024_chunk(HeadGroups(10, 4, (10**17,)), 10) == 1310
    assert deora2024_chunk(MultiHeadAttention(10**4, 4, 256), 10**4) == 1


@pytest.mark.parametrize("readout", ["full", "pooling", "last"])
@pytest.mark.parametrize("name", list(RULES))
def test_two_groups_are_sixty_four_heads(name, readout) -> None:
    """Plain training of H = 64 heads against the two sign classes of the two-phase start."""
    _, x, y = draw(MultiHeadAttention(T, D, 1), 5, seed=6)
    model, params = two_phase_groups(T, D, 64, seed=1, x=x, y=y, readout=readout)
    assert len(model.multiplicities) == 2
    loss, rule = losses["logistic"], RULES[name]
    got = model.expand(descend(deora2024_path(model, loss, 5), params, x, y, rule, 40))
    every = model.expand(params)
    want = descend(naive_path(model.plain, loss), every, x, y, rule, 40)
    assert np.max(np.abs(want.U - every.U)) > 1e-3
    agree(got, want, 1e-12)
