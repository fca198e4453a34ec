"""The exact gradient of the IndRNN: forward recursion for w, reverse recursion for U.

Time is the outer loop and (samples, heads) the vectorised lanes. The forward pass carries h_t and
D_t = dh_t/dw and keeps only the slopes sigma'(pre_t); the reverse pass turns them into
delta_t = dL/dpre_t and adds X_t^T delta_t to the gradient of U as it goes.

On positional tokens (xi_t, s_t p_t) the drive U X_t is xi_t U_0 + s_t E_t with E_t = U_{1:} p_t the
same for all samples: two products for each lane in place of d. Its gradient is that of U_0, and of
the table E, which p_t turns into the gradient of U_{1:} once a step.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Float

from ...core import Array, Loss, loss_of
from ...data import PositionalTokens
from ...training import GradientPath, into_chunks, register_path
from ...training._paths import (
    BlockJacobian,
    Chunks,
    Samples,
    fold_chunks,
    map_over_chunks,
    sum_over_chunks,
)
from .model import IndRNN, IndRNNParams

_CHUNK_LANES = 2**14
"""Lanes (samples x heads) in flight, the best of those measured for m = 32, 64 and 256."""

Lanes = Float[Array, "b m"]


def _forward(
    model: IndRNN, params: IndRNNParams, x: Float[Array, "T b f"], table: Array | None
) -> tuple[Lanes, Lanes, Float[Array, "T b m"]]:
    """h_T, D_T and the slopes sigma'(pre_t): D_t = sigma'(pre_t) o (h_{t-1} + w o D_{t-1}).

    With a table, x holds (xi_t, s_t) in place of tokens.
    """

    U_0 = params.U[None, :, 0]  # out here, so that the loop does not gather a column at every step
    w = params.w[None]

    def drive(x_t: Float[Array, "b f"], row: Float[Array, "m"] | None) -> Lanes:
        return x_t @ params.U.T if row is None else x_t[:, :1] * U_0 + x_t[:, 1:] * row[None]

    def step(
        carry: tuple[Lanes, Lanes], at_t: tuple[Array, Array | None]
    ) -> tuple[tuple[Lanes, Lanes], Lanes]:
        h, D = carry
        pre = drive(*at_t) + w * h
        slope = model.activation.derivative(pre)
        return (model.activation(pre), slope * (h + w * D)), slope

    start = jnp.zeros((x.shape[1], model.m), x.dtype)
    (h, D), slopes = jax.lax.scan(step, (start, start), (x, table))
    return h, D, slopes


def _gradient_U(
    params: IndRNNParams,
    x: Float[Array, "T b d"],
    slopes: Float[Array, "T b m"],
    grad_h: Lanes,
) -> Float[Array, "d m"]:
    """sum_t X_t^T delta_t, delta_t = sigma'(pre_t) o g_t, g_{t-1} = w o delta_t, g_T = dL/dh_T."""

    def step(
        carry: tuple[Lanes, Array], at_t: tuple[Lanes, Array]
    ) -> tuple[tuple[Lanes, Array], None]:
        g, total = carry
        slope, x_t = at_t
        delta = slope * g
        return (params.w[None] * delta, total + x_t.T @ delta), None

    start = (grad_h, jnp.zeros(params.U.T.shape, x.dtype))
    (_, total), _ = jax.lax.scan(step, start, (slopes, x), reverse=True)
    return total


def _gradient_table(
    params: IndRNNParams,
    x: Float[Array, "T b 2"],
    slopes: Float[Array, "T b m"],
    grad_h: Lanes,
) -> Float[Array, "T 2 m"]:
    """(xi_t, s_t)^T delta_t for every t, with delta_t as above."""

    def step(g: Lanes, at_t: tuple[Lanes, Array]) -> tuple[Lanes, Array]:
        slope, x_t = at_t
        delta = slope * g
        return params.w[None] * delta, x_t.T @ delta

    return jax.lax.scan(step, grad_h, (slopes, x), reverse=True)[1]


def indrnn_path(
    model: IndRNN, loss: Loss | str, chunk: int, tokens: PositionalTokens | None = None
) -> GradientPath:
    """Loss and gradient of f = m^{-1/2} c . h_T [arda2026, App. B]."""
    loss = loss_of(loss)
    root = math.sqrt(model.m)
    gradient_of_drive = _gradient_U if tokens is None else _gradient_table
    table, finish_U = _positional(tokens)

    def prepare(x: Float[Array, "n T d"], y: Float[Array, "n"]) -> Chunks:
        return into_chunks(x if tokens is None else tokens.split(x), y, loss, chunk)

    def by_time(samples: Samples) -> Float[Array, "T b f"]:
        if tokens is None:
            return jnp.swapaxes(samples.x, 0, 1)
        return jnp.stack([part.T for part in samples.x], axis=-1)

    def one_chunk(
        params: IndRNNParams, shared: Array | None, samples: Samples
    ) -> tuple[Float[Array, ""], IndRNNParams, Lanes]:
        """Loss, gradient (of the drive's weights in place of U), and D_T."""
        y, weight = samples.y, samples.weight
        x = by_time(samples)
        h, D, slopes = _forward(model, params, x, shared)
        f = h @ params.c / root
        r = weight * loss.slope(f, y) / root
        drive = gradient_of_drive(params, x, slopes, jnp.outer(r, params.c))
        gradient = IndRNNParams(c=r @ h, U=drive, w=params.c * (r @ D))
        return jnp.sum(weight * loss.pointwise(f, y)), gradient, D

    def loss_and_gradient(
        params: IndRNNParams, data: Chunks
    ) -> tuple[Float[Array, ""], IndRNNParams]:
        shared = table(params)
        value, gradient = sum_over_chunks(lambda s: one_chunk(params, shared, s)[:2], data)
        return value, gradient._replace(U=finish_U(gradient.U))

    def with_jacobian(
        params: IndRNNParams, data: Chunks
    ) -> tuple[Float[Array, ""], IndRNNParams, BlockJacobian]:
        """grad_w f = m^{-1/2} c o D_T, which the gradient has in hand."""
        shared, output = table(params), params.c / root

        def sums_and_lengths(samples: Samples) -> tuple[tuple[Array, IndRNNParams, Array], Array]:
            value, gradient, D = one_chunk(params, shared, samples)
            fresh = (samples.weight > 0).astype(D.dtype)
            lengths = jnp.sqrt(jnp.sum((output[None] * D) ** 2, axis=1))
            return (value, gradient, output * (fresh @ D)), lengths

        (value, gradient, total), lengths = fold_chunks(sums_and_lengths, data)
        gradient = gradient._replace(U=finish_U(gradient.U))
        return value, gradient, BlockJacobian("w", total, lengths)

    def outputs(params: IndRNNParams, data: Chunks) -> Float[Array, "n"]:
        shared = table(params)

        def final_output(samples: Samples) -> Float[Array, "b"]:
            h, _, _ = _forward(model, params, by_time(samples), shared)
            return h @ params.c / root

        return map_over_chunks(final_output, data)

    return GradientPath(prepare, loss_and_gradient, outputs, with_jacobian)


def _positional(
    tokens: PositionalTokens | None,
) -> tuple[Callable[[IndRNNParams], Array | None], Callable[[Array], Float[Array, "m d"]]]:
    """The table E of some parameters, and the gradient of U from that of the drive's weights."""
    if tokens is None:
        return lambda params: None, jnp.transpose

    def table(params: IndRNNParams) -> Float[Array, "T m"]:
        E = tokens.channels.astype(params.U.dtype) @ params.U[:, 1:].T
        return jax.lax.optimization_barrier(E)

    def finish(found: Float[Array, "T 2 m"]) -> Float[Array, "m d"]:
        fixed = found[:, 1].T @ tokens.channels.astype(found.dtype)
        return jnp.concatenate([jnp.sum(found[:, 0], axis=0)[:, None], fixed], axis=1)

    return table, finish


def indrnn_chunk(model: IndRNN, T: int) -> int:
    """As many samples as fill the lanes, whatever the number of tokens; at least one."""
    return max(1, _CHUNK_LANES // model.m)


register_path(IndRNN, indrnn_path, indrnn_chunk)
register_path(IndRNN, indrnn_path, indrnn_chunk, tokens=PositionalTokens)
