"""The exact gradient of deora2024's multi-head attention, and of its groups of equal heads.

Heads that start equal stay equal under gradient descent, momentum and Adam, because each of them
sees the same gradient. A run of H heads from zero is then a run of one head with multiplicity H,
and from the two-phase start a run of two: any H, 10^17 included, at the cost of its groups.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Float

from ...core import Array, Loss, loss_of
from ...training import GradientPath, into_chunks, register_path
from ...training._paths import Chunks, Samples, map_over_chunks, sum_over_chunks
from .model import HeadGroups, MultiHeadAttention, MultiHeadParams

_CHUNK_WEIGHTS = 2**17
"""Attention weights in flight (heads x queries x tokens x samples): 1 MiB in float64."""


class _Attention(NamedTuple):
    """The queries of a chunk (all tokens, or the last), their weights and what they attend to."""

    queries: Float[Array, "b q d"]
    weights: Float[Array, "b h q T"]
    attended: Float[Array, "b h q d"]
    values: Float[Array, "b h q"]


def _readout_rows(model: MultiHeadAttention | HeadGroups, params: MultiHeadParams) -> Array:
    """U as (h, q, d): one row per query (full), or one row for all of them (pooling, last)."""
    return params.U if model.readout == "full" else params.U[:, None, :]


def _attend(
    model: MultiHeadAttention | HeadGroups, params: MultiHeadParams, x: Float[Array, "b T d"]
) -> _Attention:
    queries = x[:, -1:] if model.readout == "last" else x
    keyed = jnp.einsum("bqd,hde->bhqe", queries, params.W)
    weights = jax.nn.softmax(jnp.einsum("bhqe,bte->bhqt", keyed, x), axis=-1)
    attended = jnp.einsum("bhqt,btd->bhqd", weights, x)
    values = jnp.sum(attended * _readout_rows(model, params)[None], axis=-1)
    return _Attention(queries, weights, attended, values)


def _gradient(
    model: MultiHeadAttention | HeadGroups,
    params: MultiHeadParams,
    x: Float[Array, "b T d"],
    seen: _Attention,
    slope: Float[Array, "b"],
) -> MultiHeadParams:
    """sum_j slope_j grad Phi(X_j; theta_g) for every group g [deora2024, Lemma 1].

    grad_U Phi = softmax(X W X^T) X; grad_W Phi = sum_t x_t u_t^T X^T D_t X, where D_t X is
    written with tokens and values from the first on, so that it is zero when tokens agree.
    """
    grad_U = jnp.einsum("b,bhqd->hqd", slope, seen.attended)
    from_first = x - x[:, :1]
    values = jnp.einsum("hqd,btd->bhqt", _readout_rows(model, params), from_first)
    centre = jnp.sum(seen.weights * values, axis=-1, keepdims=True)
    right = jnp.einsum("bhqt,bte->bhqe", seen.weights * (values - centre), from_first)
    grad_W = jnp.einsum("bqd,bhqe->hde", slope[:, None, None] * seen.queries, right)
    return MultiHeadParams(grad_U if model.readout == "full" else jnp.sum(grad_U, axis=1), grad_W)


def deora2024_path(
    model: MultiHeadAttention | HeadGroups, loss: Loss | str, chunk: int
) -> GradientPath:
    """Loss, and gradient with respect to ONE head of each group [deora2024, Eq. (2), Lemma 1].

    f = H^{-1/2} sum_g k_g Phi(X; theta_g); gradient_g = H^{-1/2} sum_j w_j l'(f_j) grad
    Phi(X_j; theta_g), the derivative in the group's parameters divided by its multiplicity k_g.
    For the plain model every k_g is 1 and this is the ordinary gradient.
    """
    loss = loss_of(loss)
    root = math.sqrt(model.H)
    shares = [k / root for k in model.multiplicities]

    def chunk_outputs(seen: _Attention) -> Float[Array, "b"]:
        return jnp.sum(seen.values, axis=-1) @ jnp.asarray(shares, seen.values.dtype)

    def one_chunk(
        params: MultiHeadParams, samples: Samples
    ) -> tuple[Float[Array, ""], MultiHeadParams]:
        x, y, weight = samples
        seen = _attend(model, params, x)
        f = chunk_outputs(seen)
        gradient = _gradient(model, params, x, seen, weight * loss.slope(f, y) / root)
        return jnp.sum(weight * loss.pointwise(f, y)), gradient

    def outputs(params: MultiHeadParams, data: Chunks) -> Float[Array, "n"]:
        return map_over_chunks(lambda c: chunk_outputs(_attend(model, params, c.x)), data)

    return GradientPath(
        prepare=lambda x, y: into_chunks(x, y, loss, chunk),
        loss_and_gradient=lambda params, data: sum_over_chunks(
            lambda c: one_chunk(params, c), data
        ),
        outputs=outputs,
    )


def deora2024_chunk(model: MultiHeadAttention | HeadGroups, T: int) -> int:
    """As many samples as keep the attention weights of all heads in cache, at least one."""
    queries = 1 if model.readout == "last" else T
    return max(1, _CHUNK_WEIGHTS // (len(model.multiplicities) * queries * T))


register_path(MultiHeadAttention, deora2024_path, deora2024_chunk)
register_path(HeadGroups, deora2024_path, deora2024_chunk)
