"""The exact gradient of the IndRNN: forward recursion for w, reverse recursion for U.

Time is the outer loop and (samples, heads) the vectorised lanes. The forward pass carries h_t and
D_t = dh_t/dw and keeps only the slopes sigma'(pre_t); the reverse pass turns them into
delta_t = dL/dpre_t and adds X_t^T delta_t to the gradient of U as it goes.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jaxtyping import Float

from ..core import Array, Loss
from ..models import IndRNN, IndRNNParams
from ._paths import (
    Chunks,
    GradientPath,
    Samples,
    into_chunks,
    map_over_chunks,
    register_path,
    sum_over_chunks,
)

_CHUNK_LANES = 2**14
"""Lanes (samples x heads) in flight, the best of those measured for m = 32, 64 and 256."""

Lanes = Float[Array, "b m"]


def _forward(
    model: IndRNN, params: IndRNNParams, x: Float[Array, "T b d"]
) -> tuple[Lanes, Lanes, Float[Array, "T b m"]]:
    """h_T, D_T and the slopes sigma'(pre_t): D_t = sigma'(pre_t) o (h_{t-1} + w o D_{t-1})."""

    w = params.w[None]

    def step(
        carry: tuple[Lanes, Lanes], x_t: Float[Array, "b d"]
    ) -> tuple[tuple[Lanes, Lanes], Lanes]:
        h, D = carry
        pre = x_t @ params.U.T + w * h
        slope = model.activation.derivative(pre)
        return (model.activation(pre), slope * (h + w * D)), slope

    start = jnp.zeros((x.shape[1], model.m), x.dtype)
    (h, D), slopes = jax.lax.scan(step, (start, start), x)
    return h, D, slopes


def _gradient_U(
    params: IndRNNParams,
    x: Float[Array, "T b d"],
    slopes: Float[Array, "T b m"],
    grad_h: Lanes,
) -> Float[Array, "m d"]:
    """sum_t delta_t^T X_t, delta_t = sigma'(pre_t) o g_t, g_{t-1} = w o delta_t, g_T = dL/dh_T."""

    def step(
        carry: tuple[Lanes, Array], at_t: tuple[Lanes, Array]
    ) -> tuple[tuple[Lanes, Array], None]:
        g, total = carry
        slope, x_t = at_t
        delta = slope * g
        return (params.w[None] * delta, total + x_t.T @ delta), None

    start = (grad_h, jnp.zeros(params.U.T.shape, x.dtype))
    (_, total), _ = jax.lax.scan(step, start, (slopes, x), reverse=True)
    return total.T


def indrnn_path(model: IndRNN, loss: Loss, chunk: int) -> GradientPath:
    """Loss and gradient of f = m^{-1/2} c . h_T [arda2026, App. B]."""
    root = math.sqrt(model.m)

    def one_chunk(params: IndRNNParams, samples: Samples) -> tuple[Float[Array, ""], IndRNNParams]:
        y, weight = samples.y, samples.weight
        x = jnp.swapaxes(samples.x, 0, 1)
        h, D, slopes = _forward(model, params, x)
        f = h @ params.c / root
        r = weight * loss.slope(f, y) / root
        gradient = IndRNNParams(
            c=r @ h,
            U=_gradient_U(params, x, slopes, jnp.outer(r, params.c)),
            w=params.c * (r @ D),
        )
        return jnp.sum(weight * loss.pointwise(f, y)), gradient

    def outputs(params: IndRNNParams, data: Chunks) -> Float[Array, "n"]:
        def final_output(samples: Samples) -> Float[Array, "b"]:
            h, _, _ = _forward(model, params, jnp.swapaxes(samples.x, 0, 1))
            return h @ params.c / root

        return map_over_chunks(final_output, data)

    return GradientPath(
        prepare=lambda x, y: into_chunks(x, y, loss, chunk),
        loss_and_gradient=lambda params, data: sum_over_chunks(
            lambda c: one_chunk(params, c), data
        ),
        outputs=outputs,
    )


def indrnn_chunk(model: IndRNN, T: int) -> int:
    """As many samples as fill the lanes, whatever the number of tokens; at least one."""
    return max(1, _CHUNK_LANES // model.m)


register_path(IndRNN, indrnn_path, indrnn_chunk)
