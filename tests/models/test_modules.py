"""An equinox module is a model as it is: kernels, training, linearisation."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from headcount.core import BadArgument
from headcount.kernels import ntk, train_linearised
from headcount.models import split_module
from headcount.training import gd, train

pytestmark = pytest.mark.usefixtures("as_users_write")


class Reader(eqx.Module):
    """An embedding, attention, a layer norm, a buffer of integers and a static field."""

    table: eqx.nn.Embedding
    norm: eqx.nn.LayerNorm
    attention: eqx.nn.MultiheadAttention
    read: eqx.nn.Linear
    order: Any
    bend: Any = eqx.field(static=True)

    def __init__(self, key: Any) -> None:
        a, b, c = jax.random.split(key, 3)
        self.table = eqx.nn.Embedding(9, 8, key=a)
        self.norm = eqx.nn.LayerNorm(8)
        self.attention = eqx.nn.MultiheadAttention(2, 8, key=b)
        self.read = eqx.nn.Linear(8, 3, key=c)
        self.order = np.array([2, 0, 1, 3])
        self.bend = jnp.tanh

    def __call__(self, ids: Any) -> Any:
        h = jax.vmap(self.table)(ids[self.order])
        h = h + self.attention(*[jax.vmap(self.norm)(h)] * 3)
        return self.read(self.bend(h).mean(axis=0))


@pytest.fixture(scope="module")
def reader() -> Reader:
    return Reader(jax.random.key(3))


IDS = np.random.default_rng(0).integers(0, 9, (7, 4))
CLASSES = np.random.default_rng(1).integers(0, 3, 7)


def test_what_moves_are_the_arrays_of_numbers_and_nothing_else(reader: Reader) -> None:
    model, params = split_module(reader)
    moving = jax.tree.leaves(eqx.filter(reader, eqx.is_inexact_array))
    assert [leaf.shape for leaf in moving] == [params[b][p].shape for b, p in model.places]
    assert set(params) == {"table", "norm", "attention", "read"}
    again = model.module(params)
    np.testing.assert_array_equal(again.order, reader.order)
    np.testing.assert_allclose(again(IDS[0]), reader(IDS[0]), rtol=1e-6)
    other, _ = split_module(Reader(jax.random.key(4)))
    assert model == other
    assert hash(model) == hash(other)
    assert model != split_module(eqx.tree_at(lambda r: r.order, reader, np.array([0, 1, 2, 3])))[0]


def test_its_kernel_is_that_of_its_jacobian(reader: Reader) -> None:
    K = ntk(reader, None, IDS)
    model, params = split_module(reader)
    with jax.enable_x64(True):
        wide = jax.tree.map(lambda leaf: jnp.asarray(leaf, float), params)
        J = jax.vmap(jax.jacrev(model), in_axes=(None, 0))(wide, IDS)
        flat = np.concatenate([np.asarray(g).reshape(21, -1) for g in jax.tree.leaves(J)], axis=1)
    np.testing.assert_allclose(K.matrix, flat @ flat.T, rtol=1e-10, atol=1e-12)
    assert set(K.blocks) == set(params)
    assert K.model == "Reader"


def test_it_trains_and_its_linearised_twin_follows(reader: Reader) -> None:
    run = train(reader, None, IDS, CLASSES, rule=gd(0.05), steps=6, loss="cross-entropy",
                dtype="float64")  # fmt: skip
    assert run.final_loss < run.loss[0]
    trained = split_module(reader)[0].module(run.params)
    outputs = np.stack([np.asarray(trained(ids)) for ids in IDS])
    loss = np.mean(np.log(np.exp(outputs).sum(1)) - outputs[np.arange(7), CLASSES])
    np.testing.assert_allclose(run.final_loss, loss, rtol=1e-5)
    linear = train_linearised(reader, None, IDS, CLASSES, eta=1e-4, steps=2, loss="cross-entropy")
    short = train(reader, None, IDS, CLASSES, rule=gd(1e-4), steps=2, loss="cross-entropy",
                  dtype="float64")  # fmt: skip
    np.testing.assert_allclose(linear.loss[:2], short.loss, rtol=1e-8)


def test_what_is_no_module_is_told() -> None:
    with pytest.raises(BadArgument, match=r"model = 'function': is no module"):
        ntk(lambda p, x: x, None, IDS)
