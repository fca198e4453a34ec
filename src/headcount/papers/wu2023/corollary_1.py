"""Corollary 1 of wu2023: a vector fed as one token, or as tokens of one feature."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from ...theory import Family, Sides, instance_class
from ...theory.families import shaped
from ...theory.slow import Arithmetic, dot, flat, times
from . import naive
from . import quantities as model
from .declare import identity
from .instances import ModelInstance, bounded, draw_model
from .naive import Data


@instance_class
@dataclass(frozen=True)
class ScalarTokens(ModelInstance):
    """An encoder on tokens of one feature."""

    ranges = (("d", 1, 1),)


@instance_class
@dataclass(frozen=True)
class OneToken(ModelInstance):
    """An encoder on samples of one token."""

    ranges = (("T", 1, 1),)


def _draw(rng: Any, count: int, *, kind: type[ModelInstance], **shape: int) -> ModelInstance:
    return kind(**draw_model(rng, count, **shape))


def _family(kind: type[ModelInstance], **shape: Any) -> Family:
    return shaped("encoder", functools.partial(_draw, kind=kind), bounded, **shape)


SCALARS = (
    _family(ScalarTokens, n=3, T=3, d=1, d_m=3),
    _family(ScalarTokens, n=4, T=2, d=1, d_m=5),
)
VECTORS = (_family(OneToken, n=2, T=1, d=3, d_m=3), _family(OneToken, n=3, T=1, d=2, d_m=2))


def _two_directions(i: ModelInstance, variant: str) -> Sides:
    mean = jnp.einsum("nts,ns->nt", model.attention(i, i.theta), i.X[..., 0])
    up, down = (jnp.sum(jax.nn.relu(sign * mean), axis=1) for sign in (1, -1))
    w = i.W_V[:, 0]
    pieces = jnp.outer(up, jax.nn.relu(w)) + jnp.outer(down, jax.nn.relu(-w))
    F = model.features(i, i.theta)
    return Sides(F, i.tau[1] * pieces, scale=jnp.max(jnp.abs(i.X)) * jnp.max(jnp.abs(w)) * i.tau[1])


def _two_directions_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    theta, w = naive.theta_of(data), [row[0] for row in data["W_V"]]
    right = []
    for X in data["X"]:
        rows = naive.attention(num, X, theta, data["tau"][0])
        means = [dot(beta, [x[0] for x in X]) for beta in rows]
        up = num.total([num.positive_part(m) for m in means])
        down = num.total([num.positive_part(-m) for m in means])
        right += [
            data["tau"][1] * (up * num.positive_part(v) + down * num.positive_part(-v)) for v in w
        ]
    return flat(naive.features(num, data, theta)), right


identity(
    "corollary-1-scalars",
    "Tokens of one feature: two directions are all there is",
    "Corollary 1",
    "For d = 1, F_pre = tau1 (p q^T + p' q'^T) with p = sum_i relu(m_i), p' = sum_i relu(-m_i), "
    "q = relu(w_V), q' = relu(-w_V): rank at most 2 at every width, so alpha = 0 and (2), (3) fail "
    "for N >= 3. f then depends on theta through three numbers, and the tangent kernel has rank at "
    "most 3.",
    r"F_{\rm pre}=\tau_1(pq^\top+p'q'^\top)",
    sides=_two_directions,
    naive=_two_directions_naive,
    families=SCALARS,
    forms="rank(F_pre) <= 2: stronger than `the conditions do not hold`",
    where="Sec. 4.4",
)


def _two_layer(i: ModelInstance, variant: str) -> Sides:
    f = model.outputs(i, i.theta)
    plain = i.tau[1] * jax.nn.relu(i.X[:, 0] @ i.W_V.T) @ i.w_O
    scale = jnp.max(jnp.abs(i.tau[1] * jax.nn.relu(i.X[:, 0] @ i.W_V.T)) @ jnp.abs(i.w_O))
    return Sides(f, plain, scale=scale)


def _two_layer_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    theta = naive.theta_of(data)
    plain = [
        data["tau"][1] * dot(theta.w_O, [num.positive_part(x) for x in times(theta.W_V, X[0])])
        for X in data["X"]
    ]
    return [one.f for one in naive.samples(num, data, theta)], plain


identity(
    "corollary-1-vector",
    "One token: a two-layer network",
    "Corollary 1, Sec. 5.1",
    "For d_s = 1 attention is 1 and f = tau1 w_O . relu(W_V x), exactly: W_Q and W_K have gradient "
    "zero and training is that of the two-layer network, step for step.",
    r"f(x)=\tau_1w_O^\top\sigma_r(W_Vx)",
    sides=_two_layer,
    naive=_two_layer_naive,
    families=VECTORS,
    forms="the same network, not a similar one",
    where="Sec. 4.4",
)
