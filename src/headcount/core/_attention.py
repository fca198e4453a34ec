"""Attention on one sample: what models, data models and kernels share.

Samples are written with tokens as rows, X: (T, d); papers may write them as columns.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Float

from ._activations import Activation
from ._types import Array


class HeadFeatures(NamedTuple):
    """Random features of one head; phi_w = outer(w_left, q_X)."""

    phi_c: Float[Array, ""]
    phi_u: Float[Array, "d"]
    w_left: Float[Array, "d"]


def pooled_attention(
    X: Float[Array, "T d"], W: Float[Array, "d d"], q: Float[Array, "d"]
) -> Float[Array, "T"]:
    """alpha = softmax(X W q), the weights of the single-query attention.

    >>> X = jnp.array([[0.0, 1.0], [0.0, 2.0], [0.0, 3.0]])
    >>> pooled_attention(X, jnp.eye(2), jnp.array([1.0, 0.0])).round(3)  # equal logits
    Array([0.333, 0.333, 0.333], dtype=float...)
    """
    return jax.nn.softmax(X @ (W @ q))


def softmax_covariance_times(
    X: Float[Array, "T d"], alpha: Float[Array, "T"], U: Float[Array, "d"]
) -> Float[Array, "d"]:
    """M U with M = sum_t alpha_t (X_t - a)(X_t - a)^T, M never built.

    Written with centred values, so that it vanishes without cancellation when all tokens agree.
    """
    values = X @ U
    return (alpha * (values - alpha @ values)) @ X


def head_features(
    X: Float[Array, "T d"],
    q: Float[Array, "d"],
    U: Float[Array, "d"],
    W: Float[Array, "d d"],
    activation: Activation,
) -> HeadFeatures:
    """phi_c = sigma(U.a), phi_u = sigma'(U.a) a, phi_w = sigma'(U.a) (M U) q^T."""
    alpha = pooled_attention(X, W, q)
    a = alpha @ X
    s = U @ a
    slope = activation.derivative(s)
    return HeadFeatures(
        phi_c=activation(s),
        phi_u=slope * a,
        w_left=slope * softmax_covariance_times(X, alpha, U),
    )


def self_attention(
    X: Float[Array, "T d"], logits_matrix: Float[Array, "d d"]
) -> Float[Array, "T T"]:
    """Row-wise softmax(X M X^T): row t is how token t attends."""
    return jax.nn.softmax(X @ logits_matrix @ X.T, axis=-1)


def attention_head(
    X: Float[Array, "T d"], W: Float[Array, "d d"], U: Float[Array, "T d"]
) -> Float[Array, ""]:
    """Phi(X; W, U) = <U, softmax(X W X^T) X>."""
    return jnp.vdot(U, self_attention(X, W) @ X)
