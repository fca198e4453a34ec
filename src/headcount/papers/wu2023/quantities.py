"""The encoder of wu2023 as functions of a point: sum pooling, scales that may be traced."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Float

from ...core import Array, self_attention
from .constants import Norms, Sizes
from .model import EncoderParams


def attention(i: Any, theta: EncoderParams) -> Float[Array, "n T T"]:
    """beta of every sample: row k of sample n is beta_{k,n}."""
    M = i.tau[0] * theta.W_Q.T @ theta.W_K
    return jax.vmap(self_attention, in_axes=(0, None))(i.X, M)


def hidden(i: Any, theta: EncoderParams) -> Float[Array, "n T d_m"]:
    """h_k = W_V X^T beta_k for every sample and token."""
    return attention(i, theta) @ i.X @ theta.W_V.T


def features(i: Any, theta: EncoderParams) -> Float[Array, "n d_m"]:
    """F_pre."""
    return i.tau[1] * jnp.sum(jax.nn.relu(hidden(i, theta)), axis=1)


def outputs(i: Any, theta: EncoderParams) -> Float[Array, "n"]:
    """f of every sample."""
    return features(i, theta) @ theta.w_O


def loss(i: Any, theta: EncoderParams) -> Float[Array, ""]:
    """(1/2)|f - y|^2, summed over samples [wu2023, Sec. 3.2]."""
    return jnp.sum((outputs(i, theta) - i.y) ** 2) / 2


def jacobian(i: Any, theta: EncoderParams) -> Float[Array, "n p"]:
    """The gradient of f at every sample, one row each."""
    slopes = jax.jacrev(lambda t: outputs(i, t))(theta)
    n = i.X.shape[0]
    return jnp.concatenate([jnp.reshape(block, (n, -1)) for block in slopes], axis=1)


def spectral(W: Float[Array, "a b"]) -> Float[Array, ""]:
    """The largest singular value."""
    return jnp.linalg.svd(W, compute_uv=False)[0]


def smallest_singular(F: Float[Array, "n d_m"]) -> Float[Array, ""]:
    """sigma_min of a matrix with at most as many rows as columns."""
    return jnp.linalg.svd(F, compute_uv=False)[-1]


def length(theta: EncoderParams) -> Float[Array, ""]:
    """|theta|."""
    return jnp.linalg.norm(jnp.concatenate([jnp.ravel(block) for block in theta]))


def norms(theta: EncoderParams) -> Norms:
    """||W_Q||, ||W_K||, ||W_V||, |w_O|."""
    return Norms(
        spectral(theta.W_Q), spectral(theta.W_K), spectral(theta.W_V), jnp.linalg.norm(theta.w_O)
    )


def larger(first: Norms, second: Norms) -> Norms:
    """The smallest lambda-bars that two points allow."""
    return Norms(*(jnp.maximum(a, b) for a, b in zip(first, second, strict=True)))


def sizes(i: Any) -> Sizes:
    """N, d_s, tau0, tau1 and the smallest C_x of Assumption 1."""
    n, T = i.X.shape[0], i.X.shape[1]
    C_x = jnp.max(jnp.linalg.norm(jnp.reshape(i.X, (n, -1)), axis=1)) / T**0.5
    return Sizes(n, T, i.tau[0], i.tau[1], C_x)
