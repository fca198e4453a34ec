"""Fine-tuning against AdamW by hand, padding, muted heads, and unused words."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from headcount.core import BadArgument, stream
from headcount.data import pad
from headcount.data._tokens import Batch, restrict_vocabulary
from headcount.models.text import TINY, random_encoder
from headcount.training import adamw
from headcount.training._finetuning import FineTuning, losses_and_hits

SMALL = TINY.model_copy(
    update={"hidden_size": 6, "num_attention_heads": 3, "intermediate_size": 5, "vocab_size": 30,
            "num_hidden_layers": 1, "max_position_embeddings": 12}
)  # fmt: skip
NUMBERS = [[4, 9, 2, 20], [7, 7], [9, 1, 1, 13, 20, 3], [2], [20, 4, 4]]
LABELS = np.array([1, 0, 1, 1, 0])
ETA, DECAY = 0.01, 0.1


def tuning(size: int, kept: int = 3) -> tuple[FineTuning, Any]:
    model, params = random_encoder(SMALL, seed=2)
    rule = adamw(ETA, DECAY, batch_size=size)
    return FineTuning(model.with_heads(kept, "mask"), rule), params


def batch_of(index: list[int], weight: list[float], width: int = 6) -> Batch:
    x = pad([NUMBERS[i] for i in index], width)
    return Batch(np.array(index), x, np.array(weight, np.float32))


def by_hand(model: Any, params: Any, index: list[int], steps: int) -> tuple[Any, list[float]]:
    """AdamW in float64, from the mean cross-entropy of unpadded sentences one by one."""
    leaves, tree = jax.tree.flatten(jax.tree.map(lambda leaf: leaf.astype(np.float64), params))
    samples = [jnp.asarray(pad([NUMBERS[i]], len(NUMBERS[i]))[0]) for i in index]

    def loss(leaves: Any) -> Any:
        own = jax.tree.unflatten(tree, leaves)
        found = 0.0
        for x, i in zip(samples, index, strict=True):
            f = model(own, x)
            found += jnp.log(jnp.sum(jnp.exp(f))) - f[int(LABELS[i])]
        return found / len(index)

    derivative, losses = jax.jit(jax.value_and_grad(loss)), []
    m, v = ([np.zeros_like(leaf) for leaf in leaves] for _ in range(2))
    for k in range(1, steps + 1):
        value, gradient = jax.tree.map(np.asarray, derivative(leaves))
        losses.append(float(value))
        m = [0.9 * a + 0.1 * g for a, g in zip(m, gradient, strict=True)]
        v = [0.999 * a + 0.001 * g**2 for a, g in zip(v, gradient, strict=True)]
        leaves = [
            p - ETA * (a / (1 - 0.9**k) / (np.sqrt(b / (1 - 0.999**k)) + 1e-8) + DECAY * p)
            for p, a, b in zip(leaves, m, v, strict=True)
        ]
    return jax.tree.unflatten(tree, leaves), losses


@pytest.mark.parametrize("kept", [3, 1])
def test_steps_are_adamw_on_the_mean_loss_whatever_the_padding(kept: int) -> None:
    training, params = tuning(4, kept)
    state = training.start(params)
    losses = []
    # The last sample only fills the batch up: it must not count.
    for _ in range(3):
        state, loss, right = training.step(state, batch_of([0, 1, 2, 3], [1, 1, 1, 0]), LABELS)
        losses.append(float(loss))
        assert 0 <= float(right) <= 1
    want, want_losses = by_hand(training.model, params, [0, 1, 2], 3)
    np.testing.assert_allclose(losses, want_losses, rtol=1e-5)
    assert int(state.step) == 3
    for got, expected in zip(jax.tree.leaves(state.params), jax.tree.leaves(want), strict=True):
        # Adam divides by |g|: where a gradient is rounding alone, its sign is anything.
        close = np.abs(np.asarray(got) - np.asarray(expected)) < 2e-4
        assert np.mean(close) > 0.97


def test_muted_heads_get_no_gradient() -> None:
    training, params = tuning(3, 1)
    state, _, _ = training.step(training.start(params), batch_of([0, 1, 2], [1, 1, 1]), LABELS)
    before, after = params.attention[0].value.W, np.asarray(state.params.attention[0].value.W)
    decayed = before * (1 - ETA * DECAY)
    np.testing.assert_allclose(after[2:], decayed[2:], rtol=1e-6)  # heads 2 and 3: rows 2 to 5
    assert np.abs(after[:2] - decayed[:2]).max() > 1e-3


def test_the_words_that_occur_are_enough() -> None:
    used, (fewer,) = restrict_vocabulary(NUMBERS)
    training, params = tuning(3)
    small = params._replace(embedding=params.embedding._replace(words=params.embedding.words[used]))
    key, ends = stream(0, "order"), []
    for numbers, begin in ((NUMBERS, params), (fewer, small)):
        state = training.start(begin)
        for batch in training.order(numbers, key, 2):
            state, _, _ = training.step(state, batch, LABELS)
        assert int(state.step) == 4
        ends.append((training.outputs(state.params, numbers), state.params.embedding.words))
    np.testing.assert_allclose(ends[0][0], ends[1][0], atol=1e-5)
    np.testing.assert_allclose(np.asarray(ends[0][1])[used], ends[1][1], atol=1e-5)


def test_outputs_come_in_the_order_of_the_sentences() -> None:
    training, params = tuning(2)
    got = training.outputs(training.start(params).params, NUMBERS)
    f = jax.jit(training.model)
    for row, line in zip(got, NUMBERS, strict=True):
        np.testing.assert_allclose(row, f(params, jnp.asarray(pad([line], 12)[0])), atol=1e-5)
    losses, hits = losses_and_hits(got, LABELS.astype(np.int32))
    want = [np.log(np.exp(row).sum()) - row[label] for row, label in zip(got, LABELS, strict=True)]
    np.testing.assert_allclose(losses, want, rtol=1e-5)
    np.testing.assert_array_equal(hits, got.argmax(axis=1) == LABELS)


def test_every_epoch_has_its_own_order() -> None:
    training, _ = tuning(2)
    found = list(training.order(NUMBERS, stream(1, "order"), 2))
    epochs = [[tuple(b.index) for b in part] for part in (found[:3], found[3:])]
    assert len(found) == 6
    assert epochs[0] != epochs[1]
    again = [tuple(b.index) for b in training.order(NUMBERS, stream(1, "order"), 2)]
    assert again == epochs[0] + epochs[1]


def test_a_rule_without_batches_is_refused() -> None:
    with pytest.raises(BadArgument, match="has no batch size"):
        FineTuning(random_encoder(SMALL)[0], adamw(0.1))
    with pytest.raises(BadArgument, match="weight_decay"):
        adamw(0.1, -1.0)
