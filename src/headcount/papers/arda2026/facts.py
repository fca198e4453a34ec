"""Facts 1-3 of arda2026: the softmax Jacobian, the pooled token and its covariance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...core import pooled_attention
from ...theory import Bound, Claim, Family, Hypothesis, Kind, Sides, Variant, claims
from ...theory.slow import Arithmetic, dot, flat, norm, softmax, times
from .hypotheses import TOKENS
from .instances import HEADS, HeadInstance, SoftmaxInstance, safe_norm
from .naive import Data, one_head
from .setting import Setting

REFERENCE = ("arda2026, App. A.1",)


def _constant(values: dict[str, float]) -> Callable[[Setting, str], Bound]:
    return lambda setting, variant: Bound(values[variant])


def _draw_softmax(rng: np.random.Generator, count: int) -> SoftmaxInstance:
    spread = np.exp(rng.uniform(-2.0, 2.0, (count, 1)))
    return SoftmaxInstance(spread * rng.normal(size=(count, 4)), rng.uniform(-2, 2, (count, 4)))


def _project_softmax(instance: SoftmaxInstance) -> SoftmaxInstance:
    return replace(instance, u=jnp.clip(instance.u, -1.0, 1.0), z=jnp.clip(instance.z, -40.0, 40.0))


def _fact_1(instance: SoftmaxInstance, variant: str) -> Sides:
    _, Ju = jax.jvp(jax.nn.softmax, (instance.z,), (instance.u,))
    return Sides(jnp.sum(jnp.abs(Ju)), 1.0 if variant == "sharp" else 2.0)


def _fact_1_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    alpha = softmax(num, data["z"])
    mean = dot(alpha, data["u"])
    entries = [abs(p * (u - mean)) for p, u in zip(alpha, data["u"], strict=True)]
    return sum(entries[1:], entries[0]), num.number(1 if variant == "sharp" else 2)


def _even_pair() -> tuple[SoftmaxInstance, ...]:
    return (SoftmaxInstance(np.zeros(2), np.array([1.0, -1.0])),)


fact_1 = claims.add(
    Claim(
        id="arda2026/fact-1",
        title="Softmax Jacobian in the infinity-to-one norm",
        kind=Kind.DETERMINISTIC,
        equations="Fact 1",
        statement="For every z and every u with entries in [-1, 1], |J_s(z) u|_1 <= 2.",
        latex=r"\max_{\|u\|_\infty\le 1}\|J_s(z)u\|_1 \le 2",
        sides=_fact_1,
        naive=_fact_1_naive,
        families=(Family("logits T=4", _draw_softmax, _project_softmax),),
        targets=_even_pair,
        variants={
            "printed": Variant("constant 2"),
            "sharp": Variant(
                "constant 1: the maximum is max_S 4 P(S) (1 - P(S)), at u = +1 on S, -1 off S"
            ),
        },
        default="printed",
        hypotheses=(
            Hypothesis(
                "direction u in the unit cube",
                lambda i: jnp.max(jnp.abs(i.u)),
                lambda num, data: num.largest(abs(u) for u in data["u"]),
            ),
        ),
        bound=_constant({"printed": 2.0, "sharp": 1.0}),
        references=REFERENCE,
    )
)


def _pool(head: HeadInstance) -> tuple[Any, Any]:
    """(a, M), with M built from the softmax's autodiff Jacobian."""
    z = head.X @ (head.W @ head.q)
    alpha = pooled_attention(head.X, head.W, head.q)
    return alpha @ head.X, head.X.T @ jax.jacfwd(jax.nn.softmax)(z) @ head.X


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
    same = replace(antipodal(), X=np.ones((2, 1)))
    return antipodal(), same


def _fact_2(head: HeadInstance, variant: str) -> Sides:
    return Sides(safe_norm(_pool(head)[0]), 1.0)


def _fact_2_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    return norm(num, one_head(num, data).a), num.number(1)


fact_2 = claims.add(
    Claim(
        id="arda2026/fact-2",
        title="Pooled token",
        kind=Kind.DETERMINISTIC,
        equations="Fact 2, Remark 5",
        statement="The pooled token a(X; W) has norm at most 1, whatever T.",
        latex=r"\|a(X;W)\|_2 \le 1",
        sides=_fact_2,
        naive=_fact_2_naive,
        families=HEADS,
        targets=_targets,
        variants={"printed": Variant("attained when all weight is on unit tokens that agree")},
        default="printed",
        hypotheses=(TOKENS,),
        bound=_constant({"printed": 1.0}),
        references=REFERENCE,
    )
)


def _fact_3(head: HeadInstance, variant: str) -> Sides:
    a, M = _pool(head)
    extra = a @ a if variant == "sharp" else 0.0
    return Sides(jnp.trace(M) + extra, 1.0)


def _fact_3_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    unit = one_head(num, data)
    trace = sum((unit.M[k][k] for k in range(1, len(unit.a))), unit.M[0][0])
    return trace + (dot(unit.a, unit.a) if variant == "sharp" else 0), num.number(1)


fact_3 = claims.add(
    Claim(
        id="arda2026/fact-3",
        title="Trace of the attention covariance",
        kind=Kind.DETERMINISTIC,
        equations="Fact 3, Remark 4",
        statement="tr M(X; W) <= 1, whatever T.",
        latex=r"\operatorname{tr} M(X;W) \le \sum_t \alpha_t\|X_t\|_2^2 \le 1",
        sides=_fact_3,
        naive=_fact_3_naive,
        families=HEADS,
        targets=_targets,
        variants={
            "printed": Variant("attained by two antipodal unit tokens of weight 1/2"),
            "sharp": Variant("tr M + |a|^2 <= 1, since tr M = sum_t alpha_t |X_t|^2 - |a|^2"),
        },
        default="printed",
        hypotheses=(TOKENS,),
        bound=_constant({"printed": 1.0, "sharp": 1.0}),
        references=REFERENCE,
    )
)


def _centred(head: HeadInstance) -> tuple[Any, Any]:
    """Weights and centred tokens: M without cancellation where it is small."""
    alpha = pooled_attention(head.X, head.W, head.q)
    return alpha, head.X - alpha @ head.X


def _frobenius(head: HeadInstance, variant: str) -> Sides:
    alpha, tokens = _centred(head)
    M = (alpha[:, None] * tokens).T @ tokens
    return Sides(safe_norm(M, axis=(-2, -1)), jnp.trace(M))


def _frobenius_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    M = one_head(num, data).M
    return norm(num, flat(M)), sum((M[k][k] for k in range(1, len(M))), M[0][0])


fact_3_frobenius = claims.add(
    Claim(
        id="arda2026/fact-3-frobenius",
        title="Frobenius norm of the attention covariance",
        kind=Kind.DETERMINISTIC,
        equations="Fact 3",
        statement="||M||_F <= tr M, because M is positive semi-definite.",
        latex=r"\|M\|_F \le \operatorname{tr} M",
        sides=_frobenius,
        naive=_frobenius_naive,
        families=HEADS,
        targets=_targets,
        variants={"printed": Variant("attained by rank-one M")},
        default="printed",
        references=REFERENCE,
    )
)


def _order(head: HeadInstance, variant: str) -> Sides:
    alpha, tokens = _centred(head)
    return Sides(alpha @ (tokens @ head.U) ** 2, alpha @ (head.X @ head.U) ** 2)


def _order_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    unit = one_head(num, data)
    U = data["U"]
    return dot(U, times(unit.M, U)), dot(unit.alpha, [dot(x, U) ** 2 for x in data["X"]])


fact_3_order = claims.add(
    Claim(
        id="arda2026/fact-3-order",
        title="The attention covariance below the second moment",
        kind=Kind.DETERMINISTIC,
        equations="Fact 3",
        statement="U^T M U <= sum_t alpha_t (U . X_t)^2 for every direction U.",
        latex=r"M \preceq \sum_t \alpha_t X_t X_t^\top",
        sides=_order,
        naive=_order_naive,
        families=HEADS,
        targets=_targets,
        variants={"printed": Variant("attained where the pooled token is orthogonal to U")},
        default="printed",
        references=REFERENCE,
    )
)
