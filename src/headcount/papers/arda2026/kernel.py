"""Tangent features of the pooled attention [arda2026, Sec. 5.4]: m + 2 m d + d numbers a sample."""

from __future__ import annotations

import math

import jax
from jaxtyping import Float

from ...core import Array, own_precision
from ...kernels import Factors, register_features
from ...kernels._features import flattened
from .model import PooledAttention, PooledAttentionParams


@own_precision
def features_arda2026(
    model: PooledAttention, params: PooledAttentionParams, x: Float[Array, "T d"]
) -> dict[str, Factors]:
    """The gradient of f = m^{-1/2} sum_i c_i sigma(U_i . a_i) in factored form, s_i = U_i . a_i.

    c: sigma(s_i); U: c_i sigma'(s_i) a_i; W: c_i sigma'(s_i) (M_i U_i) q^T, kept as its two
    factors c_i sigma'(s_i) M_i U_i (all heads, m d numbers) and q (d numbers), so that
    K_W = (q . q') times a Gram matrix. All times m^{-1/2} [arda2026, Eqs. (4), (8)].
    """
    c, U, W = params
    m, d = U.shape
    q = model.query(x)
    alpha = jax.nn.softmax((W.reshape(m * d, d) @ q).reshape(m, d) @ x.T, axis=-1)
    a = alpha @ x
    values = U @ x.T
    # sum_t alpha_t (x_t . U): equal to U . a, but centred in the same rounding as `values`.
    s = (alpha * values).sum(axis=-1, keepdims=True)
    MU = (alpha * (values - s)) @ x
    scale = 1 / math.sqrt(m)
    slope = scale * c[:, None] * model.activation.derivative(s)
    return {
        "c": flattened(scale * model.activation(s)),
        "U": flattened(slope * a),
        "W": (*flattened(slope * MU), q[None, :]),
    }


register_features(PooledAttention, features_arda2026)
