"""The exact gradient of wu2023's encoder, with attention in d x d and three large products.

W_Q and W_K enter the softmax through M = tau0 W_Q^T W_K alone, so a step needs their product once
and the gradients tau0 W_K (dM)^T and tau0 W_Q dM once. With the mask B = 1[h > 0] of a chunk's
tokens, everything that touches the width d_m is three matrix products per chunk: h = phi W_V^T,
Q = B (w_O o W_V) and phi^T R B; outputs and the gradient in w_O follow from relu(h) = B o h.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Float

from ...core import Array, Loss, loss_of
from ...training import GradientPath, into_chunks, register_path
from ...training._paths import Chunks, Samples, map_over_chunks, sum_over_chunks
from .model import Encoder, EncoderParams

_CHUNK_HIDDEN = 2**21
"""Hidden entries (tokens x d_m) in flight; within the token limits below, measured on CPU."""
_FEWEST_TOKENS, _MOST_TOKENS = 256, 512


class _Forward(NamedTuple):
    """What the gradient of one chunk needs of its forward pass (tokens of all samples as rows)."""

    attention: Float[Array, "b T T"]
    phi: Float[Array, "bT d"]
    mask: Float[Array, "bT d_m"]
    pulled: Float[Array, "bT d"]
    f: Float[Array, "b"]


class _Sums(NamedTuple):
    """What is added up over chunks: small (d x d), or of the size of the parameters."""

    logits_matrix: Float[Array, "d d"]
    masked_phi: Float[Array, "d d_m"]
    masked_skip: Float[Array, "d"]


def _tokens(x: Float[Array, "b T d"]) -> Float[Array, "bT d"]:
    return x.reshape(-1, x.shape[-1])


def _scale(model: Encoder, T: int) -> float:
    """tau1, divided by the number of tokens for mean pooling."""
    return model.tau1 / T if model.pooling == "mean" else model.tau1


def _logits_matrix(model: Encoder, params: EncoderParams) -> Float[Array, "d d"]:
    """M, scaled after the product: no pass over a wide array."""
    return model.tau0 * (params.W_Q.T @ params.W_K)


def _forward(
    model: Encoder,
    params: EncoderParams,
    M: Float[Array, "d d"],
    readout: Float[Array, "d_m d"],
    x: Float[Array, "b T d"],
) -> _Forward:
    """The chunk's outputs, f = scale sum_i phi_i . Q_i with Q = B (w_O o W_V) [wu2023, 3.1]."""
    queries = (_tokens(x) @ M).reshape(x.shape)
    attention = jax.nn.softmax(jnp.einsum("bid,bjd->bij", queries, x), axis=-1)
    phi = _tokens(jnp.einsum("bij,bjd->bid", attention, x))
    hidden = phi @ params.W_V.T
    if model.residual:
        hidden = hidden.at[:, : model.d].add(_tokens(x))
    mask = (hidden > 0).astype(x.dtype)
    pulled = mask @ readout
    token_values = phi * pulled
    if model.residual:
        skipped = mask[:, : model.d] * params.w_O[None, : model.d]
        token_values = token_values + _tokens(x) * skipped
    b, T, _ = x.shape
    f = _scale(model, T) * jnp.sum(token_values.reshape(b, -1), axis=-1)
    return _Forward(attention, phi, mask, pulled, f)


def _backward(
    model: Encoder, x: Float[Array, "b T d"], seen: _Forward, slope: Float[Array, "b"]
) -> _Sums:
    """One chunk's part of the gradient; `slope` is the derivative of the loss in f."""
    b, T, d = x.shape
    r = jnp.repeat(_scale(model, T) * slope, T)[:, None]
    grad_phi = (r * seen.pulled).reshape(b, T, d)
    from_first = x - x[:, :1]  # exactly zero, and so are the logits' gradients, if tokens agree
    grad_attention = jnp.einsum("bid,bjd->bij", grad_phi, from_first)
    centre = jnp.sum(seen.attention * grad_attention, axis=-1, keepdims=True)
    grad_logits = seen.attention * (grad_attention - centre)
    keys = _tokens(jnp.einsum("bij,bjd->bid", grad_logits, from_first))
    skip = jnp.zeros((d,), x.dtype)
    if model.residual:
        skip = jnp.sum(r * _tokens(x) * seen.mask[:, :d], axis=0)
    return _Sums(_tokens(x).T @ keys, (r * seen.phi).T @ seen.mask, skip)


def _gradient(model: Encoder, params: EncoderParams, sums: _Sums) -> EncoderParams:
    """From the sums over all samples to the gradient of every block, once per step."""
    masked_phi = sums.masked_phi.T
    grad_w_O = jnp.sum(params.W_V * masked_phi, axis=1)
    if model.residual:
        grad_w_O = grad_w_O.at[: model.d].add(sums.masked_skip)
    return EncoderParams(
        W_Q=params.W_K @ (model.tau0 * sums.logits_matrix.T),
        W_K=params.W_Q @ (model.tau0 * sums.logits_matrix),
        W_V=params.w_O[:, None] * masked_phi,
        w_O=grad_w_O,
    )


def wu2023_path(model: Encoder, loss: Loss | str, chunk: int) -> GradientPath:
    """Loss and gradient of the encoder, sum or mean pooling, with or without residual."""
    loss = loss_of(loss)

    def loss_and_gradient(
        params: EncoderParams, data: Chunks
    ) -> tuple[Float[Array, ""], EncoderParams]:
        M = _logits_matrix(model, params)
        readout = params.w_O[:, None] * params.W_V

        def one_chunk(samples: Samples) -> tuple[Float[Array, ""], _Sums]:
            x, y, weight = samples
            seen = _forward(model, params, M, readout, x)
            sums = _backward(model, x, seen, weight * loss.slope(seen.f, y))
            return jnp.sum(weight * loss.pointwise(seen.f, y)), sums

        value, sums = sum_over_chunks(one_chunk, data)
        return value, _gradient(model, params, sums)

    def outputs(params: EncoderParams, data: Chunks) -> Float[Array, "n"]:
        M = _logits_matrix(model, params)
        readout = params.w_O[:, None] * params.W_V
        return map_over_chunks(lambda c: _forward(model, params, M, readout, c.x).f, data)

    return GradientPath(
        prepare=lambda x, y: into_chunks(x, y, loss, chunk),
        loss_and_gradient=loss_and_gradient,
        outputs=outputs,
    )


def wu2023_chunk(model: Encoder, T: int) -> int:
    """Between 256 and 512 tokens at a time, fewer for large d_m, at least one sample."""
    tokens = min(max(_CHUNK_HIDDEN // model.d_m, _FEWEST_TOKENS), _MOST_TOKENS)
    return max(1, tokens // T)


register_path(Encoder, wu2023_path, wu2023_chunk)
