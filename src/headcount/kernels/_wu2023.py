"""Tangent features of the encoder: the four closed-form blocks [wu2023, Sec. 3.1]."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Float

from ..core import Array, self_attention
from ..models import Encoder, EncoderParams
from ._features import Factors, cheapest, flattened, register_features


def features_wu2023(
    model: Encoder, params: EncoderParams, x: Float[Array, "d_s d"]
) -> dict[str, Factors]:
    """The gradient of f = tau1 w_O . sum_i relu(W_V phi_i), phi_i = X^T beta_i, in factored form.

    w_O: f_pre; W_V: tau1 sum_i (w_O o D_i) phi_i^T with D_i = 1[h_i > 0];
    W_Q: tau0 tau1 sum_i (W_K u_i) x_i^T; W_K: tau0 tau1 sum_i (W_Q x_i) u_i^T, where
    u_i = X^T (diag(beta_i) - beta_i beta_i^T) X W_V^T (w_O o D_i).

    Only inner products of W_K u and of W_Q x enter the kernel, so both matrices are replaced by
    square roots of their d x d Gram matrices: the W_Q and W_K blocks do not depend on d_m.
    """
    tokens = x.shape[0]
    tau1 = model.tau1 / tokens if model.pooling == "mean" else model.tau1
    B = self_attention(x, model.logits_matrix(params))
    phi = B @ x
    hidden = phi @ params.W_V.T
    if model.residual:
        hidden = hidden + jnp.pad(x, ((0, 0), (0, model.d_m - model.d)))
    gated = jnp.where(hidden > 0, params.w_O, jnp.zeros_like(hidden))
    values = gated @ params.W_V @ x.T
    u = (B * (values - (B * values).sum(axis=-1, keepdims=True))) @ x
    to_Q = u @ _gram_root(params.W_K).T * (model.tau0 * tau1)
    to_K = x @ _gram_root(params.W_Q).T * (model.tau0 * tau1)
    return {
        "W_Q": cheapest((to_Q, x)),
        "W_K": cheapest((to_K, u)),
        "W_V": cheapest((tau1 * gated, phi)),
        "w_O": flattened(model.pooled(hidden)),
    }


def _gram_root(W: Float[Array, "d_m d"]) -> Float[Array, "r d"]:
    """R with R^T R = W^T W and r = min(d_m, d) rows: the triangular factor of W = Q R.

    Unlike a Cholesky factor of W^T W it exists for every W and does not square the conditioning.
    """
    if W.shape[0] <= W.shape[1]:
        return W
    return jnp.linalg.qr(W, mode="r")


register_features(Encoder, features_wu2023)
