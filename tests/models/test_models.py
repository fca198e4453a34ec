"""Every registered model against loops over heads and tokens, and its symmetries."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from headcount.core import activations, normal, seeded_query, stream
from headcount.models import Model, models, outputs
from headcount.papers.arda2026 import IndRNN, PooledAttention
from headcount.papers.deora2024.model import (
    HeadGroups,
    LinearModel,
    MultiHeadAttention,
)
from headcount.papers.wu2023.model import Encoder, TwoLayerReLU

# One case per line: the model and the number T of tokens of its samples.
CASES = {
    "arda2026": (PooledAttention(d=3, m=5), 4),
    "arda2026-one-token": (PooledAttention(d=3, m=2), 1),
    "arda2026-one-feature": (PooledAttention(d=1, m=4, activation=activations["sin"]), 5),
    "arda2026-fixed-query": (PooledAttention(d=4, m=3, query=seeded_query(4, 0)), 3),
    "deora2024": (MultiHeadAttention(T=4, d=3, H=5), 4),
    "deora2024-pooling": (MultiHeadAttention(T=4, d=3, H=2, readout="pooling"), 4),
    "deora2024-last": (MultiHeadAttention(T=4, d=3, H=2, readout="last"), 4),
    "deora2024-one-token": (MultiHeadAttention(T=1, d=1, H=1), 1),
    "deora2024-groups": (HeadGroups(T=4, d=3, multiplicities=(2, 1, 4)), 4),
    "deora2024-groups-last": (HeadGroups(T=4, d=3, multiplicities=(3,), readout="last"), 4),
    "deora2024-linear": (LinearModel(T=4, d=3), 4),
    "wu2023": (Encoder(d=3, d_m=6, tau0=0.4, tau1=0.7, pooling="sum"), 4),
    "wu2023-mean": (Encoder(d=3, d_m=2, tau0=0.4, tau1=0.7, pooling="mean"), 4),
    "wu2023-residual": (Encoder(3, 5, 0.4, 0.7, "sum", residual=True), 4),
    "wu2023-one-token": (Encoder(d=4, d_m=3, tau0=0.4, tau1=1.0, pooling="sum"), 1),
    "wu2023-one-feature": (Encoder(d=1, d_m=3, tau0=0.4, tau1=1.0, pooling="mean"), 5),
    "two-layer-relu": (TwoLayerReLU(D=12, d_m=5, tau1=0.7), 4),
    "indrnn": (IndRNN(d=3, m=5), 4),
}
every_case = pytest.mark.parametrize("case", CASES)


def features_of(model):
    return 12 // 4 if isinstance(model, TwoLayerReLU) else model.d


def problem(case, scale=1.0, n=None):
    """Random parameters in the model's own shapes, with the attention scaled, and data."""
    model, T = CASES[case]
    shapes = model.shapes()
    draws = {
        field: normal(stream(1, case, field), shape) * (scale if field.startswith("W") else 1.0)
        for field, shape in shapes._asdict().items()
    }
    batch = () if n is None else (n,)
    x = normal(stream(2, case, "x"), (*batch, T, features_of(model)))
    return model, type(shapes)(**draws), x


def softmax(z):
    e = np.exp(z - np.max(z))
    return e / np.sum(e)


def naive_pooled(model, p, x):
    total = 0.0
    q = np.asarray(model.query(x))
    for c, U, W in zip(p.c, p.U, p.W, strict=True):
        alpha = softmax(np.array([x_t @ W @ q for x_t in x]))
        a = sum(weight * x_t for weight, x_t in zip(alpha, x, strict=True))
        total += c * float(model.activation(jnp.asarray(U @ a)))
    return total / math.sqrt(model.m)


def naive_head(U, W, x, readout):
    total = 0.0
    for t in range(len(x)):
        row = softmax(np.array([x[t] @ W @ x_s for x_s in x])) @ x
        if readout == "full":
            total += U[t] @ row
        elif readout == "pooling" or t == len(x) - 1:
            total += U @ row
    return total


def naive_multi_head(model, p, x):
    counts = getattr(model, "multiplicities", (1,) * len(p.U))
    heads = [naive_head(U, W, x, model.readout) for U, W in zip(p.U, p.W, strict=True)]
    return sum(k * h for k, h in zip(counts, heads, strict=True)) / math.sqrt(sum(counts))


def naive_encoder(model, p, x):
    total = 0.0
    for k in range(model.d_m):
        pooled = 0.0
        for x_i in x:
            logits = np.array([model.tau0 * (p.W_Q @ x_i) @ (p.W_K @ x_j) for x_j in x])
            hidden = p.W_V[k] @ (softmax(logits) @ x)
            if model.residual and k < model.d:
                hidden += x_i[k]
            pooled += max(hidden, 0.0)
        total += p.w_O[k] * pooled * model.tau1 / (len(x) if model.pooling == "mean" else 1)
    return total


def naive_indrnn(model, p, x):
    total = 0.0
    for c, U, w in zip(p.c, p.U, p.w, strict=True):
        h = 0.0
        for x_t in x:
            h = math.tanh(U @ x_t + w * h)
        total += c * h
    return total / math.sqrt(model.m)


NAIVE = {
    PooledAttention: naive_pooled,
    MultiHeadAttention: naive_multi_head,
    HeadGroups: naive_multi_head,
    LinearModel: lambda model, p, x: sum(p.U[t] @ x[t] for t in range(len(x))),
    Encoder: naive_encoder,
    TwoLayerReLU: lambda model, p, x: (
        model.tau1 * sum(w * max(row @ x.ravel(), 0.0) for w, row in zip(p.w_O, p.W, strict=True))
    ),
    IndRNN: naive_indrnn,
}


def test_every_registered_model_is_covered():
    assert {type(model) for model, _ in CASES.values()} == {models[name] for name in models}
    assert all(isinstance(model, Model) for model, _ in CASES.values())
    assert all(models[name].name == name for name in models)


@every_case
@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_matches_loops(case, scale, relative):
    """At scale 1e3 the softmax is saturated."""
    model, params, x = problem(case, scale)
    expected = NAIVE[type(model)](model, params, x)
    got = model(params, jnp.asarray(x))
    assert got.shape == ()
    np.testing.assert_allclose(got, expected, rtol=relative["float64"], atol=1e-12)


@every_case
def test_equal_tokens(case, relative):
    model, params, x = problem(case)
    x = np.tile(x[0], (len(x), 1))
    expected = NAIVE[type(model)](model, params, x)
    np.testing.assert_allclose(model(params, x), expected, rtol=relative["float64"], atol=1e-14)


@every_case
def test_jit_vmap_and_precision(case, relative):
    model, params, x = problem(case, n=3)
    loop = np.array([float(model(params, jnp.asarray(sample))) for sample in x])
    np.testing.assert_allclose(
        jax.jit(outputs, static_argnums=0)(model, params, x), loop, rtol=1e-12, atol=1e-14
    )
    small = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), (params, x))
    single = jax.jit(outputs, static_argnums=0)(model, *small)
    assert single.dtype == "float32"
    np.testing.assert_allclose(single, loop, rtol=1e-4, atol=1e-4 * np.max(np.abs(loop)))


@every_case
def test_is_hashable_and_comparable(case):
    model, _ = CASES[case]
    assert model == CASES[case][0]
    assert len({model, CASES[case][0]}) == 1
    with pytest.raises(AttributeError):
        model.d = 3


@pytest.mark.parametrize(
    ("case", "invariant"),
    [
        ("arda2026-fixed-query", "all"),
        ("arda2026", "all but last"),
        ("deora2024-pooling", "all"),
        ("deora2024-last", "all but last"),
        ("wu2023", "all"),
        ("wu2023-mean", "all"),
        ("wu2023-residual", "all"),
        ("deora2024", "none"),
        ("indrnn", "none"),
    ],
)
def test_token_permutations(case, invariant, relative):
    model, params, x = problem(case)
    order = np.roll(np.arange(len(x)), 1)
    kept = np.concatenate([np.roll(np.arange(len(x) - 1), 1), [len(x) - 1]])
    value, rolled, inner = (float(model(params, x[i])) for i in (np.arange(len(x)), order, kept))
    assert (rolled == pytest.approx(value, rel=relative["float64"])) == (invariant == "all")
    assert (inner == pytest.approx(value, rel=relative["float64"])) == (invariant != "none")


@pytest.mark.parametrize("case", ["deora2024-groups", "deora2024-groups-last"])
def test_groups_equal_their_expansion(case, relative):
    model, params, x = problem(case)
    whole = model.expand(params)
    assert model.plain == MultiHeadAttention(model.T, model.d, model.H, model.readout)
    assert whole.W.shape == model.plain.shapes().W
    np.testing.assert_allclose(model(params, x), model.plain(whole, x), rtol=relative["float64"])


def test_huge_groups_stay_finite():
    model = HeadGroups(T=2, d=2, multiplicities=(5 * 10**16, 5 * 10**16))
    params = type(model.shapes())(np.ones((2, 2, 2)) * 1e-8, np.zeros((2, 2, 2)))
    x = np.ones((2, 2))
    assert float(model(params, x)) == pytest.approx(math.sqrt(1e17) * 4e-8, rel=1e-12)


def spread_readout(u, T, readout):
    """The T x d matrix U that a read-out stands for [deora2024, Sec. 2]."""
    if readout == "full":
        return u
    if readout == "pooling":
        return jnp.broadcast_to(u, (T, u.shape[-1]))
    return jnp.zeros((T, u.shape[-1]), u.dtype).at[-1].set(u)


@pytest.mark.parametrize("readout", ["full", "pooling", "last"])
def test_readouts_are_full_projections(readout, relative):
    T, d, H = 4, 3, 2
    narrow, full = MultiHeadAttention(T, d, H, readout), MultiHeadAttention(T, d, H)
    shapes = narrow.shapes()
    params = type(shapes)(*(normal(stream(3, str(s)), s) for s in shapes))
    spread = params._replace(
        U=jnp.stack([spread_readout(jnp.asarray(u), T, readout) for u in params.U])
    )
    x = normal(stream(3, "x"), (T, d))
    np.testing.assert_allclose(narrow(params, x), full(spread, x), rtol=relative["float64"])


def test_mean_pooling_is_sum_pooling_with_smaller_tau1(relative):
    _, params, x = problem("wu2023")
    mean = Encoder(3, 6, 0.4, 0.7, "mean")
    total = Encoder(3, 6, 0.4, 0.7 / len(x), "sum")
    np.testing.assert_allclose(mean(params, x), total(params, x), rtol=relative["float64"])


def test_encoder_with_one_token_is_the_two_layer_network(relative):
    """wu2023, Corollary 1: with d_s = 1 the attention is constant."""
    model, params, x = problem("wu2023-one-token")
    net = TwoLayerReLU(D=4, d_m=3, tau1=1.0)
    plain = type(net.shapes())(params.W_V, params.w_O)
    np.testing.assert_allclose(model(params, x), net(plain, x), rtol=relative["float64"])


def test_encoder_with_one_feature_has_two_hidden_directions():
    """wu2023, 1.9: rank(F_pre) <= 2 for d = 1, whatever the width."""
    _, params, x = problem("wu2023-one-feature", n=8)
    wide = Encoder(d=1, d_m=9, tau0=0.4, tau1=1.0, pooling="mean")
    wide_params = type(params)(
        *(normal(stream(0, f), s) for f, s in wide.shapes()._asdict().items())
    )
    hidden = np.asarray(jax.vmap(wide.features, in_axes=(None, 0))(wide_params, x))
    singular = np.linalg.svd(hidden, compute_uv=False)
    assert singular[2] < 1e-12 * singular[0]
    assert singular[1] > 1e-6 * singular[0]
