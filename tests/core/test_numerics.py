"""Key streams, precision, sums, pytrees and attention."""

from __future__ import annotations

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from headcount import core
from headcount.core import BadArgument, activations, stream
from headcount.papers import deora2024

SAMPLERS = {
    "normal": core.normal,
    "uniform": lambda key, shape: core.uniform(key, shape, -1.0, 2.0),
    "rademacher": core.rademacher,
    "integers": lambda key, shape: core.integers(key, shape, 5),
}


def bits(key):
    return tuple(np.asarray(jax.random.key_data(key)).tolist())


def test_streams_depend_on_seed_and_names_alone():
    keys = [
        stream(s, *names) for s in range(4) for names in [("a",), ("b",), ("a", "b"), (1,), ("1",)]
    ]
    assert len({bits(k) for k in keys}) == len(keys)


@pytest.mark.parametrize("seed", [-1, 2**31, 1.5, True])
def test_bad_seeds_are_refused(seed):
    with pytest.raises(BadArgument, match="seed = "):
        stream(seed, "a")


@pytest.mark.parametrize("name", SAMPLERS)
def test_draws_are_the_same_in_any_precision_and_shape(name):
    draw, key = SAMPLERS[name], stream(0, "draws")
    whole = draw(key, (4, 300))
    with jax.enable_x64(False):
        np.testing.assert_array_equal(draw(key, (4, 300)), whole)
    np.testing.assert_array_equal(draw(key, (7,)), whole.ravel()[:7])
    assert draw(key, ()).shape == ()
    assert draw(key, (0, 3)).shape == (0, 3)
    assert whole.dtype == (np.int64 if name == "integers" else np.float64)


def test_draws_equal_those_of_jax_directly():
    key = stream(1, "direct")
    np.testing.assert_array_equal(core.normal(key, (3, 5)), jax.random.normal(key, (3, 5)))


def test_draws_have_their_moments():
    n, key = 20_000, stream(2, "moments")
    z, u = core.normal(key, (n,)), SAMPLERS["uniform"](key, (n,))
    assert abs(z.mean()) < 5 / math.sqrt(n)
    assert abs(z.var() - 1) < 5 * math.sqrt(2 / n)
    assert abs(u.mean() - 0.5) < 5 * math.sqrt(0.75 / n)
    assert u.min() >= -1 > u.min() - 0.01
    assert set(core.rademacher(key, (99,))) == {-1.0, 1.0}
    assert set(core.integers(key, (99,), 5)) == set(range(5))


def test_precision_is_local():
    with core.precision("float32"):
        assert jnp.zeros(1).dtype == "float32"
        with core.float64():
            assert jnp.zeros(1).dtype == "float64"
    assert jnp.zeros(1).dtype == "float64"
    for bad in ("float16", "double"):
        with pytest.raises(BadArgument, match="dtype"):
            core.precision(bad)


def test_cast_changes_floats_only():
    got = core.cast({"a": np.ones(2), "k": np.arange(3)}, "float32")
    assert got["a"].dtype == "float32"
    assert got["k"].dtype == np.arange(3).dtype


def test_mirrored_sum_is_exactly_zero_for_mirrored_values():
    half = core.normal(stream(0, "half"), (57,)) * 10.0 ** np.arange(-28, 29)
    assert float(core.mirrored_sum(jnp.asarray(np.concatenate([half, -half])))) == 0.0
    for m in (1, 6, 7):
        values = core.normal(stream(0, "v"), (m,))
        assert float(core.mirrored_sum(jnp.asarray(values))) == pytest.approx(values.sum())


def sample(T, d, seed=0):
    draw = lambda name, *shape: core.normal(stream(seed, name), shape)  # noqa: E731
    return draw("X", T, d), draw("q", d), draw("U", d), draw("W", d, d)


@pytest.mark.parametrize(("T", "d"), [(5, 3), (1, 4), (6, 1), (2, 2)])
@pytest.mark.parametrize("activation", ["tanh", "sin"])
def test_head_features_are_the_gradient_of_a_head(T, d, activation, relative):
    """phi_u = d sigma(U.a)/dU and phi_w = d sigma(U.a)/dW [arda2026, Lemma 1], by autodiff."""
    X, q, U, W = sample(T, d)
    act = activations[activation]

    def head(U, W):
        return act(U @ (core.pooled_attention(X, W, q) @ X))

    phi = core.head_features(X, q, U, W, act)
    grad_U, grad_W = jax.grad(head, argnums=(0, 1))(U, W)
    np.testing.assert_allclose(phi.phi_c, head(U, W), rtol=relative["float64"])
    np.testing.assert_allclose(phi.phi_u, grad_U, rtol=relative["float64"], atol=1e-15)
    np.testing.assert_allclose(
        np.outer(phi.w_left, q), grad_W, rtol=relative["float64"], atol=1e-14
    )


@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_softmax_covariance_matches_its_matrix(scale, relative):
    X, q, U, W = sample(5, 3)
    alpha = np.asarray(core.pooled_attention(X, scale * W, q))
    a = alpha @ X
    M = sum(p * np.outer(x - a, x - a) for p, x in zip(alpha, X, strict=True))
    got = core.head_features(X, q, U, scale * W, activations["tanh"]).w_left
    slope = 1 - math.tanh(U @ a) ** 2
    np.testing.assert_allclose(got, slope * (M @ U), rtol=relative["float64"], atol=1e-14)


def test_equal_tokens_have_no_covariance():
    X = np.tile(core.normal(stream(0, "x"), (3,)), (4, 1))
    _, q, U, W = sample(4, 3)
    phi = core.head_features(X, q, U, W, activations["tanh"])
    np.testing.assert_array_equal(phi.w_left, 0)


def one_head(X, W, U):
    """<U, softmax(X W X^T) X>, as the model of one head has it."""
    return deora2024.MultiHeadAttention(*U.shape, 1)(deora2024.MultiHeadParams(U[None], W[None]), X)


@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_self_attention_by_loops(scale, relative):
    X, _, _, W = sample(4, 3)
    got = np.asarray(core.self_attention(X, scale * W))
    for t in range(4):
        logits = np.array([X[t] @ (scale * W) @ X[s] for s in range(4)])
        e = np.exp(logits - logits.max())
        np.testing.assert_allclose(got[t], e / e.sum(), rtol=relative["float64"], atol=1e-300)
    U = core.normal(stream(4, "U"), (4, 3))
    head = sum(U[t] @ (got[t] @ X) for t in range(4))
    np.testing.assert_allclose(one_head(X, scale * W, U), head, rtol=relative["float64"])


def test_attention_head_does_not_see_the_order_of_tokens_with_equal_rows_of_u(relative):
    X, _, u, W = sample(4, 3)
    U = np.tile(u, (4, 1))
    values = [float(one_head(X[list(p)], W, U)) for p in itertools.permutations(range(4))]
    np.testing.assert_allclose(values, values[0], rtol=relative["float64"])
