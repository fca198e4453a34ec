"""Gradients on positional tokens, and tracers, against their slow twins."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from headcount.core import BadArgument, losses, normal, seeded_query, stream
from headcount.papers.arda2026 import (
    ARWindows,
    IndRNN,
    IndRNNParams,
    PooledAttention,
    PooledAttentionParams,
    indrnn_path,
    positional_path,
)
from headcount.training import gd, gradient_path, naive_path, sgd, train

M = 4


def drawn(kind: type, law: ARWindows, **settings: Any) -> tuple[Any, Any]:
    """A model for a law's tokens, and unpaired parameters."""
    model = kind(law.d, M, **settings)

    def of(name: str, *shape: int) -> np.ndarray:
        return normal(stream(0, "positional", name), shape)

    if kind is IndRNN:
        return model, IndRNNParams(of("c", M), of("U", M, law.d), of("w", M))
    return model, PooledAttentionParams(of("c", M), of("U", M, law.d), of("W", M, law.d, law.d))


CASES = {
    "last token": (PooledAttention, {}, {"L": 4, "pairs": 2}, "mean-squared", 3),
    "raw tokens": (PooledAttention, {}, {"L": 4, "normalise_tokens": False}, "mean-squared", 3),
    "fixed query": (
        PooledAttention, {"query": seeded_query(5, 1)}, {"L": 3, "pairs": 2}, "half-squared-sum", 7
    ),
    "one token": (PooledAttention, {}, {"L": 1, "T": 1, "pairs": 2}, "mean-squared", 4),
    "IndRNN": (IndRNN, {}, {"L": 4, "pairs": 2}, "mean-squared", 3),
    "IndRNN, raw tokens": (
        IndRNN, {}, {"L": 3, "normalise_tokens": False}, "half-squared-sum", 7
    ),
    "IndRNN, one token": (IndRNN, {}, {"L": 1, "T": 1, "pairs": 2}, "mean-squared", 4),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_equals_automatic_differentiation(case: tuple[Any, ...]) -> None:
    """Loss, gradient, outputs, and the Jacobian of the path's block, sample by sample."""
    kind, settings, options, loss, chunk = case
    law = ARWindows(**options)
    model, params = drawn(kind, law, **settings)
    x, y = (jnp.asarray(part) for part in law.sample(7, 0))

    @jax.jit
    def both(params: Any) -> tuple[Any, Any]:
        fast = gradient_path(model, losses[loss], n=7, T=law.T, chunk=chunk, tokens=law.token_form)
        slow = naive_path(model, losses[loss])
        data = fast.prepare(x, y)
        value, grad, (block, total, lengths) = fast.with_jacobian(params, data)
        each = getattr(jax.vmap(jax.grad(model), in_axes=(None, 0))(params, x), block)
        norms = jnp.sqrt(jnp.sum(each.reshape(7, -1) ** 2, axis=1))
        got = (value, grad, fast.loss_and_gradient(params, data), fast.outputs(params, data))
        want = slow.loss_and_gradient(params, (x, y))
        wanted = (*want, want, slow.outputs(params, (x, y)))
        return (*got, jnp.ravel(total), lengths), (*wanted, jnp.ravel(jnp.sum(each, 0)), norms)

    for a, b in zip(*map(jax.tree.leaves, both(params)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-13)


def test_one_token_leaves_the_attention_exactly_where_it_is() -> None:
    law = ARWindows(L=1, T=1)
    model, params = drawn(PooledAttention, law)
    x, y = law.sample(5, 0)
    form = law.token_form
    run = train(model, params, x, y, rule=gd(0.5), steps=3, tokens=form, dtype="float32")
    np.testing.assert_array_equal(run.params.W, params.W.astype(np.float32))


@pytest.mark.parametrize("normalise", [True, False], ids=["unit ball", "raw"])
@pytest.mark.parametrize("kind", [PooledAttention, IndRNN])
def test_traces_are_the_records_of_the_plain_run(kind: type, normalise: bool) -> None:
    """Tokens' form and shared pass against neither of them, at every step; two seeds, own data."""
    law = ARWindows(L=3, pairs=2, normalise_tokens=normalise)
    model, params = drawn(kind, law)
    starts = jax.tree.map(lambda leaf: np.stack([leaf, leaf[::-1]]), params)
    data = [law.sample_split(6, 4, seed) for seed in (3, 5)]
    x, y, xv, yv = (
        np.stack([getattr(pair[part], name) for pair in data]) for part in (0, 1) for name in "xy"
    )
    settings: Any = {"rule": gd(0.2), "steps": 4, "seeds": (3, 5), "dtype": "float64"}
    settings |= {"validation": (xv, yv)}
    trace = ("jacobian", "validation")
    fast = train(model, starts, x, y, **settings, trace=trace, tokens=law.token_form, chunk=4)
    slow = train(
        model, starts, x, y, **settings, record=("jacobian", "gradient", "validation"),
        record_every=1,
    )  # fmt: skip
    assert set(fast.traces) < set(slow.records)
    for name, values in fast.traces.items():
        np.testing.assert_allclose(values, slow.records[name], rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(fast.loss, slow.loss, rtol=1e-10)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-13),
        fast.params,
        slow.params,
    )
    named = fast.to_xarray()
    assert named["validation_loss_trace"].dims == ("seed", "iterate")


class _Kept:
    """A checkpoint that keeps the last state that it saw before step `until`."""

    def __init__(self, until: int = 0) -> None:
        self.until, self.saved = until, None

    def restore(self) -> Any:
        return self.saved

    def save(self, arrays: Any) -> None:
        if int(arrays()["done"]) <= self.until:
            self.saved = arrays()


def test_a_resumed_run_has_the_same_traces() -> None:
    law = ARWindows(L=3, pairs=2)
    model, params = drawn(IndRNN, law)
    checkpoint = _Kept(until=4)

    def run(checkpoint: Any) -> Any:
        return train(
            model, params, *law.sample(6, 0), rule=gd(0.2), steps=9, trace="jacobian",
            tokens=law.token_form, checkpoint=checkpoint,
        )  # fmt: skip

    whole = run(checkpoint)
    assert 0 < int(checkpoint.saved["done"]) <= 4
    resumed = run(checkpoint)
    for name, values in whole.traces.items():
        assert values.tobytes() == resumed.traces[name].tobytes()
        assert np.all(np.isfinite(values))


def test_traces_end_where_a_run_diverges() -> None:
    law = ARWindows(L=2, pairs=1)
    model, params = drawn(IndRNN, law)
    settings: Any = {"rule": gd(1e200), "steps": 4, "dtype": "float64", "trace": "jacobian"}
    run = train(model, params, *law.sample(6, 0), **settings)
    assert 0 < run.diverged_at < 4
    trace = run.traces["jacobian_of_mean_w"]
    assert np.isfinite(trace[0])
    assert np.all(np.isnan(trace[run.diverged_at + 1 :]))


def test_what_a_trace_needs() -> None:
    law = ARWindows(L=2, pairs=1)
    x, y = law.sample(6, 0)
    model, params = drawn(PooledAttention, law)
    common: Any = {"steps": 1, "dtype": "float64"}
    with pytest.raises(BadArgument, match="over all samples"):
        train(model, params, x, y, rule=sgd(0.1, batch_size=2), trace="jacobian", **common)
    with pytest.raises(BadArgument, match="gradient path gives a Jacobian"):
        train(model, params, x, y, rule=gd(0.1), trace="jacobian", **common)
    with pytest.raises(BadArgument, match="validation"):
        train(model, params, x, y, rule=gd(0.1), trace="validation", **common)
    with pytest.raises(BadArgument, match="away from tokens"):
        train(model, params, x + 0.1, y, rule=gd(0.1), tokens=law.token_form, **common)


def test_paths_are_chosen_by_model_and_form() -> None:
    law = ARWindows(L=2, pairs=2)
    loss, form = losses["mean-squared"], law.token_form
    path = gradient_path(PooledAttention(5, M), loss, n=3, T=3, tokens=form)
    assert path.outputs.__module__ == positional_path.__module__
    path = gradient_path(IndRNN(5, M), loss, n=3, T=3, tokens=form)
    assert path.outputs.__module__ == indrnn_path.__module__
    own = PooledAttention(5, M, query=lambda X: X[0])
    assert gradient_path(own, loss, n=3, T=3, tokens=form).with_jacobian is None
