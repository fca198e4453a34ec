"""Derivatives of deora2024 by groups of heads, against all heads and against the slow twin."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from headcount.papers.deora2024 import constants, twins
from headcount.papers.deora2024 import quantities as model
from headcount.papers.deora2024.model import MultiHeadAttention, MultiHeadParams
from headcount.papers.deora2024.records import Model, opposite_model, opposite_tokens
from headcount.theory import claims, judge
from headcount.theory.domain import arrays_of
from headcount.theory.slow import FLOATS
from headcount.theory.slow_sides import slow_data
from headcount.theory.slow_spectrum import operator_norm, smallest_eigenvalue

READOUTS = ("full", "pooling", "last")


def drawn(readout: str, n: int = 3, T: int = 3, d: int = 2, G: int = 2) -> Model:
    rng = np.random.default_rng(READOUTS.index(readout))
    r = T if readout == "full" else 1
    y = rng.choice([-1.0, 1.0], n)
    k = np.array([2.0, 1.0])[:G]
    U, W = rng.normal(size=(G, r, d)), rng.normal(size=(G, d, d))
    X = rng.normal(size=(n, T, d))
    return Model(X=X, y=y, k=k, U=U, W=W, readout=readout)


def plain_loss(i: Model):
    """The loss of all H heads as a function of one flat vector."""
    heads = np.repeat(np.arange(len(i.k)), i.k.astype(int))
    plain = MultiHeadAttention(i.T, i.d, len(heads), i.readout)
    U = i.U if i.readout == "full" else i.U[:, 0]
    params = MultiHeadParams(jnp.asarray(U[heads]), jnp.asarray(i.W[heads]))
    flat, back = jax.flatten_util.ravel_pytree(params)

    def loss(theta):
        f = jax.vmap(lambda X: plain(back(theta), X))(i.X)
        return jnp.mean(jnp.log1p(jnp.exp(-i.y * f)))

    return loss, flat


def _measured(i: Model):
    size = model.length(i, model.loss_gradient(i, i.rows))
    return model.loss(i, i.rows), size, jnp.stack(model.loss_hessian_ends(i, i.rows))


@pytest.mark.parametrize("readout", READOUTS)
def test_groups_have_the_derivatives_of_all_their_heads(readout: str) -> None:
    i = drawn(readout)
    loss, theta = plain_loss(i)
    value, g, H = jax.jit(lambda t: (loss(t), jax.grad(loss)(t), jax.hessian(loss)(t)))(theta)
    got_value, size, got = jax.jit(_measured)(i)
    np.testing.assert_allclose(got_value, value, rtol=1e-13)
    np.testing.assert_allclose(size, np.linalg.norm(g), rtol=1e-12)
    ends = np.linalg.eigvalsh(H)
    np.testing.assert_allclose(got, [min(ends[0], 0), max(ends[-1], 0)], rtol=1e-10)


@pytest.mark.parametrize("readout", READOUTS)
def test_the_slow_twin_has_the_same_derivatives(readout: str) -> None:
    i = drawn(readout)
    data = slow_data(FLOATS, arrays_of(i))
    rows = twins.parameters(data)
    fast, gradient, ends = jax.jit(
        lambda i: (
            model.head_hessians(i, i.rows),
            model.loss_gradient(i, i.rows),
            jnp.stack(model.loss_hessian_ends(i, i.rows)),
        )
    )(i)
    slow = np.array(twins.head_hessians(FLOATS, data, rows))
    np.testing.assert_allclose(slow, fast, rtol=1e-10, atol=1e-12)
    parts = twins.samples(FLOATS, data, rows)
    np.testing.assert_allclose(twins.loss_gradient(FLOATS, data, parts), gradient, rtol=1e-10)
    got = twins.loss_hessian_ends(FLOATS, data, rows)
    np.testing.assert_allclose(got, ends, rtol=1e-9)


def test_slow_norm_and_eigenvalue() -> None:
    A = np.random.default_rng(0).normal(size=(5, 5))
    S = A + A.T
    np.testing.assert_allclose(operator_norm(FLOATS, A.tolist()), np.linalg.norm(A, 2), rtol=1e-12)
    ends = np.linalg.eigvalsh(S)
    np.testing.assert_allclose(smallest_eigenvalue(FLOATS, S.tolist()), ends[0], rtol=1e-12)


def test_the_sharp_hessian_bound_is_attained() -> None:
    verdict = judge(claims["deora2024/proposition-1-4"], opposite_tokens(), "sharp")
    np.testing.assert_allclose(verdict.ratio, 1.0, rtol=1e-12)
    for readout in ("full", "last"):
        instance = opposite_model(readout, 4.0)
        verdict = judge(claims["deora2024/lemma-5-hessian"], instance, "sharp")
        np.testing.assert_allclose(verdict.ratio, 1.0, rtol=1e-12)


@pytest.mark.parametrize("readout", READOUTS)
def test_sharp_is_at_most_v1_is_at_most_v2(readout: str) -> None:
    rng = np.random.default_rng(1)
    for _ in range(100):
        N, R = rng.exponential(3.0), 1 + rng.exponential(1.0)
        T, d = int(rng.integers(1, 9)), int(rng.integers(1, 9))
        sharp, v1, v2 = (
            constants.beta_3(N, R, T, d, tier, readout) for tier in ("sharp", "v1", "v2")
        )
        assert 2 * sharp <= v1 * (1 + 1e-12) <= v2 * (1 + 2e-12)
        B, H = rng.exponential(5.0), 10.0 ** rng.uniform(0, 15)
        steps = [constants.rho(B, R, H, T, d, tier, readout) for tier in ("sharp", "v1", "v2")]
        assert steps[0] <= steps[1] <= steps[2] * (1 + 1e-12)


def test_with_the_square_root_of_T_pooling_is_wrong() -> None:
    """E20: every row reads with the same u."""
    one, zero = np.ones(1), np.zeros((1, 1, 1))
    i = Model(X=np.ones((1, 4, 1)), y=one, k=one, U=zero, W=zero, readout="pooling")
    claim = claims["deora2024/lemma-5-gradient"]
    np.testing.assert_allclose(judge(claim, i, "same-constant").ratio, 2.0)
    np.testing.assert_allclose(judge(claim, i, "corrected").ratio, 1.0)
