"""Chunking, the generic path and the fused arda2026 path against the naive twin."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from training_problems import Cubic, CubicParams, pooled

from headcount.core import FixedQuery, LastToken, activations, losses, seeded_query
from headcount.models import initialisations
from headcount.papers.arda2026 import PooledAttention, arda2026_chunk, arda2026_path
from headcount.papers.arda2026 import fast as fused
from headcount.papers.deora2024.model import HeadGroups, MultiHeadAttention
from headcount.papers.wu2023.model import Encoder
from headcount.training import (
    GradientPath,
    adam,
    generic_path,
    gradient_path,
    naive_path,
    train,
)


def evaluate(path: GradientPath, params: Any, x: Any, y: Any) -> tuple[Any, Any, Any]:
    """Value, gradient and outputs of a path, compiled."""

    @jax.jit
    def everything(params: Any, x: Any, y: Any) -> tuple[Any, Any, Any]:
        data = path.prepare(x, y)
        value, gradient = path.loss_and_gradient(params, data)
        return value, gradient, path.outputs(params, data)

    return jax.device_get(everything(params, jnp.asarray(x), jnp.asarray(y)))


def assert_twins(fast: GradientPath, model: Any, loss: Any, params: Any, x: Any, y: Any) -> None:
    """Equal to the naive path, relative to the size of each block of numbers."""
    ours = evaluate(fast, params, x, y)
    naive = evaluate(naive_path(model, loss), params, x, y)
    scale = max(np.abs(leaf).max() for leaf in jax.tree.leaves(naive[1]))
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(naive), strict=True):
        assert a.shape == b.shape
        # A block whose gradient vanishes by symmetry is compared with the whole gradient.
        size = max(np.abs(b).max(), 1e-6 * scale)
        assert np.abs(a - b).max() <= 1e-10 * size


ONE_OUTPUT = [name for name, loss in losses.items() if loss.labels != "classes"]


def labels_for(loss: Any, y: np.ndarray) -> np.ndarray:
    return np.sign(y) if loss.labels == "signs" else y


@pytest.mark.parametrize(
    ("n", "T", "d", "m", "chunk"),
    [
        (7, 5, 3, 4, 3),  # not a multiple of the chunk
        (6, 1, 3, 4, 2),  # one token
        (5, 4, 1, 2, 2),  # one feature
        (4, 3, 2, 3, 9),  # an odd width, one chunk larger than the data
        (3, 4, 3, 2, 1),  # one sample per chunk
        (1, 1, 1, 1, 1),
    ],
)
def test_fused_equals_naive_in_every_shape(n: int, T: int, d: int, m: int, chunk: int) -> None:
    model, params, x, y = pooled(n, T, d, m, seed=n)
    loss = losses["mean-squared"]
    assert_twins(arda2026_path(model, loss, chunk), model, loss, params, x, y)


@pytest.mark.parametrize("activation", list(activations))
def test_fused_equals_naive_for_every_activation(activation: str) -> None:
    model, params, x, y = pooled(n=3, T=3, d=2, m=2, seed=1, activation=activations[activation])
    loss = losses["mean-squared"]
    assert_twins(arda2026_path(model, loss, 2), model, loss, params, x, y)


@pytest.mark.parametrize(
    ("loss", "query"),
    [
        *((loss, LastToken()) for loss in ONE_OUTPUT),
        ("mean-squared", FixedQuery((0.6, -0.3, 0.1))),
        ("logistic", seeded_query(3, seed=5)),
    ],
)
def test_fused_equals_naive_for_every_query_and_loss(loss: str, query: Any) -> None:
    model, params, x, y = pooled(seed=2, query=query)
    chosen = losses[loss]
    assert_twins(arda2026_path(model, chosen, 3), model, chosen, params, x, labels_for(chosen, y))


@pytest.mark.parametrize("largest", [39.0, 1e3])
def test_fused_equals_naive_up_to_saturated_softmax(largest: float) -> None:
    """The bound on the logits chooses the branch: below 40 exp needs no shift."""
    model, params, x, y = pooled(seed=3)
    loss = losses["mean-squared"]
    norms = np.linalg.norm(params.W, axis=(1, 2)).max()
    lengths = np.linalg.norm(x, axis=-1)
    bound = norms * (lengths.max(axis=1) * lengths[:, -1]).max()
    params = params._replace(W=params.W * largest / bound)
    path = arda2026_path(model, loss, 3)
    small = fused._logits_are_small(params, path.prepare(jnp.asarray(x), jnp.asarray(y)))
    assert bool(small) == (largest < 40)
    assert_twins(path, model, loss, params, x, y)


@pytest.mark.parametrize("threshold", [0.0, np.inf])
def test_both_softmax_branches_agree_on_the_same_problem(
    threshold: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fused, "_LARGEST_UNSHIFTED_LOGIT", threshold)
    model, params, x, y = pooled(seed=4)
    loss = losses["mean-squared"]
    assert_twins(arda2026_path(model, loss, 3), model, loss, params, x, y)


def test_unshifted_softmax_cannot_overflow_at_the_threshold_in_float32() -> None:
    """All logits at +-39.9: the largest sums that the unshifted branch can meet."""
    model, params, x, y = pooled(n=2, T=8, d=2, m=2, seed=5)
    x = np.where(np.arange(8)[None, :, None] % 2, 1.0, -1.0) * np.array([1.0, 0.0])
    x = np.repeat(x, 2, axis=0)
    W = np.zeros_like(params.W)
    W[:, 0, 0] = 39.9
    loss = losses["mean-squared"]
    single = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), params._replace(W=W))
    path, x32, y32 = arda2026_path(model, loss, 2), jnp.float32(x), jnp.float32(y)
    assert bool(fused._logits_are_small(single, path.prepare(x32, y32)))
    ours = evaluate(path, single, x32, y32)
    exact = evaluate(naive_path(model, loss), params._replace(W=W), x, y)
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(exact), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_equal_tokens_leave_nothing_to_attend_to() -> None:
    model, params, x, y = pooled(seed=6)
    x = np.repeat(x[:, :1], x.shape[1], axis=1)
    loss = losses["mean-squared"]
    path = arda2026_path(model, loss, 3)
    _, gradient, _ = evaluate(path, params, x, y)
    assert np.abs(gradient.U).max() > 1e-3
    assert not gradient.W.any()
    assert_twins(path, model, loss, params, x, y)


ALIKE = {
    "arda2026": PooledAttention(3, 6),
    "deora2024": MultiHeadAttention(4, 3, 5),
    "deora2024-groups-last": HeadGroups(4, 3, (2, 3), "last"),
    "wu2023": Encoder(3, 7, 0.4, 0.5, "mean"),
    "wu2023-residual": Encoder(3, 7, 0.4, 0.5, "sum", residual=True),
}


@pytest.mark.parametrize("T", [1, 4])
@pytest.mark.parametrize("name", ALIKE)
def test_attention_does_not_move_under_adam_where_tokens_agree(name: str, T: int) -> None:
    """Adam makes full steps from any gradient, however small: it must be zero exactly."""
    model = ALIKE[name] if not hasattr(ALIKE[name], "T") else replace(ALIKE[name], T=T)
    rng = np.random.default_rng(7)
    start = type(model.shapes())(*(rng.normal(size=s) for s in model.shapes()))
    x, y = np.repeat(rng.normal(size=(9, 1, 3)), T, axis=1), rng.normal(size=9)
    run = train(model, start, x, y, rule=adam(0.01), steps=30, chunk=4, dtype="float32")
    for block, moved in run.parameters()._asdict().items():
        still = block in ("W", "W_Q", "W_K")
        same = np.array_equal(moved, getattr(run.parameters("initial"), block))
        assert same == still, block


def test_paired_start_predicts_zero() -> None:
    model = PooledAttention(3, 8)
    _, _, x, y = pooled()
    params = initialisations["paired"](model, 0)
    path = gradient_path(model, losses["mean-squared"], n=7, T=5)
    value, _, f = evaluate(path, params, x, y)
    assert np.abs(f).max() <= 1e-15
    np.testing.assert_allclose(value, np.mean(y**2), rtol=1e-14)


@pytest.mark.parametrize(
    ("loss", "n", "chunk"),
    [*((loss, 7, 3) for loss in ONE_OUTPUT), ("mean-squared", 3, 5), ("mean-squared", 1, 1)],
)
def test_generic_path_equals_naive(loss: str, n: int, chunk: int) -> None:
    _, _, x, y = pooled(n=n, seed=n)
    params = CubicParams(np.random.default_rng(n).normal(size=3))
    chosen = losses[loss]
    path = generic_path(Cubic(3), chosen, chunk)
    assert_twins(path, Cubic(3), chosen, params, x, labels_for(chosen, y))


def test_chunk_of_arda2026_shrinks_with_width_and_length() -> None:
    sizes = [arda2026_chunk(PooledAttention(8, m), T) for m, T in [(16, 16), (256, 16), (64, 8192)]]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == 1
