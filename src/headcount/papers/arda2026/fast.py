"""The fused gradient of arda2026: analytic, heads as the last axis, samples in cache-sized chunks.

Per chunk of b samples, with r_j = dL/df_j:

    G = W q (b,d,m),  z = X G,  v = (X - X_1) U (b,T,m),  alpha = softmax_T(z),
    a = sum_t alpha v,  s = X_1 U + a,  h = sigma(s),  f = c.h/sqrt(m),  g = r c sigma'(s)/sqrt(m),
    grad_c = sum_j r h/sqrt(m),  grad_U = sum_j X^T (alpha g),
    grad_W = sum_j ((X - X_1)^T [alpha g (v - a)]) q^T                       [arda2026, Lemma 1].

Values are taken from the first token on (X - X_1), so that where all tokens agree the gradient of
W is zero exactly: Adam would make steps of full length from its rounding errors. Nothing of size
(n, m, d) is ever built; memory beyond the data is that of one chunk.
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
from .model import PooledAttention, PooledAttentionParams

_CHUNK_ELEMENTS = 2**16
"""Token-head pairs per chunk. Measured by benchmarks/arda2026_chunk.py for m = 8 to 256 on a core
with 512 KiB of second-level cache: 2^15 to 2^17 are within 5 % of each other when the machine is
quiet; under load, when other processes use the shared cache, larger chunks lose up to 30 %."""

_LARGEST_UNSHIFTED_LOGIT = 40.0
"""exp(40) sums without overflow in float32, and exp(-40) is still a normal number."""


class PooledData(NamedTuple):
    """The data, and what bounds its logits at every step."""

    chunks: Chunks
    logit_factor: Float[Array, ""]
    """max |X_t| |q_X| over samples and tokens: a logit is at most this times ||W_i||_F."""


def arda2026_chunk(model: PooledAttention, T: int) -> int:
    """Samples per chunk, so that the (b, T, m) arrays stay in the cache."""
    return max(1, _CHUNK_ELEMENTS // (T * model.m))


def arda2026_path(model: PooledAttention, loss: Loss | str, chunk: int) -> GradientPath:
    """The fused path for `PooledAttention`; its slow twin is `naive_path`."""
    loss = loss_of(loss)

    def prepare(x: Float[Array, "n T d"], y: Float[Array, "n"]) -> PooledData:
        chunks = into_chunks(x, y, loss, chunk)

        def largest(i: Array) -> Float[Array, ""]:
            tokens = jnp.sum(chunks[i].x ** 2, axis=-1)
            queries = jnp.sum(jax.vmap(model.query)(chunks[i].x) ** 2, axis=-1)
            return jnp.max(jnp.max(tokens, axis=1) * queries)

        factor = jnp.sqrt(jnp.max(jax.lax.map(largest, jnp.arange(chunks.count))))
        return PooledData(chunks, factor)

    def loss_and_gradient(
        params: PooledAttentionParams, data: PooledData
    ) -> tuple[Float[Array, ""], PooledAttentionParams]:
        c, Ut, Wt = heads_last(params)

        def over_chunks(shifted: bool) -> tuple[Float[Array, ""], tuple[Array, Array, Array]]:
            def one_chunk(samples: Samples) -> tuple[Float[Array, ""], tuple[Array, Array, Array]]:
                return _chunk_gradient(model, loss, c, Ut, Wt, samples, shifted)

            return sum_over_chunks(one_chunk, data.chunks)

        value, (gc, gU, gW) = jax.lax.cond(
            _logits_are_small(params, data), lambda: over_chunks(False), lambda: over_chunks(True)
        )
        return value, PooledAttentionParams(gc, gU.T, jnp.transpose(gW, (2, 1, 0)))

    def outputs(params: PooledAttentionParams, data: PooledData) -> Float[Array, "n"]:
        c, Ut, Wt = heads_last(params)

        def one_chunk(samples: Samples) -> Float[Array, "b"]:
            q = jax.vmap(model.query)(samples.x)
            s = _attend(samples.x, q, Ut, Wt, shifted=True).s
            return model.activation(s) @ c / math.sqrt(model.m)

        return map_over_chunks(one_chunk, data.chunks)

    return GradientPath(prepare, loss_and_gradient, outputs)


def heads_last(params: PooledAttentionParams) -> tuple[Array, Array, Array]:
    """(c: (m,), U^T: (d, m), W: (d_in, d_out, m)), the layout in which heads vectorise."""
    return params.c, params.U.T, jnp.transpose(params.W, (2, 1, 0))


def _logits_are_small(params: PooledAttentionParams, data: PooledData) -> Array:
    """Whether no logit can exceed the range in which exp needs no shift by the maximum."""
    largest = jnp.sqrt(jnp.max(jnp.sum(params.W**2, axis=(1, 2))))
    return largest * data.logit_factor < _LARGEST_UNSHIFTED_LOGIT


class _Attended(NamedTuple):
    """Unnormalised weights, their sum, X - X_1, the values v, their mean a, s = X_1 U + a."""

    e: Float[Array, "b T m"]
    total: Float[Array, "b m"]
    from_first: Float[Array, "b T d"]
    v: Float[Array, "b T m"]
    a: Float[Array, "b m"]
    s: Float[Array, "b m"]


def _attend(
    x: Float[Array, "b T d"],
    q: Float[Array, "b d"],
    Ut: Float[Array, "d m"],
    Wt: Float[Array, "d d m"],
    *,
    shifted: bool,
) -> _Attended:
    b, T, d = x.shape
    m = Ut.shape[-1]
    G = (q @ Wt.reshape(d, d * m)).reshape(b, d, m)
    z = jnp.einsum("btd,bdm->btm", x, G)
    from_first = x - x[:, :1]
    v = (from_first.reshape(b * T, d) @ Ut).reshape(b, T, m)
    if shifted:
        z = z - jnp.max(z, axis=1, keepdims=True)
    e = jnp.exp(z)
    total = jnp.sum(e, axis=1)
    a = jnp.sum(e * v, axis=1) / total
    return _Attended(e, total, from_first, v, a, x[:, 0] @ Ut + a)


def _chunk_gradient(
    model: PooledAttention,
    loss: Loss,
    c: Float[Array, "m"],
    Ut: Float[Array, "d m"],
    Wt: Float[Array, "d d m"],
    samples: Samples,
    shifted: bool,
) -> tuple[Float[Array, ""], tuple[Array, Array, Array]]:
    """Loss and gradient of one chunk, in the heads-last layout."""
    x, y, weight = samples
    b, T, d = x.shape
    m = model.m
    q = jax.vmap(model.query)(x)
    e, total, from_first, v, a, s = _attend(x, q, Ut, Wt, shifted=shifted)
    h = model.activation(s)
    f = h @ c / math.sqrt(m)
    r = weight * loss.slope(f, y) / math.sqrt(m)
    weighted = e * (jnp.outer(r, c) * model.activation.derivative(s) / total)[:, None, :]
    grad_U = x.reshape(b * T, d).T @ weighted.reshape(b * T, m)
    # The barrier keeps XLA from folding the transpose into a dot that runs at half the speed.
    xt = jax.lax.optimization_barrier(jnp.swapaxes(from_first, 1, 2))
    left = jnp.einsum("bdt,btm->bdm", xt, weighted * (v - a[:, None, :]))
    grad_W = (q.T @ left.reshape(b, d * m)).reshape(d, d, m)
    return jnp.sum(weight * loss.pointwise(f, y)), (r @ h, grad_U, grad_W)


register_path(PooledAttention, arda2026_path, arda2026_chunk)
