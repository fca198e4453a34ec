"""Exact statements of wu2023, and the room's own encoder against the package's model."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from headcount.core import Array
from headcount.kernels import ntk
from headcount.models import initialisations
from headcount.papers.wu2023 import quantities as model
from headcount.papers.wu2023 import twins
from headcount.papers.wu2023.constants import effective_tau1
from headcount.papers.wu2023.limit import limit_wu2023
from headcount.papers.wu2023.model import Encoder, EncoderParams, TwoLayerParams, TwoLayerReLU
from headcount.papers.wu2023.records import Network
from headcount.theory.slow import FLOATS

RNG = np.random.default_rng(5)


def as_lists(point: Any) -> dict[str, Any]:
    """A point for slow arithmetic: nested lists of floats."""
    fields = {name: np.asarray(getattr(point, name)).tolist() for name in point.spaces}
    return fields | {name: getattr(point, name) for name in point.statics}


def instance(**shape: int) -> Network:
    return jax.tree.map(lambda leaf: leaf[0], Network.draw(np.random.default_rng(7), 1, shape))


@pytest.mark.parametrize("pooling", ["sum", "mean"])
def test_the_room_computes_the_packages_encoder(pooling: str) -> None:
    i = instance(n=3, T=4, d=2, d_m=5)
    tau1 = 0.7
    encoder = Encoder(2, 5, float(i.tau[0]), tau1, pooling)
    j = i.changed(tau=np.array([i.tau[0], effective_tau1(tau1, pooling, 4)]))
    f = jax.vmap(encoder, in_axes=(None, 0))(i.theta, i.X)
    np.testing.assert_allclose(model.outputs(j, j.theta), f, rtol=1e-12)


def test_the_slow_gradient_is_the_gradient() -> None:
    i = instance(n=2, T=3, d=2, d_m=3)
    data = as_lists(i)
    rows = [g.flat() for g in twins.jacobian(FLOATS, data, twins.theta_of(data))]
    np.testing.assert_allclose(rows, model.jacobian(i, i.theta), rtol=1e-10, atol=1e-12)


def test_he_is_twice_lecun_for_shared_draws() -> None:
    lecun = Encoder(3, 8, 0.4, 1.0, "sum")
    he = Encoder(3, 8, 0.2, 1.0, "sum")  # half the scale: the same attention from sqrt 2 weights
    x = RNG.normal(size=(4, 5, 3))
    for seed in range(3):
        f, g = (
            jax.vmap(m, in_axes=(None, 0))(initialisations[name](m, seed), x)
            for m, name in ((lecun, "lecun"), (he, "he"))
        )
        np.testing.assert_allclose(g, 2 * f, rtol=1e-12)


def test_tokens_of_one_feature_have_features_of_rank_two_and_a_kernel_of_rank_three() -> None:
    encoder = Encoder(1, 40, 1 / 40, 1.0, "mean")
    params = initialisations["lecun"](encoder, 0)
    x = RNG.normal(size=(12, 6, 1))
    F = np.asarray(jax.vmap(encoder.features, in_axes=(None, 0))(params, x))
    K = ntk(encoder, params, x).total
    for matrix, rank in ((F, 2), (K, 3)):
        values = np.linalg.svd(matrix, compute_uv=False)
        assert values[rank - 1] > 1e-9 * values[0]
        assert np.all(values[rank:] < 1e-12 * values[0])


def descend(f: Any, params: Any, x: Array, y: Array, steps: int) -> list[Any]:
    """Plain gradient descent on (1/2)|f - y|^2."""

    def loss(p: Any) -> Any:
        return jnp.sum((jax.vmap(f, in_axes=(None, 0))(p, x) - y) ** 2) / 2

    seen = [params]
    for _ in range(steps):
        slope = jax.grad(loss)(seen[-1])
        seen.append(jax.tree.map(lambda a, g: a - 0.02 * g, seen[-1], slope))
    return seen


def test_one_token_trains_as_the_two_layer_network_step_for_step() -> None:
    encoder, plain = Encoder(4, 6, 0.5, 1.0, "sum"), TwoLayerReLU(4, 6, 1.0)
    start: EncoderParams = jax.tree.map(jnp.asarray, initialisations["lecun"](encoder, 1))
    x, y = RNG.normal(size=(5, 1, 4)), RNG.normal(size=5)
    first = descend(encoder, start, x, y, 8)
    second = descend(plain, TwoLayerParams(start.W_V, start.w_O), x, y, 8)
    for a, b in zip(first, second, strict=True):
        np.testing.assert_allclose(a.W_V, b.W, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(a.w_O, b.w_O, rtol=1e-12, atol=1e-14)
        np.testing.assert_array_equal(a.W_Q, start.W_Q)
        np.testing.assert_array_equal(a.W_K, start.W_K)
    assert float(jnp.max(jnp.abs(first[-1].W_V - start.W_V))) > 1e-3


def test_the_entry_wise_product_of_lemma_1_is_an_expectation() -> None:
    """K against Monte Carlo; the matrix product is far outside the standard error."""
    x = RNG.normal(size=(3, 2, 2))
    s = np.sum(x, axis=1)
    w = np.random.default_rng(0).normal(size=(40_000, 2))
    h = s @ w.T
    on = (h > 0).astype(float)
    terms = (
        np.maximum(h, 0)[:, None] * np.maximum(h, 0)[None]
        + on[:, None] * on[None] * (s @ s.T)[:, :, None]
    )
    mean, error = terms.mean(axis=-1), terms.std(axis=-1) / np.sqrt(len(w))
    K = limit_wu2023(x, pooling="sum").total
    assert np.all(np.abs(mean - K) < 4.5 * error + 1e-12)
    slopes = np.mean(on[:, None] * on[None], axis=-1)
    values = np.mean(np.maximum(h, 0)[:, None] * np.maximum(h, 0)[None], axis=-1)
    assert np.max(np.abs(values + slopes @ (s @ s.T) - K) / error) > 50
