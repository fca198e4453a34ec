"""The fused gradient of arda2026 on positional tokens (xi_t, s_t p_t): tables in place of tokens.

The query is q = (a, b p) with p the same for all samples. Then with tables over (T, m)

    z_t = xi_t (a W_00 + b W_0. p) + s_t (a p_t . W_.0 + b p_t . W p),
    v_t = (X_t - X_1) . U = (xi_t - xi_1) U_0 + s_t (p_t - p_1) . U + (s_t - s_1) p_1 . U,

for each sample and head: a few products in place of d. The rest is `_path_arda2026`, with

    grad_U f = sum_t k e_t X_t,  left = sum_t k e_t (v_t - a) X_t,  k = c sigma'(s) / (sqrt(m) sum e),
    grad_W f = left q^T,

where the sums over samples come before those over positions wherever that is possible. As there,
v_t is zero exactly where tokens agree. The barriers keep XLA from computing exp again in every
reduction that reads it, and from reductions that do not vectorise: they are 3/4 of the speed.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Float

from ..core import Array, FixedQuery, LastToken, Loss
from ..data import PositionalTokens
from ..models import PooledAttention, PooledAttentionParams
from ._path_arda2026 import (
    PooledData,
    arda2026_chunk,
    arda2026_path,
    logits_are_small,
)
from ._paths import (
    BlockJacobian,
    GradientPath,
    Samples,
    fold_chunks,
    into_chunks,
    map_over_chunks,
    register_path,
)

_written = jax.lax.optimization_barrier


class _Tables(NamedTuple):
    """What all samples share in one step; heads are the last axis."""

    c: Float[Array, "m"]
    U_0: Float[Array, "m"]
    U_first: Float[Array, "m"]
    """p_1 . U."""
    U_later: Float[Array, "T m"]
    """(p_t - p_1) . U."""
    W_00: Float[Array, "m"]
    W_0p: Float[Array, "m"]
    W_t0: Float[Array, "T m"]
    """p_t . W_.0."""
    W_tp: Float[Array, "T m"]
    """p_t . W p."""


class _Tokens(NamedTuple):
    """The tokens of one chunk, and its queries q = (a, b p)."""

    xi: Float[Array, "b T"]
    s: Float[Array, "b T"]
    a: Float[Array, "b"]
    b: Float[Array, "b"]


class _Attended(NamedTuple):
    """Unnormalised weights, their sum, the values v from the first on, their mean, s."""

    e: Float[Array, "b T m"]
    total: Float[Array, "b m"]
    v: Float[Array, "b T m"]
    mean: Float[Array, "b m"]
    s: Float[Array, "b m"]


class _Sums(NamedTuple):
    """Sums over samples of one chunk, or of all."""

    loss: Float[Array, ""]
    c: Float[Array, "m"]
    U_0: Float[Array, "m"]
    U_later: Float[Array, "T m"]
    """sum_j r_j k s_t e_t, which the channels turn into the gradient of U."""
    left: Float[Array, "4 d m"]
    """left, weighted with a, b, r a and r b."""


def positional_path(
    model: PooledAttention, loss: Loss, chunk: int, tokens: PositionalTokens
) -> GradientPath:
    """The path for `PooledAttention` on positional tokens; its slow twin is `naive_path`."""
    if not isinstance(model.query, (LastToken, FixedQuery)):
        return arda2026_path(model, loss, chunk)

    def prepare(x: Float[Array, "n T d"], y: Float[Array, "n"]) -> PooledData:
        xi, s = tokens.split(x)
        own = _tokens(model, jnp.stack([xi, s], axis=-1))
        p = _query_channels(model, tokens, x.dtype)
        longest = jnp.max(xi**2 + tokens.pairs * s**2, axis=1)
        factor = jnp.sqrt(jnp.max(longest * (own.a**2 + own.b**2 * jnp.sum(p**2))))
        return PooledData(into_chunks(jnp.stack([xi, s], axis=-1), y, loss, chunk), factor)

    def with_jacobian(
        params: PooledAttentionParams, data: PooledData
    ) -> tuple[Float[Array, ""], PooledAttentionParams, BlockJacobian]:
        shared = _tables(model, tokens, params)

        def over_chunks(shifted: bool) -> tuple[_Sums, Float[Array, "n"]]:
            def one_chunk(samples: Samples) -> tuple[_Sums, Float[Array, "b"]]:
                return _chunk_sums(model, loss, tokens, shared, samples, shifted)

            return fold_chunks(one_chunk, data.chunks)

        sums, lengths = jax.lax.cond(
            logits_are_small(params, data), lambda: over_chunks(False), lambda: over_chunks(True)
        )
        jacobian = BlockJacobian("W", _gradient_W(model, tokens, sums.left[:2]), lengths)
        return sums.loss, _gradient(model, tokens, sums), jacobian

    def loss_and_gradient(
        params: PooledAttentionParams, data: PooledData
    ) -> tuple[Float[Array, ""], PooledAttentionParams]:
        return with_jacobian(params, data)[:2]

    def outputs(params: PooledAttentionParams, data: PooledData) -> Float[Array, "n"]:
        shared = _tables(model, tokens, params)

        def one_chunk(samples: Samples) -> Float[Array, "b"]:
            s = _attend(shared, _tokens(model, samples.x), shifted=True).s
            return model.activation(s) @ shared.c / math.sqrt(model.m)

        return map_over_chunks(one_chunk, data.chunks)

    return GradientPath(prepare, loss_and_gradient, outputs, with_jacobian)


def _tokens(model: PooledAttention, x: Float[Array, "b T 2"]) -> _Tokens:
    xi, s = x[..., 0], x[..., 1]
    if isinstance(model.query, FixedQuery):
        return _Tokens(xi, s, jnp.full_like(xi[:, 0], model.query.vector[0]), jnp.ones_like(s[:, 0]))
    return _Tokens(xi, s, xi[:, -1], s[:, -1])


def _query_channels(
    model: PooledAttention, tokens: PositionalTokens, dtype: jnp.dtype
) -> Float[Array, "channels"]:
    """p of the query q = (a, b p)."""
    fixed = isinstance(model.query, FixedQuery)
    return jnp.asarray(model.query.vector[1:] if fixed else tokens.channels[-1], dtype)


def _tables(
    model: PooledAttention, tokens: PositionalTokens, params: PooledAttentionParams
) -> _Tables:
    c, U, W = params
    P = tokens.channels.astype(U.dtype)
    p = _query_channels(model, tokens, U.dtype)
    tables = _Tables(
        c=c,
        U_0=U[:, 0],
        U_first=U[:, 1:] @ P[0],
        U_later=(P - P[0]) @ U[:, 1:].T,
        W_00=W[:, 0, 0],
        W_0p=W[:, 0, 1:] @ p,
        W_t0=P @ W[:, 1:, 0].T,
        W_tp=P @ (W[:, 1:, 1:] @ p).T,
    )
    return _written(tables)


def _attend(shared: _Tables, own: _Tokens, *, shifted: bool) -> _Attended:
    xi, s, a, b = (part[:, :, None] for part in (own.xi, own.s, own.a[:, None], own.b[:, None]))
    free = _written(own.a[:, None] * shared.W_00 + own.b[:, None] * shared.W_0p)
    z = xi * free[:, None, :] + s * (a * shared.W_t0 + b * shared.W_tp)
    if shifted:
        z = _written(z)
        z = z - jnp.max(z, axis=1, keepdims=True)
    e = _written(jnp.exp(z))
    v = (xi - xi[:, :1]) * shared.U_0 + s * shared.U_later + (s - s[:, :1]) * shared.U_first
    ones = jnp.ones_like(own.xi)
    total = jnp.einsum("bt,btm->bm", ones, e)
    mean = jnp.einsum("bt,btm->bm", ones, _written(e * v)) / total
    first = own.xi[:, :1] * shared.U_0 + own.s[:, :1] * shared.U_first
    return _Attended(e, *_written((total, v, mean, first + mean)))


def _chunk_sums(
    model: PooledAttention,
    loss: Loss,
    tokens: PositionalTokens,
    shared: _Tables,
    samples: Samples,
    shifted: bool,
) -> tuple[_Sums, Float[Array, "b"]]:
    """The sums of one chunk, and ||grad_W f(x_j)|| = ||left|| |q| of its samples."""
    own, y, weight = _tokens(model, samples.x), samples.y, samples.weight
    e, total, v, mean, s = _attend(shared, own, shifted=shifted)
    root = math.sqrt(model.m)
    h = model.activation(s)
    f = h @ shared.c / root
    r = weight * loss.slope(f, y)
    k = shared.c * model.activation.derivative(s) / (root * total)
    h, r, k = _written((h, r, k))
    P = tokens.channels.astype(e.dtype)
    features = _written(jnp.concatenate([own.xi[:, None], own.s[:, None] * P.T], axis=1))
    spread = _written(e * (v - mean[:, None]) * k[:, None])
    left = _written(jnp.einsum("bdt,btm->bdm", features, spread)).reshape(len(y), -1)
    fresh = (weight > 0).astype(e.dtype)
    weights = _written(jnp.stack([fresh * own.a, fresh * own.b, r * own.a, r * own.b]))
    p = _query_channels(model, tokens, e.dtype)
    query = own.a**2 + own.b**2 * jnp.sum(p**2)
    sums = _Sums(
        loss=jnp.sum(weight * loss.pointwise(f, y)),
        c=r @ h / root,
        U_0=r @ (k * jnp.einsum("bt,btm->bm", own.xi, e)),
        U_later=jnp.einsum("bt,btm->tm", _written(r[:, None] * own.s), _written(e * k[:, None])),
        left=(weights @ left).reshape(4, -1, model.m),
    )
    return sums, jnp.sqrt(jnp.einsum("bi,bi->b", left, left) * query)


def _gradient(
    model: PooledAttention, tokens: PositionalTokens, sums: _Sums
) -> PooledAttentionParams:
    """Positions at last: the channels turn sums over samples into gradients."""
    later = sums.U_later.T @ tokens.channels.astype(sums.U_later.dtype)
    U = jnp.concatenate([sums.U_0[:, None], later], axis=1)
    return PooledAttentionParams(sums.c, U, _gradient_W(model, tokens, sums.left[2:]))


def _gradient_W(
    model: PooledAttention, tokens: PositionalTokens, left: Float[Array, "2 d m"]
) -> Float[Array, "m d d"]:
    """sum_j left q^T = (sum_j a left, (sum_j b left) p^T)."""
    by_a, by_b = jnp.transpose(left, (0, 2, 1))
    p = _query_channels(model, tokens, left.dtype)
    return jnp.concatenate([by_a[:, :, None], by_b[:, :, None] * p], axis=2)


register_path(PooledAttention, positional_path, arda2026_chunk, tokens=PositionalTokens)
