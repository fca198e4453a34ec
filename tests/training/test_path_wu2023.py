"""The fast encoder gradient against automatic differentiation of the model as written."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from training_problems import agree, compare_with_twin

from headcount.core import BadArgument, losses, normal, stream
from headcount.papers.wu2023.fast import wu2023_chunk, wu2023_path
from headcount.papers.wu2023.model import Encoder, EncoderParams
from headcount.training import gradient_path, naive_path

SHAPES = {
    "asymmetric": (7, 3, 4, 9),
    "one token": (5, 1, 3, 6),
    "one feature": (4, 3, 1, 5),
    "one sample": (1, 4, 3, 8),
    "width one": (6, 2, 1, 1),
}


def draw(n: int, T: int, d: int, d_m: int, seed: int = 0) -> tuple:
    def of(name: str, *shape: int) -> np.ndarray:
        return normal(stream(seed, "wu2023-path", name), shape)

    params = EncoderParams(of("Q", d_m, d), of("K", d_m, d), of("V", d_m, d), of("O", d_m))
    return params, of("x", n, T, d), of("y", n)


def compare(model: Encoder, params: EncoderParams, x, y, loss: str, chunk: int, tol: float) -> None:
    compare_with_twin(wu2023_path, model, params, x, y, loss, chunk, tol)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
@pytest.mark.parametrize(("pooling", "residual"), [("sum", False), ("mean", True)])
def test_equals_automatic_differentiation(shape, pooling, residual, relative) -> None:
    n, _, d, d_m = shape
    model = Encoder(d, d_m, tau0=0.7, tau1=0.3, pooling=pooling, residual=residual)
    compare(model, *draw(*shape), "half-squared-sum", max(1, n // 2), relative["float64"])


@pytest.mark.parametrize(("loss", "chunk"), [("mean-squared", 1), ("logistic", 3), ("logistic", 7)])
def test_every_loss_and_chunk(loss, chunk, relative) -> None:
    model = Encoder(4, 9, tau0=0.4, tau1=0.5, pooling="sum", residual=True)
    compare(model, *draw(7, 3, 4, 9, seed=1), loss, chunk, relative["float64"])


def test_saturated_softmax(relative) -> None:
    params, x, y = draw(5, 4, 3, 6, seed=2)
    model = Encoder(3, 6, tau0=1.0, tau1=1.0, pooling="sum")
    largest = np.max(np.abs(np.einsum("nid,de,nje->nij", x, model.logits_matrix(params), x)))
    model = Encoder(3, 6, tau0=1e3 / largest, tau1=1.0, pooling="sum")
    compare(model, params, x, y, "half-squared-sum", 2, relative["float64"])


def test_equal_tokens_leave_queries_and_keys_alone(relative) -> None:
    """Every attention average is the one token, whatever M is: the gradient of M vanishes."""
    params, x, y = draw(5, 4, 3, 6, seed=3)
    x = np.repeat(x[:, :1], 4, axis=1)
    model = Encoder(3, 6, tau0=0.5, tau1=1.0, pooling="sum")
    fast = wu2023_path(model, losses["half-squared-sum"], 2)
    value, gradient = jax.jit(fast.loss_and_gradient)(params, fast.prepare(x, y))
    slow = naive_path(model, losses["half-squared-sum"])
    want_value, want = jax.jit(slow.loss_and_gradient)(params, (x, y))
    agree(
        (value, gradient.W_V, gradient.w_O), (want_value, want.W_V, want.w_O), relative["float64"]
    )
    size = np.max(np.abs(want.W_V))
    assert np.max(np.abs(gradient.W_Q)) < 1e-12 * size
    assert np.max(np.abs(gradient.W_K)) < 1e-12 * size


def test_float32_stays_float32_and_close(relative) -> None:
    with jax.enable_x64(False):
        params, x, y = jax.tree.map(lambda a: jnp.asarray(a, jnp.float32), draw(6, 3, 4, 9, seed=4))
        model = Encoder(4, 9, tau0=0.5, tau1=0.5, pooling="sum")
        fast = wu2023_path(model, losses["half-squared-sum"], 4)
        slow = naive_path(model, losses["half-squared-sum"])
        got = jax.jit(fast.loss_and_gradient)(params, fast.prepare(x, y))
        want = jax.jit(slow.loss_and_gradient)(params, (x, y))
    assert {leaf.dtype.name for leaf in jax.tree.leaves(got)} == {"float32"}
    agree(got, want, relative["float32"])


def test_is_registered_with_a_chunk_of_at_least_one_sample() -> None:
    model = Encoder(2, 4, tau0=1.0, tau1=1.0, pooling="sum")
    assert wu2023_chunk(model, T=10) == 51
    assert wu2023_chunk(model, T=100_000) == 1
    path = gradient_path(model, losses["half-squared-sum"], n=3, T=2)
    assert path.loss_and_gradient.__module__ == wu2023_path.__module__
    with pytest.raises(BadArgument, match="chunk"):
        gradient_path(model, losses["half-squared-sum"], n=3, T=2, chunk=0)
