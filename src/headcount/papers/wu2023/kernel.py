"""Tangent features of the encoder: the four closed-form blocks [wu2023, Sec. 3.1]."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Float

from ...core import Array, own_precision, self_attention
from ...kernels import Factors, register_features
from ...kernels._features import cheapest, flattened
from .model import Encoder, EncoderParams


class PreparedEncoder(NamedTuple):
    """What all samples share: M = tau0 W_Q^T W_K, and roots of the Gram matrices of W_Q, W_K."""

    params: EncoderParams
    M: Float[Array, "d d"]
    root_Q: Float[Array, "r d"]
    root_K: Float[Array, "r d"]


@own_precision
def prepare_wu2023(model: Encoder, params: EncoderParams) -> PreparedEncoder:
    """The d x d matrices through which W_Q and W_K enter the kernel."""
    M = model.logits_matrix(params)
    return PreparedEncoder(params, M, _gram_root(params.W_Q), _gram_root(params.W_K))


@own_precision
def features_wu2023(
    model: Encoder, prepared: PreparedEncoder, x: Float[Array, "d_s d"]
) -> dict[str, Factors]:
    """The gradient of f = tau1 w_O . sum_i relu(W_V phi_i), phi_i = X^T beta_i, in factored form.

    w_O: f_pre; W_V: tau1 sum_i (w_O o D_i) phi_i^T with D_i = 1[h_i > 0];
    W_Q: tau0 tau1 sum_i (W_K u_i) x_i^T; W_K: tau0 tau1 sum_i (W_Q x_i) u_i^T, where
    u_i = X^T (diag(beta_i) - beta_i beta_i^T) X W_V^T (w_O o D_i).

    Only inner products of W_K u and of W_Q x enter the kernel, so both matrices are replaced by
    square roots of their d x d Gram matrices: the W_Q and W_K blocks do not depend on d_m.
    """
    params, M, root_Q, root_K = prepared
    tau1 = model.tau1 / x.shape[0] if model.pooling == "mean" else model.tau1
    B = self_attention(x, M)
    phi = B @ x
    # X W_V^T serves twice: B (X W_V^T) is the hidden layer, and its transpose makes `values`.
    projected = x @ params.W_V.T
    hidden = B @ projected
    if model.residual:
        hidden = hidden + jnp.pad(x, ((0, 0), (0, model.d_m - model.d)))
    gated = jnp.where(hidden > 0, params.w_O, jnp.zeros_like(hidden))
    values = gated @ projected.T
    u = (B * (values - (B * values).sum(axis=-1, keepdims=True))) @ x
    scale = model.tau0 * tau1
    return {
        "W_Q": cheapest((scale * u @ root_K.T, x)),
        "W_K": cheapest((scale * x @ root_Q.T, u)),
        "W_V": cheapest((gated, tau1 * phi)),
        "w_O": flattened(model.pooled(hidden)),
    }


def _gram_root(W: Float[Array, "d_m d"]) -> Float[Array, "r d"]:
    """R with R^T R = W^T W and r = min(d_m, d) rows.

    Only R^T R is used, and Cholesky makes it as accurate as W^T W itself. A Gram matrix without
    full rank has no Cholesky factor; its eigenvectors serve instead.
    """
    if W.shape[0] <= W.shape[1]:
        return W
    gram = W.T @ W
    lower = jnp.linalg.cholesky(gram)
    return lax.cond(jnp.isfinite(lower).all(), lambda: lower.T, lambda: _eigen_root(gram))


def _eigen_root(gram: Float[Array, "d d"]) -> Float[Array, "d d"]:
    values, vectors = jnp.linalg.eigh(gram)
    return jnp.sqrt(jnp.maximum(values, 0))[:, None] * vectors.T


register_features(Encoder, features_wu2023, prepare_wu2023)
