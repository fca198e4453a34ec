"""The fused gradient of arda2026 on positional tokens (xi_t, s_t p_t): a table in place of tokens.

The query is q = (a, b p) with p the same for all samples. For each sample and head

    z = X (a W_a + b W_b),  W_a = W_.0,  W_b = W_.1: p,
    v_t = (X_t - X_1) . U = xi_t U_0 + s_t E_t - (xi_1 U_0 + s_1 E_1),  E_t = p_t . U_1:,

a few products in place of d. The rest is `_path_arda2026`, with

    grad_U f = sum_t k e_t X_t,  grad_W f = left q^T,  left = sum_t k e_t (v_t - a) X_t,
    k = c sigma'(s) / (sqrt(m) sum e),

where sums over samples come before those over positions wherever that is possible. Positions
differ, so tokens agree only where there is a single one; the gradient of W is then zero exactly.
What is `_written` is kept out of XLA's reductions, which would compute it again and do not
vectorise when they do: that is most of the speed, together with sums written as products.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Float

from ...core import Array, FixedQuery, LastToken, Loss, loss_of
from ...data import PositionalTokens
from ...training import GradientPath, into_chunks, register_path
from ...training._paths import BlockJacobian, Chunks, Samples, fold_chunks, map_over_chunks
from .fast import arda2026_chunk, arda2026_path
from .model import PooledAttention, PooledAttentionParams

_written = jax.lax.optimization_barrier


class _Tables(NamedTuple):
    """What all samples share in one step; heads are the last axis."""

    c: Float[Array, "m"]
    U_0: Float[Array, "m"]
    U_t: Float[Array, "T m"]
    """p_t . U_{1:}."""
    W_a: Float[Array, "d m"]
    W_b: Float[Array, "d m"]
    """W q = a W_a + b W_b."""


class _Tokens(NamedTuple):
    """The tokens of one chunk, and its queries q = (a, b p)."""

    xi: Float[Array, "b T"]
    s: Float[Array, "b T"]
    x: Float[Array, "b T d"]
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
    model: PooledAttention, loss: Loss | str, chunk: int, tokens: PositionalTokens
) -> GradientPath:
    """The path for `PooledAttention` on positional tokens; its slow twin is `naive_path`."""
    loss = loss_of(loss)
    if not isinstance(model.query, (LastToken, FixedQuery)):
        return arda2026_path(model, loss, chunk)

    def with_jacobian(
        params: PooledAttentionParams, data: Chunks
    ) -> tuple[Float[Array, ""], PooledAttentionParams, BlockJacobian]:
        shared = _tables(model, tokens, params)
        sums, lengths = fold_chunks(lambda c: _chunk_sums(model, loss, tokens, shared, c), data)
        jacobian = BlockJacobian("W", _gradient_W(model, tokens, sums.left[:2]), lengths)
        return sums.loss, _gradient(model, tokens, sums), jacobian

    def outputs(params: PooledAttentionParams, data: Chunks) -> Float[Array, "n"]:
        shared = _tables(model, tokens, params)

        def one_chunk(samples: Samples) -> Float[Array, "b"]:
            s = _attend(shared, _tokens(model, tokens, samples.x)).s
            return model.activation(s) @ shared.c / math.sqrt(model.m)

        return map_over_chunks(one_chunk, data)

    return GradientPath(
        prepare=lambda x, y: into_chunks(tokens.split(x), y, loss, chunk),
        loss_and_gradient=lambda params, data: with_jacobian(params, data)[:2],
        outputs=outputs,
        with_jacobian=with_jacobian,
    )


def _tokens(
    model: PooledAttention,
    tokens: PositionalTokens,
    parts: tuple[Float[Array, "b T"], Float[Array, "b T"]],
) -> _Tokens:
    xi, s = parts
    P = tokens.channels.astype(xi.dtype)
    x = _written(jnp.concatenate([xi[:, :, None], s[:, :, None] * P[None]], axis=2))
    if isinstance(model.query, FixedQuery):
        free = jnp.asarray(model.query.vector[0], xi.dtype)
        return _Tokens(xi, s, x, jnp.full_like(xi[:, 0], free), jnp.ones_like(s[:, 0]))
    return _Tokens(xi, s, x, xi[:, -1], s[:, -1])


def _query_channels(
    model: PooledAttention, tokens: PositionalTokens, dtype: jnp.dtype
) -> Float[Array, "channels"]:
    """p of the query q = (a, b p)."""
    query = model.query
    p = query.vector[1:] if isinstance(query, FixedQuery) else tokens.channels[-1]
    return jnp.asarray(p, dtype)


def _tables(
    model: PooledAttention, tokens: PositionalTokens, params: PooledAttentionParams
) -> _Tables:
    c, U, W = params
    P = tokens.channels.astype(U.dtype)
    p = _query_channels(model, tokens, U.dtype)
    tables = _Tables(
        c=c, U_0=U[:, 0], U_t=P @ U[:, 1:].T, W_a=W[:, :, 0].T, W_b=(W[:, :, 1:] @ p).T
    )
    return _written(tables)


def _attend(shared: _Tables, own: _Tokens) -> _Attended:
    xi, s = own.xi[:, :, None], own.s[:, :, None]
    Wq = _written(own.a[:, None, None] * shared.W_a[None] + own.b[:, None, None] * shared.W_b[None])
    z = jnp.einsum("btd,bdm->btm", own.x, Wq)
    e = _written(jnp.exp(z - jnp.max(z, axis=1, keepdims=True)))
    U_0, U_t = shared.U_0[None], shared.U_t[None]
    first = _written(own.xi[:, :1] * U_0 + own.s[:, :1] * U_t[:, 0])
    v = xi * U_0[None] + s * U_t - first[:, None]
    if own.xi.shape[1] == 1:  # not by rounding alone: the gradient of W must be zero exactly
        v = jnp.zeros_like(e)
    ones = jnp.ones_like(own.xi)
    total = jnp.einsum("bt,btm->bm", ones, e)
    mean = jnp.einsum("bt,btm->bm", ones, _written(e * v)) / total
    total, mean, inner = _written((total, mean, first + mean))
    return _Attended(e, total, v, mean, inner)


def _chunk_sums(
    model: PooledAttention,
    loss: Loss,
    tokens: PositionalTokens,
    shared: _Tables,
    samples: Samples,
) -> tuple[_Sums, Float[Array, "b"]]:
    """The sums of one chunk, and ||grad_W f(x_j)|| = ||left|| |q| of its samples."""
    own, y, weight = _tokens(model, tokens, samples.x), samples.y, samples.weight
    e, total, v, mean, s = _attend(shared, own)
    root = math.sqrt(model.m)
    h = model.activation(s)
    f = h @ shared.c / root
    r = weight * loss.slope(f, y)
    k = shared.c[None] * model.activation.derivative(s) / (root * total)
    h, r, k = _written((h, r, k))
    spread = _written(e * (v - mean[:, None]) * k[:, None])
    xt = _written(jnp.swapaxes(own.x, 1, 2))
    left = _written(jnp.einsum("bdt,btm->bdm", xt, spread)).reshape(len(y), -1)
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
    return jnp.concatenate([by_a[:, :, None], by_b[:, :, None] * p[None, None]], axis=2)


register_path(PooledAttention, positional_path, arda2026_chunk, tokens=PositionalTokens)
