"""The model of deora2024 by groups of equal heads: what the claims differentiate.

Norms are those of the full parameter space, where a group counts k_g times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from jaxtyping import Float

from ...core import Array
from ...theory.families import safe_norm
from .model import MultiHeadAttention

if TYPE_CHECKING:
    from .records import Head, Model

Rows = Float[Array, "G p"]


def split(row: Float[Array, "p"], d: int, readout: str) -> tuple[Array, Array]:
    """(U, W) of one group, U in the shape that the read-out has."""
    U = row[: -d * d].reshape(-1, d)
    return (U if readout == "full" else U[0]), row[-d * d :].reshape(d, d)


def head(row: Float[Array, "p"], X: Float[Array, "T d"], readout: str) -> Float[Array, ""]:
    """Phi(X; W, U) of one head [deora2024, Eq. (1)]."""
    T, d = X.shape
    U, W = split(row, d, readout)
    return MultiHeadAttention(T, d, 1, readout).head(U, W, X)


def heads(i: Model, rows: Rows) -> Float[Array, "n G"]:
    """Phi(X_i; theta_g) for every sample and group."""
    of_sample = jax.vmap(lambda row, X: head(row, X, i.readout), in_axes=(0, None))
    return jax.vmap(of_sample, in_axes=(None, 0))(rows, i.X)


def outputs(i: Model, rows: Rows) -> Float[Array, "n"]:
    """Phi~(X_i) = H^{-1/2} sum_g k_g Phi(X_i; theta_g) [deora2024, Eq. (2)]."""
    return heads(i, rows) @ i.k / jnp.sqrt(i.H)


def logistic(z: Float[Array, "..."]) -> Float[Array, "..."]:
    """log(1 + e^{-z})."""
    return jnp.logaddexp(0.0, -z)


def slope(z: Float[Array, "..."]) -> Float[Array, "..."]:
    """l'(z) = -1/(1 + e^z)."""
    return -jax.nn.sigmoid(-z)


def curvature(z: Float[Array, "..."]) -> Float[Array, "..."]:
    """l''(z)."""
    return jax.nn.sigmoid(z) * jax.nn.sigmoid(-z)


def losses(i: Model, rows: Rows) -> Float[Array, "n"]:
    """l(y_i Phi~(X_i)) for every sample."""
    return logistic(i.y * outputs(i, rows))


def loss(i: Model, rows: Rows) -> Float[Array, ""]:
    """L(theta)."""
    return jnp.mean(losses(i, rows))


def head_gradients(i: Model, rows: Rows) -> Float[Array, "n G p"]:
    """grad Phi(X_i; theta_g) by autodiff."""
    slopes = jax.vmap(jax.grad(head), in_axes=(0, None, None))
    return jax.vmap(slopes, in_axes=(None, 0, None))(rows, i.X, i.readout)


def head_hessians(i: Model, rows: Rows) -> Float[Array, "n G p p"]:
    """Hess Phi(X_i; theta_g) by autodiff."""
    second = jax.vmap(jax.hessian(head), in_axes=(0, None, None))
    return jax.vmap(second, in_axes=(None, 0, None))(rows, i.X, i.readout)


def loss_gradient(i: Model, rows: Rows, weights: Float[Array, "n"] | None = None) -> Rows:
    """Each head's gradient of L: H^{-1/2} mean_i l'_i y_i grad Phi(X_i; theta_g).

    `weights` replace 1/n: the leave-one-out loss gives the one sample weight 0.
    """
    n = len(i.y)
    share = jnp.full(n, 1 / n) if weights is None else weights
    factors = share * i.y * slope(i.y * outputs(i, rows))
    return jnp.einsum("n,ngp->gp", factors, head_gradients(i, rows)) / jnp.sqrt(i.H)


def length(i: Model, rows: Rows) -> Float[Array, ""]:
    """The norm in the full parameter space: sqrt(sum_g k_g |row_g|^2)."""
    return safe_norm(jnp.sqrt(i.k)[:, None] * rows, axis=None)


def widest(rows: Rows) -> Float[Array, ""]:
    """|theta|_{2,inf}, the largest norm of one head's parameters."""
    return jnp.max(safe_norm(rows))


def longest_readout(i: Model) -> Float[Array, ""]:
    """max_h |U_h|_F, which the derivative bounds may use for |theta|_{2,inf}."""
    return jnp.max(safe_norm(i.U, axis=(-2, -1)))


def model_hessian_norms(i: Model) -> Float[Array, "n"]:
    """|Hess Phi~(X_i)|: block diagonal over heads, so the largest block over sqrt(H)."""
    ends = jnp.linalg.eigvalsh(head_hessians(i, i.rows))
    return jnp.max(jnp.abs(ends), axis=(-2, -1)) / jnp.sqrt(i.H)


def loss_hessian_ends(i: Model, rows: Rows) -> tuple[Any, Any]:
    """(smallest, largest) eigenvalue of Hess L on the full parameter space, both around 0.

    Directions that move the heads of a group alike: the reduced Hessian in coordinates scaled by
    sqrt(k_g). Directions that sum to zero within a group of two or more: one head's block alone.
    """
    G, p = rows.shape
    n, root = len(i.y), jnp.sqrt(i.H)
    z = i.y * outputs(i, rows)
    blocks = jnp.einsum("n,ngpq->gpq", i.y * slope(z), head_hessians(i, rows)) / (n * root)
    g = head_gradients(i, rows) * jnp.sqrt(i.k)[None, :, None] / root
    flat = g.reshape(n, G * p)
    whole = jnp.einsum("n,na,nb->ab", curvature(z) / n, flat, flat)
    whole = whole + jax.scipy.linalg.block_diag(*blocks)
    alike = jnp.linalg.eigvalsh(whole)
    apart = jnp.where((i.k > 1)[:, None], jnp.linalg.eigvalsh(blocks), 0.0)
    ends = jnp.concatenate([alike, apart.ravel(), jnp.zeros(1)])
    return jnp.min(ends), jnp.max(ends)


def descended(i: Any, weights: Any = None) -> Rows:
    """theta_K of gradient descent on the mean or on a weighted loss."""

    def step(rows: Any, _: None) -> tuple[Any, None]:
        return rows - i.eta * loss_gradient(i, rows, weights), None

    return jax.lax.scan(step, i.rows, None, length=i.K)[0]


def head_gradient(i: Head) -> tuple[Array, Array]:
    """(grad_U, grad_W) Phi by autodiff."""
    model = MultiHeadAttention(i.X.shape[0], i.X.shape[1], 1)
    return jax.grad(model.head, argnums=(0, 1))(i.U, i.W, i.X)


def head_hessian(i: Head) -> Float[Array, "p p"]:
    """The Hessian of Phi in (U, W) by autodiff."""
    return jax.hessian(head)(jnp.concatenate([i.U.ravel(), i.W.ravel()]), i.X, "full")
