"""Facts 1-3 of arda2026: the softmax Jacobian, the pooled token and its covariance."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ....core import pooled_attention
from ....theory import Sides
from ....theory.families import safe_norm
from ....theory.slow import dot, flat, norm, softmax, times
from .. import twins as slow
from ..constants import state
from ..records import Head, Softmax

on_softmax = functools.partial(
    state.claim,
    on=Softmax,
    proved="App. A.1",
    no_rival="2 is what the triangle inequality gives: nothing simpler is known",
)
of_softmax = functools.partial(state.identity, on=Softmax, where="Fact 1", proved="App. A.1")
jacobian = jax.jacfwd(jax.nn.softmax)


@on_softmax(
    "fact-1",
    "Softmax Jacobian in the infinity-to-one norm",
    where="Fact 1",
    says=r"\max_{\|u\|_\infty\le 1}\|J_s(z)u\|_1 \le 2",
    forms={
        "printed": "constant 2",
        "sharp": "constant 1: the maximum is max_S 4 P(S) (1 - P(S)), at u = +1 on S, -1 off S",
    },
    right={"printed": 2.0, "sharp": 1.0},
    tight=lambda: (Softmax(z=np.zeros(2), u=np.array([1.0, -1.0])),),
)
def fact_1(z, u):
    """For every z and every u with entries in [-1, 1], |J_s(z) u|_1 <= 2."""
    return jnp.sum(jnp.abs(jax.jvp(jax.nn.softmax, (z,), (u,))[1]))


@fact_1.twin
def _(num, z, u):
    alpha = softmax(num, z)
    mean = dot(alpha, u)
    return num.total([abs(p * (x - mean)) for p, x in zip(alpha, u, strict=True)])


@of_softmax(
    "fact-1-jacobian",
    "The softmax Jacobian",
    says=r"J_s(z)=\mathrm{diag}(\sigma_s(z))-\sigma_s(z)\sigma_s(z)^\top",
)
def fact_1_jacobian(z):
    """J_s(z) = diag(p) - p p^T with p = softmax(z). Left: derivatives; right: the formula."""
    p = jax.nn.softmax(z)
    return Sides(jacobian(z), jnp.diag(p) - jnp.outer(p, p), scale=1.0)


@of_softmax("fact-1-symmetry", "The softmax Jacobian is symmetric", says=r"J_s(z)=J_s(z)^\top")
def fact_1_symmetry(z):
    """J_s(z) equals its transpose."""
    return Sides(jacobian(z), jacobian(z).T, scale=1.0)


@of_softmax(
    "fact-1-kernel",
    "Constants are in the kernel of the softmax Jacobian",
    says=r"J_s(z)\mathbf 1=0",
)
def fact_1_kernel(z):
    """J_s(z) 1 = 0: a shift of all logits changes nothing. Compared: the diagonal of J with minus
    the sum of the other entries of its row."""
    J = jacobian(z)
    return Sides(jnp.diag(J), jnp.diag(J) - jnp.sum(J, axis=1), scale=1.0)


def pool(head: Any) -> tuple[Any, Any]:
    """(a, M), with M built from the softmax's autodiff Jacobian."""
    alpha = pooled_attention(head.X, head.W, head.q)
    return alpha @ head.X, head.X.T @ jacobian(head.X @ (head.W @ head.q)) @ head.X


def centred(head: Any) -> tuple[Any, Any]:
    """Weights and centred tokens: M without cancellation where it is small."""
    alpha = pooled_attention(head.X, head.W, head.q)
    return alpha, head.X - (alpha @ head.X)[None]


def covariance(head: Any) -> Any:
    """M = sum_t alpha_t (X_t - a)(X_t - a)^T."""
    alpha, tokens = centred(head)
    return (alpha[:, None] * tokens).T @ tokens


def antipodal(activation: str = "tanh", U: float = 1.0, logit: float = 0.0) -> Head:
    """Tokens +1 and -1 in one dimension with weights 1/2 (logit 0): a = 0 and M = 1."""
    one = np.ones((1, 1))
    fields = {"q": np.ones(1), "c": np.array(1.0), "U": np.array([U]), "W": logit * one, "v": one}
    return Head(X=np.array([[1.0], [-1.0]]), **fields, activation=activation)


def _tight() -> tuple[Head, ...]:
    """Both at T = 2 and at T = 40: the constants can neither grow nor shrink with T."""
    pairs = antipodal(), antipodal().changed(X=np.ones((2, 1)))
    return (*pairs, *(pair.changed(X=np.tile(pair.X, (20, 1))) for pair in pairs))


on_heads = functools.partial(
    state.claim,
    on=Head,
    asks=(),
    tight=_tight,
    proved="App. A.1",
    no_rival="it compares two quantities of one point, or says what tokens in the ball give",
)


@on_heads(
    "fact-2",
    "Pooled token",
    where="Fact 2, Remark 5",
    asks=("X",),
    says=r"\|a(X;W)\|_2 \le 1",
    forms="attained when all weight is on unit tokens that agree",
    right=1.0,
)
def fact_2(head):
    """The pooled token a(X; W) has norm at most 1, whatever T."""
    return safe_norm(pool(head)[0])


@fact_2.twin
def _(num, head):
    return norm(num, slow.one_head(num, head).a)


@on_heads(
    "fact-3",
    "Trace of the attention covariance",
    where="Fact 3, Remark 4",
    asks=("X",),
    says=r"\operatorname{tr} M(X;W) \le \sum_t \alpha_t\|X_t\|_2^2 \le 1",
    forms={
        "printed": "attained by two antipodal unit tokens of weight 1/2",
        "sharp": "tr M + |a|^2 <= 1, since tr M = sum_t alpha_t |X_t|^2 - |a|^2",
    },
    right=1.0,
)
def fact_3(head, form):
    """tr M(X; W) <= 1, whatever T."""
    a, M = pool(head)
    return jnp.trace(M) + (a @ a if form == "sharp" else 0.0)


@fact_3.twin
def _(num, head, form):
    unit = slow.one_head(num, head)
    return slow_trace(num, unit.M) + (dot(unit.a, unit.a) if form == "sharp" else 0)


def slow_trace(num: Any, M: Any) -> Any:
    """tr M."""
    return num.total([M[k][k] for k in range(len(M))])


@state.identity(
    "fact-3-covariance",
    "M is a weighted covariance",
    where="Fact 3, Remark 4, Eq. (8)",
    proved="App. A.1",
    on=Head,
    asks=(),
    says=r"XJ_sX^\top=\sum_t\alpha_t(X_t-\mu)(X_t-\mu)^\top",
)
def fact_3_covariance(head):
    """X J_s X^T = sum_t alpha_t (X_t - a)(X_t - a)^T, with J_s the softmax Jacobian at X^T W q."""
    return Sides(pool(head)[1], covariance(head), scale=jnp.max(safe_norm(head.X)) ** 2)


@on_heads(
    "fact-3-semidefinite",
    "M is positive semi-definite",
    where="Fact 3",
    says=r"M\succeq0",
    forms="attained by w = U",
)
def fact_3_semidefinite(head):
    """U^T M U >= 0 for every U. In the equivalent form |U^T M w| <= (U^T M U + w^T M w)/2 for all U
    and w, which (U +- w)^T M (U +- w) >= 0 says and w = 0 gives back."""
    M, w = covariance(head), head.v[0]
    return jnp.abs(head.U @ M @ w), (head.U @ M @ head.U + w @ M @ w) / 2


@fact_3_semidefinite.twin
def _(num, head):
    M, U, w = slow.one_head(num, head).M, head["U"], head["v"][0]
    return abs(dot(U, times(M, w))), (dot(U, times(M, U)) + dot(w, times(M, w))) / 2


@on_heads(
    "fact-3-frobenius",
    "Frobenius norm of the attention covariance",
    where="Fact 3",
    says=r"\|M\|_F \le \operatorname{tr} M",
    forms="attained by rank-one M",
)
def fact_3_frobenius(head):
    """||M||_F <= tr M, because M is positive semi-definite."""
    M = covariance(head)
    return safe_norm(M, axis=(-2, -1)), jnp.trace(M)


@fact_3_frobenius.twin
def _(num, head):
    M = slow.one_head(num, head).M
    return norm(num, flat(M)), slow_trace(num, M)


@on_heads(
    "fact-3-order",
    "The attention covariance below the second moment",
    where="Fact 3",
    says=r"M \preceq \sum_t \alpha_t X_t X_t^\top",
    forms="attained where the pooled token is orthogonal to U",
)
def fact_3_order(head):
    """U^T M U <= sum_t alpha_t (U . X_t)^2 for every direction U."""
    alpha, tokens = centred(head)
    return alpha @ (tokens @ head.U) ** 2, alpha @ (head.X @ head.U) ** 2


@fact_3_order.twin
def _(num, head):
    unit, U = slow.one_head(num, head), head["U"]
    return dot(U, times(unit.M, U)), dot(unit.alpha, [dot(x, U) ** 2 for x in head["X"]])
