"""The model of arda2026 with an explicit query per sample: what the claims differentiate."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Float

from ...core import Activation, Array, head_features, pooled_attention
from ...theory.families import safe_norm
from .model import PooledAttention, PooledAttentionParams
from .records import Head, Near


def network(sigma: Activation, q: Float[Array, "d"], m: int = 1) -> PooledAttention:
    """The model whose query is q whatever the sample."""
    return PooledAttention(int(q.shape[-1]), m, sigma, lambda X: q)


def head_gradient(i: Head) -> Float[Array, "p"]:
    """(grad_U h, vec grad_W h) by autodiff."""
    g_U, g_W = jax.grad(network(i.sigma, i.q).head, argnums=(0, 1))(i.U, i.W, i.X)
    return jnp.concatenate([g_U, jnp.ravel(g_W)])


def head_hessian(i: Head) -> Float[Array, "p p"]:
    """The Hessian of h in (U, vec W) by autodiff."""
    d = i.q.shape[0]

    def value(theta: Array) -> Array:
        return network(i.sigma, i.q).head(theta[:d], jnp.reshape(theta[d:], (d, d)), i.X)

    return jax.hessian(value)(jnp.concatenate([i.U, jnp.ravel(i.W)]))


def pooled_value(i: Head, U: Float[Array, "d"], W: Float[Array, "d d"]) -> Float[Array, ""]:
    """z = U . a(X; W), what the activation is applied to."""
    return U @ (pooled_attention(i.X, W, i.q) @ i.X)


def _per_sample(i: Near, function: Any) -> Any:
    """function(model, X_j) for every sample."""
    return jax.vmap(lambda X, q: function(network(i.sigma, q, i.m), X))(i.X, i.q)


def heads(i: Near, phi: PooledAttentionParams) -> Float[Array, "n m"]:
    """h_i(X_j) for every sample and head."""

    def of(model: PooledAttention, X: Array) -> Array:
        return jax.vmap(model.head, in_axes=(0, 0, None))(phi.U, phi.W, X)

    return _per_sample(i, of)


def outputs(i: Near, phi: PooledAttentionParams) -> Float[Array, "n"]:
    """f(X_j; phi) for every sample."""
    return _per_sample(i, lambda model, X: model(phi, X))


def linear_outputs(i: Near, phi: PooledAttentionParams) -> Float[Array, "n"]:
    """f_lin(X_j; phi) for every sample [arda2026, Definition 3]."""
    away = jax.tree.map(jnp.subtract, phi, i.initial)

    def of(model: PooledAttention, X: Array) -> Array:
        return sum(jax.jvp(lambda p: model(p, X), (i.initial,), (away,)))

    return _per_sample(i, of)


def gradients(i: Near, phi: PooledAttentionParams) -> PooledAttentionParams:
    """grad f(X_j; phi) by autodiff, blocks with leading axes (n, m)."""
    return _per_sample(i, lambda model, X: jax.grad(model)(phi, X))


def loss(i: Near, phi: PooledAttentionParams) -> Float[Array, ""]:
    """L(phi), the mean of the squared residuals."""
    return jnp.mean((outputs(i, phi) - i.y) ** 2)


def flat_blocks(blocks: Any) -> Float[Array, "... p"]:
    """(c, U, vec W) of every head as one vector, for blocks with any leading axes."""
    c, U, W = blocks
    return jnp.concatenate([c[..., None], U, jnp.reshape(W, (*U.shape[:-1], -1))], axis=-1)


def sample_features(
    sigma: Activation,
    X: Float[Array, "T d"],
    q: Float[Array, "d"],
    U: Float[Array, "m d"],
    W: Float[Array, "m d d"],
) -> Float[Array, "m p"]:
    """(phi_c, phi_u, vec phi_w) of every head on one sample, as one vector each [Sec. 5.4]."""

    def one(U: Any, W: Any) -> Any:
        part = head_features(X, q, U, W, sigma)
        return flat_blocks((part.phi_c, part.phi_u, jnp.outer(part.w_left, q)))

    return jax.vmap(one)(U, W)


def features(i: Any, U: Float[Array, "m d"], W: Float[Array, "m d d"]) -> Float[Array, "n m p"]:
    """The features of every sample and head of an instance with samples (X, q)."""
    return jax.vmap(lambda X, q: sample_features(i.sigma, X, q, U, W))(i.X, i.q)


def per_head_norms(g: PooledAttentionParams) -> tuple[Any, Any]:
    """(|c-block|, |theta-block|) of a gradient-like tree, per sample and head."""
    theta = jnp.sqrt(safe_norm(g.U) ** 2 + safe_norm(g.W, axis=(-2, -1)) ** 2 + 1e-300)
    return jnp.abs(g.c), theta
