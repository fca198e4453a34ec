"""Tangent features of the multi-head attention and of its head groups [deora2024, Sec. 2]."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jaxtyping import Float

from ...core import Array, own_precision
from ...kernels import Factors, register_features
from ...kernels._features import cheapest, flattened
from .model import HeadGroups, MultiHeadAttention, MultiHeadParams


@own_precision
def features_deora2024(
    model: MultiHeadAttention | HeadGroups, params: MultiHeadParams, x: Float[Array, "T d"]
) -> dict[str, Factors]:
    """The gradient of Phi~ = H^{-1/2} sum_h <U_h, softmax(X W_h X^T) X> in factored form.

    U_h: the attention output A_h X (full), its column sums (pooling) or its last row (last).
    W_h: X^T G_h X = sum_t x_t (G_h X)_t^T, where row t of G_h is (diag(beta) - beta beta^T) v_t
    with beta = row t of A_h and v_t = X (row t of U_h) [deora2024, Eq. (1)]; the factors are the
    rows (G_h X)_t of all heads (T, H d) and the tokens x_t (T, d). A group of k equal heads has k
    equal gradients, whose inner products add up: it weighs sqrt(k / H) in place of H^{-1/2}.
    """
    readout, (U, W) = model.readout, params
    weight = jnp.asarray([math.sqrt(k / model.H) for k in model.multiplicities], x.dtype)
    queries = x[-1:] if readout == "last" else x
    A = jax.nn.softmax(jnp.einsum("qi,hij,sj->hqs", queries, W, x), axis=-1)
    outputs = A @ x
    if readout == "full":
        values = U @ x.T
        to_U = outputs
    else:
        values = (U @ x.T)[:, None, :]
        to_U = outputs.sum(axis=1)
    G = A * (values - (A * values).sum(axis=-1, keepdims=True))
    rows = jnp.einsum("hqs,sd,h->qhd", G, x, weight)
    scaled = to_U * weight.reshape(-1, *[1] * (to_U.ndim - 1))
    return {
        "U": flattened(scaled),
        "W": cheapest((rows.reshape(queries.shape[0], -1), queries)),
    }


register_features(MultiHeadAttention, features_deora2024)
register_features(HeadGroups, features_deora2024)
