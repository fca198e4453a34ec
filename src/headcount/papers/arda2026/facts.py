"""Facts 1-3 of arda2026: the softmax Jacobian, the pooled token and its covariance."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...core import pooled_attention
from ...theory import Sides
from ...theory.families import log_uniform, safe_norm, shaped
from ...theory.slow import Arithmetic, dot, flat, norm, softmax, times
from .declare import claim, identity
from .hypotheses import TOKENS, in_cube
from .instances import HEADS, HeadInstance, SoftmaxInstance
from .naive import Data, one_head

APPENDIX = "App. A.1"


def _draw_softmax(rng: np.random.Generator, count: int, *, T: int) -> SoftmaxInstance:
    logits = log_uniform(rng, 1e-3, 30.0, count, 1) * rng.normal(size=(count, T))
    return SoftmaxInstance(logits, rng.uniform(-2, 2, (count, T)))


def _project_softmax(instance: SoftmaxInstance) -> SoftmaxInstance:
    return replace(instance, u=jnp.clip(instance.u, -1.0, 1.0), z=jnp.clip(instance.z, -40.0, 40.0))


LOGITS = tuple(shaped("logits", _draw_softmax, _project_softmax, T=T) for T in (4, 2, 9))


def _fact_1(instance: SoftmaxInstance, variant: str) -> Sides:
    _, Ju = jax.jvp(jax.nn.softmax, (instance.z,), (instance.u,))
    return Sides(jnp.sum(jnp.abs(Ju)), 1.0 if variant == "sharp" else 2.0)


def _fact_1_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    alpha = softmax(num, data["z"])
    mean = dot(alpha, data["u"])
    entries = [abs(p * (u - mean)) for p, u in zip(alpha, data["u"], strict=True)]
    return num.total(entries), num.number(1 if variant == "sharp" else 2)


softmax_identity = functools.partial(identity, families=LOGITS, where=APPENDIX)

claim(
    "fact-1",
    "Softmax Jacobian in the infinity-to-one norm",
    "Fact 1",
    "For every z and every u with entries in [-1, 1], |J_s(z) u|_1 <= 2.",
    r"\max_{\|u\|_\infty\le 1}\|J_s(z)u\|_1 \le 2",
    sides=_fact_1,
    naive=_fact_1_naive,
    families=LOGITS,
    targets=lambda: (SoftmaxInstance(np.zeros(2), np.array([1.0, -1.0])),),
    forms={
        "printed": "constant 2",
        "sharp": "constant 1: the maximum is max_S 4 P(S) (1 - P(S)), at u = +1 on S, -1 off S",
    },
    hypotheses=(in_cube("direction u in the unit cube", "u"),),
    bound={"printed": 2.0, "sharp": 1.0},
    where=APPENDIX,
)


def _jacobian_naively(num: Arithmetic, data: Data) -> list[list[Any]]:
    """By the quotient rule on exp(z_i) / S, without the closed form."""
    weights = [num.exp(z) for z in data["z"]]
    S = num.total(weights)
    return [
        [((S if i == j else 0) * w - w * other) / (S * S) for j, other in enumerate(weights)]
        for i, w in enumerate(weights)
    ]


def _closed_jacobian_naively(num: Arithmetic, data: Data) -> list[Any]:
    alpha = softmax(num, data["z"])
    return [p * ((i == j) - r) for i, p in enumerate(alpha) for j, r in enumerate(alpha)]


def _closed_jacobian(z: Any) -> Any:
    alpha = jax.nn.softmax(z)
    return jnp.diag(alpha) - jnp.outer(alpha, alpha)


_jacobian = jax.jacfwd(jax.nn.softmax)

softmax_identity(
    "fact-1-jacobian",
    "The softmax Jacobian",
    "Fact 1",
    "J_s(z) = diag(p) - p p^T with p = softmax(z). Left: derivatives; right: the formula.",
    r"J_s(z)=\mathrm{diag}(\sigma_s(z))-\sigma_s(z)\sigma_s(z)^\top",
    sides=lambda i, variant: Sides(_jacobian(i.z), _closed_jacobian(i.z), scale=1.0),
    naive=lambda num, data, variant: (
        flat(_jacobian_naively(num, data)),
        _closed_jacobian_naively(num, data),
    ),
)

softmax_identity(
    "fact-1-symmetry",
    "The softmax Jacobian is symmetric",
    "Fact 1",
    "J_s(z) equals its transpose.",
    r"J_s(z)=J_s(z)^\top",
    sides=lambda i, variant: Sides(_jacobian(i.z), _jacobian(i.z).T, scale=1.0),
    naive=lambda num, data, variant: (
        flat(_jacobian_naively(num, data)),
        flat(list(zip(*_jacobian_naively(num, data), strict=True))),
    ),
)


def _kernel(i: SoftmaxInstance, variant: str) -> Sides:
    J = _jacobian(i.z)
    return Sides(jnp.diag(J), jnp.diag(J) - jnp.sum(J, axis=1), scale=1.0)


softmax_identity(
    "fact-1-kernel",
    "Constants are in the kernel of the softmax Jacobian",
    "Fact 1",
    "J_s(z) 1 = 0: a shift of all logits changes nothing. Compared: the diagonal of J with minus "
    "the sum of the other entries of its row.",
    r"J_s(z)\mathbf 1=0",
    sides=_kernel,
    naive=lambda num, data, variant: (
        [row[k] for k, row in enumerate(_jacobian_naively(num, data))],
        [
            -num.total([entry for l, entry in enumerate(row) if l != k])
            for k, row in enumerate(_jacobian_naively(num, data))
        ],
    ),
)


def _pool(head: HeadInstance) -> tuple[Any, Any]:
    """(a, M), with M built from the softmax's autodiff Jacobian."""
    z = head.X @ (head.W @ head.q)
    alpha = pooled_attention(head.X, head.W, head.q)
    return alpha @ head.X, head.X.T @ _jacobian(z) @ head.X


def _centred(head: HeadInstance) -> tuple[Any, Any]:
    """Weights and centred tokens: M without cancellation where it is small."""
    alpha = pooled_attention(head.X, head.W, head.q)
    return alpha, head.X - (alpha @ head.X)[None]


def covariance(head: HeadInstance) -> Any:
    """M = sum_t alpha_t (X_t - a)(X_t - a)^T."""
    alpha, tokens = _centred(head)
    return (alpha[:, None] * tokens).T @ tokens


def antipodal(activation: str = "tanh", U: float = 1.0, logit: float = 0.0) -> HeadInstance:
    """Tokens +1 and -1 in one dimension with weights 1/2 (logit 0): a = 0 and M = 1."""
    one = np.ones((1, 1))
    return HeadInstance(
        X=np.array([[1.0], [-1.0]]),
        q=np.ones(1),
        c=np.array(1.0),
        U=np.array([U]),
        W=logit * one,
        v=one,
        activation=activation,
    )


def _targets() -> tuple[HeadInstance, ...]:
    """Both at T = 2 and at T = 40: the constants can neither grow nor shrink with T."""
    pairs = antipodal(), replace(antipodal(), X=np.ones((2, 1)))
    return (*pairs, *(replace(pair, X=np.tile(pair.X, (20, 1))) for pair in pairs))


def _trace(num: Arithmetic, M: Any) -> Any:
    return num.total([M[k][k] for k in range(len(M))])


on_heads = functools.partial(claim, families=HEADS, targets=_targets, where=APPENDIX)

on_heads(
    "fact-2",
    "Pooled token",
    "Fact 2, Remark 5",
    "The pooled token a(X; W) has norm at most 1, whatever T.",
    r"\|a(X;W)\|_2 \le 1",
    sides=lambda head, variant: Sides(safe_norm(_pool(head)[0]), 1.0),
    naive=lambda num, data, variant: (norm(num, one_head(num, data).a), num.number(1)),
    forms="attained when all weight is on unit tokens that agree",
    hypotheses=(TOKENS,),
    bound=1.0,
)


def _fact_3(head: HeadInstance, variant: str) -> Sides:
    a, M = _pool(head)
    return Sides(jnp.trace(M) + (a @ a if variant == "sharp" else 0.0), 1.0)


def _fact_3_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    unit = one_head(num, data)
    extra = dot(unit.a, unit.a) if variant == "sharp" else 0
    return _trace(num, unit.M) + extra, num.number(1)


on_heads(
    "fact-3",
    "Trace of the attention covariance",
    "Fact 3, Remark 4",
    "tr M(X; W) <= 1, whatever T.",
    r"\operatorname{tr} M(X;W) \le \sum_t \alpha_t\|X_t\|_2^2 \le 1",
    sides=_fact_3,
    naive=_fact_3_naive,
    forms={
        "printed": "attained by two antipodal unit tokens of weight 1/2",
        "sharp": "tr M + |a|^2 <= 1, since tr M = sum_t alpha_t |X_t|^2 - |a|^2",
    },
    hypotheses=(TOKENS,),
    bound=1.0,
)


def _outer_naively(num: Arithmetic, data: Data) -> list[Any]:
    """X J X^T, entry by entry, from the closed Jacobian: sum_t p_t X_t X_t^T - a a^T."""
    unit, X = one_head(num, data), data["X"]
    size = range(len(unit.a))
    moments = [[dot(unit.alpha, [x[k] * x[l] for x in X]) for l in size] for k in size]
    return [moments[k][l] - unit.a[k] * unit.a[l] for k in size for l in size]


identity(
    "fact-3-covariance",
    "M is a weighted covariance",
    "Fact 3, Remark 4, Eq. (8)",
    "X J_s X^T = sum_t alpha_t (X_t - a)(X_t - a)^T, with J_s the softmax Jacobian at X^T W q.",
    r"XJ_sX^\top=\sum_t\alpha_t(X_t-\mu)(X_t-\mu)^\top",
    sides=lambda head, variant: Sides(
        _pool(head)[1], covariance(head), scale=jnp.max(safe_norm(head.X)) ** 2
    ),
    naive=lambda num, data, variant: (
        _outer_naively(num, data),
        flat(one_head(num, data).M),
    ),
    families=HEADS,
    where=APPENDIX,
)


def _semidefinite(head: HeadInstance, variant: str) -> Sides:
    M, w = covariance(head), head.v[0]
    return Sides(jnp.abs(head.U @ M @ w), (head.U @ M @ head.U + w @ M @ w) / 2)


def _semidefinite_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    M, U, w = one_head(num, data).M, data["U"], data["v"][0]
    return abs(dot(U, times(M, w))), (dot(U, times(M, U)) + dot(w, times(M, w))) / 2


on_heads(
    "fact-3-semidefinite",
    "M is positive semi-definite",
    "Fact 3",
    "U^T M U >= 0 for every U. In the equivalent form |U^T M w| <= (U^T M U + w^T M w)/2 for all "
    "U and w, which (U +- w)^T M (U +- w) >= 0 says and w = 0 gives back.",
    r"M\succeq0",
    sides=_semidefinite,
    naive=_semidefinite_naive,
    forms="attained by w = U",
)


def _frobenius(head: HeadInstance, variant: str) -> Sides:
    M = covariance(head)
    return Sides(safe_norm(M, axis=(-2, -1)), jnp.trace(M))


def _frobenius_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    M = one_head(num, data).M
    return norm(num, flat(M)), _trace(num, M)


on_heads(
    "fact-3-frobenius",
    "Frobenius norm of the attention covariance",
    "Fact 3",
    "||M||_F <= tr M, because M is positive semi-definite.",
    r"\|M\|_F \le \operatorname{tr} M",
    sides=_frobenius,
    naive=_frobenius_naive,
    forms="attained by rank-one M",
)


def _order(head: HeadInstance, variant: str) -> Sides:
    alpha, tokens = _centred(head)
    return Sides(alpha @ (tokens @ head.U) ** 2, alpha @ (head.X @ head.U) ** 2)


def _order_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    unit, U = one_head(num, data), data["U"]
    return dot(U, times(unit.M, U)), dot(unit.alpha, [dot(x, U) ** 2 for x in data["X"]])


on_heads(
    "fact-3-order",
    "The attention covariance below the second moment",
    "Fact 3",
    "U^T M U <= sum_t alpha_t (U . X_t)^2 for every direction U.",
    r"M \preceq \sum_t \alpha_t X_t X_t^\top",
    sides=_order,
    naive=_order_naive,
    forms="attained where the pooled token is orthogonal to U",
)
