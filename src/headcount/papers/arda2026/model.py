"""The model of arda2026 on one sample with an explicit query: what the claims differentiate."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Float

from ...core import Array, activation_named, mirrored_sum, pooled_attention
from ...models import PooledAttentionParams
from .instances import HeadInstance, ModelInstance, safe_norm


def head(X: Array, q: Array, U: Array, W: Array, activation: str) -> Float[Array, ""]:
    """h = sigma(U . a(X; W)) [arda2026, Eq. (3)]."""
    return activation_named(activation)(U @ (pooled_attention(X, W, q) @ X))


def head_gradient(i: HeadInstance) -> Float[Array, "p"]:
    """(grad_U h, vec grad_W h) by autodiff."""
    g_U, g_W = jax.grad(lambda U, W: head(i.X, i.q, U, W, i.activation), argnums=(0, 1))(i.U, i.W)
    return jnp.concatenate([g_U, jnp.ravel(g_W)])


def head_hessian(i: HeadInstance, *, linear: bool = False) -> Float[Array, "p p"]:
    """The Hessian of h in (U, vec W) by autodiff; of z = U.a itself if `linear`."""
    d = i.q.shape[0]

    def value(theta: Array) -> Array:
        U, W = theta[:d], jnp.reshape(theta[d:], (d, d))
        if linear:
            return U @ (pooled_attention(i.X, W, i.q) @ i.X)
        return head(i.X, i.q, U, W, i.activation)

    return jax.hessian(value)(jnp.concatenate([i.U, jnp.ravel(i.W)]))


def heads(phi: PooledAttentionParams, X: Array, q: Array, activation: str) -> Float[Array, "m"]:
    """h_i for every head."""
    return jax.vmap(lambda U, W: head(X, q, U, W, activation))(phi.U, phi.W)


def output(phi: PooledAttentionParams, X: Array, q: Array, activation: str) -> Float[Array, ""]:
    """f(X; phi) [arda2026, Eq. (4)]."""
    return mirrored_sum(phi.c * heads(phi, X, q, activation)) / math.sqrt(phi.c.shape[0])


def difference(phi: PooledAttentionParams, other: PooledAttentionParams) -> PooledAttentionParams:
    """phi - other, block by block."""
    return jax.tree.map(jnp.subtract, phi, other)


def outputs(i: ModelInstance, phi: PooledAttentionParams) -> Float[Array, "n"]:
    """f(X_j; phi) for every sample."""
    return jax.vmap(lambda X, q: output(phi, X, q, i.activation))(i.X, i.q)


def linear_outputs(i: ModelInstance, phi: PooledAttentionParams) -> Float[Array, "n"]:
    """f_lin(X_j; phi) by one forward derivative at phi0 [arda2026, Definition 3]."""
    value, slope = jax.jvp(lambda p: outputs(i, p), (i.initial,), (difference(phi, i.initial),))
    return value + slope


def gradients(i: ModelInstance, phi: PooledAttentionParams) -> PooledAttentionParams:
    """grad f(X_j; phi) by autodiff, blocks with leading axes (n, m)."""
    per_sample = jax.grad(output)
    return jax.vmap(lambda X, q: per_sample(phi, X, q, i.activation))(i.X, i.q)


def per_head_norms(g: PooledAttentionParams) -> tuple[Any, Any]:
    """(|c-block|, |theta-block|) of a gradient-like tree, per sample and head."""
    theta = jnp.sqrt(safe_norm(g.U) ** 2 + safe_norm(g.W, axis=(-2, -1)) ** 2 + 1e-300)
    return jnp.abs(g.c), theta
