"""The limiting kernel of arda2026, Lemma 4, by Monte Carlo over heads with standard errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from ...core import (
    Activation,
    Array,
    BadArgument,
    check_choice,
    check_count,
    check_positive,
    float64,
    stream,
)
from ...kernels._convergence import Limit, register_limit
from ...kernels._limit_kernel import LimitKernel, two_batches
from .gaussian_moments import Moments, Pair, closed_moments
from .model import PooledAttention
from .starts import paired

METHODS = ("auto", "rao-blackwell", "plain")
BLOCKS = ("c", "U", "W")
_TILE = 64
_BUDGET = 2**21
_FIRST_ROUND = 256

Kernels = Float[Array, "b 4 n1 n2"]


class Inputs(NamedTuple):
    """Samples and their queries."""

    x: Float[Array, "n T d"]
    q: Float[Array, "n d"]


class Running(NamedTuple):
    """How many heads, their mean kernels (c, U, W, total), and summed squared deviations."""

    count: Float[Array, ""]
    mean: Float[Array, "4 n1 n2"]
    scatter: Float[Array, "4 n1 n2"]


def limit_arda2026(
    model: PooledAttention,
    x1: Float[Array, "n1 T d"],
    x2: Float[Array, "n2 T d"] | None = None,
    *,
    heads: int | None = None,
    target_error: float | None = None,
    method: str = "auto",
    seed: int = 0,
    most_heads: int = 2**20,
) -> LimitKernel:
    """K_c, K_u, K_w of arda2026, Lemma 4, as blocks "c", "U", "W" with a standard error per entry.

    K_c = E[sigma(U.a) sigma(U.a')], K_u = E[sigma'(U.a) sigma'(U.a')] a.a',
    K_w = (q.q') E[sigma'(U.a) sigma'(U.a') U^T M M' U], over U ~ N(0, I), W with N(0, 1) entries.
    Only the activation and the query of `model` matter. "plain" averages over heads (U, W);
    "rao-blackwell" draws W alone and integrates U out, in closed form: erf, sin, cos and Gaussian
    activations have one (`benchmarks/limit_variance.py` has what it saves), and "auto" takes it.

    Give either `heads`, or `target_error`: then the heads are doubled until the largest standard
    error is below it, or until `most_heads` (the result says which). Head i is the same draw for
    every method, chunk and number of heads.
    """
    x1, x2, symmetric = two_batches(x1, x2)
    check_choice("method", method, METHODS)
    check_count("most_heads", most_heads, least=2)
    if (heads is None) == (target_error is None):
        raise BadArgument(
            "heads", heads, "exactly one of heads and target_error is needed", fix="give heads=4096"
        )
    if heads is not None:
        check_count("heads", heads, least=2)
    if target_error is not None:
        check_positive("target_error", target_error)
    if x1.shape[2] != model.d:
        raise BadArgument(
            "x1", f"{x1.shape[2]} features", "model.d differs", fix=f"use d={model.d}"
        )

    closed = closed_moments(model.activation) is not None
    if method == "rao-blackwell" and not closed:
        problem = f"has no closed form for {model.activation.name}"
        raise BadArgument("method", method, problem, fix='use method="plain"')
    if method == "auto":
        method = "rao-blackwell" if closed else "plain"
    with float64():
        run = _estimator(model, x1, x2, symmetric, method, seed)
        count = heads if heads is not None else min(_FIRST_ROUND, most_heads)
        running = run(0, count)
        if target_error is not None:
            while _largest_error(running) > target_error and count < most_heads:
                more = min(2 * count, most_heads)
                running = merge(running, run(count, more))
                count = more
    return _result(running, method, target_error)


def merge(one: Running, two: Running) -> Running:
    """The statistics of two groups of heads together (Chan's formula, no cancellation)."""
    count = one.count + two.count
    shift = two.mean - one.mean
    mean = one.mean + shift * (two.count / count)
    scatter = one.scatter + two.scatter + shift**2 * (one.count * two.count / count)
    return Running(count, mean, scatter)


def _estimator(
    model: PooledAttention,
    x1: Float[Array, "n1 T d"],
    x2: Float[Array, "n2 T d"],
    symmetric: bool,
    method: str,
    seed: int,
) -> Callable[[int, int], Running]:
    """run(start, stop): statistics of the heads start..stop-1, tile by tile."""
    key = stream(seed, "limit", "heads")
    queries = jax.vmap(model.query)
    rows, r1 = _tiles(x1)
    columns, r2 = _tiles(x2)
    per_head = r1 * r2 * (2 * model.d + 16) + 3 * (r1 + r2) * model.d * (x1.shape[1] + model.d)
    chunk = max(1, min(256, _BUDGET // per_head))
    zeros = jnp.zeros((4, r1, r2))

    def one_tile(left: Inputs, right: Inputs, start: int, stop: int) -> Running:
        running = Running(jnp.zeros(()), zeros, zeros)
        for first in range(start, stop, chunk):
            U, W = draw_heads(key, first, count=chunk, d=model.d)
            present = jnp.asarray(min(chunk, stop - first), jnp.float64)
            running = _add_heads(model.activation, method, running, left, right, U, W, present)
        return running

    def run(start: int, stop: int) -> Running:
        shape = (4, len(rows) * r1, len(columns) * r2)
        whole = [np.zeros(shape) for _ in range(2)]
        for i, j in _tile_pairs(len(rows), len(columns), symmetric):
            left, right = Inputs(rows[i], queries(rows[i])), Inputs(columns[j], queries(columns[j]))
            part = one_tile(left, right, start, stop)
            here, there = slice(i * r1, (i + 1) * r1), slice(j * r2, (j + 1) * r2)
            for matrix, tile in zip(whole, part[1:], strict=True):
                matrix[:, here, there] = (
                    _mirrored(np.asarray(tile)) if symmetric and i == j else tile
                )
                if symmetric and i != j:
                    matrix[:, there, here] = np.swapaxes(tile, 1, 2)
        mean, scatter = (matrix[:, : len(x1), : len(x2)] for matrix in whole)
        return Running(np.float64(stop - start), mean, scatter)

    return run


def _mirrored(tile: Float[Array, "4 r r"]) -> Float[Array, "4 r r"]:
    """A diagonal tile made symmetric to the last bit."""
    return (tile + np.swapaxes(tile, 1, 2)) / 2


def _tiles(x: Float[Array, "n T d"]) -> tuple[Float[Array, "k r T d"], int]:
    """Samples in tiles of one size, so that one program serves all; the last sample pads."""
    count = -(-len(x) // _TILE)
    size = -(-len(x) // count)
    padded = np.concatenate([x, np.repeat(x[-1:], count * size - len(x), axis=0)])
    return padded.reshape(count, size, *x.shape[1:]), size


def _tile_pairs(rows: int, columns: int, symmetric: bool) -> Iterator[tuple[int, int]]:
    for i in range(rows):
        yield from ((i, j) for j in range(i if symmetric else 0, columns))


@partial(jax.jit, static_argnames=("count", "d"))
def draw_heads(key: PRNGKeyArray, start: int, *, count: int, d: int) -> tuple[Array, Array]:
    """U: (count, d), W: (count, d, d) of the heads start, start + 1, ... [arda2026, Sec. 5.2]."""

    def head(i: Array) -> tuple[Array, Array]:
        for_U, for_W = jax.random.split(jax.random.fold_in(key, i))
        U = jax.random.normal(for_U, (d,), jnp.float64)
        return U, jax.random.normal(for_W, (d, d), jnp.float64)

    return jax.vmap(head)(start + jnp.arange(count))


@partial(jax.jit, static_argnums=(0, 1))
def _add_heads(
    activation: Activation,
    method: str,
    running: Running,
    left: Inputs,
    right: Inputs,
    U: Float[Array, "b d"],
    W: Float[Array, "b d d"],
    present: Float[Array, ""],
) -> Running:
    """`running` with the first `present` of the b heads added."""
    moments = closed_moments(activation)
    if method == "plain" or moments is None:
        kernels = plain_kernels(activation, left, right, U, W)
    else:
        kernels = conditional_kernels(moments, left, right, W)
    weight = (jnp.arange(len(W), dtype=present.dtype) < present).astype(kernels.dtype)
    mean = jnp.einsum("b,bkij->kij", weight, kernels) / present
    scatter = jnp.einsum("b,bkij->kij", weight, (kernels - mean[None]) ** 2)
    return merge(running, Running(present, mean, scatter))


def _attend(side: Inputs, W: Float[Array, "b d d"]) -> tuple[Array, Array]:
    """Attention weights alpha: (b, n, T) and pooled tokens a: (b, n, d)."""
    alpha = jax.nn.softmax(jnp.einsum("ntd,bde,ne->bnt", side.x, W, side.q), axis=-1)
    return alpha, jnp.einsum("bnt,ntd->bnd", alpha, side.x)


def _stack(c: Array, U: Array, W: Array) -> Float[Array, "*b 4 n1 n2"]:
    return jnp.stack([c, U, W, c + U + W], axis=-3)


def plain_kernels(
    activation: Activation,
    left: Inputs,
    right: Inputs,
    U: Float[Array, "b d"],
    W: Float[Array, "b d d"],
) -> Kernels:
    """The kernels of b heads (U, W): products of their features [arda2026, Sec. 5.4]."""

    def features(side: Inputs) -> tuple[Array, Array, Array]:
        alpha, a = _attend(side, W)
        s = jnp.einsum("bnd,bd->bn", a, U)
        values = jnp.einsum("ntd,bd->bnt", side.x, U)
        centred = alpha * (values - s[..., None])
        slope = activation.derivative(s)[..., None]
        return activation(s), slope * a, slope * jnp.einsum("bnt,ntd->bnd", centred, side.x)

    (c1, u1, w1), (c2, u2, w2) = features(left), features(right)
    return _stack(
        c1[:, :, None] * c2[:, None, :],
        jnp.einsum("bid,bjd->bij", u1, u2),
        (left.q @ right.q.T)[None] * jnp.einsum("bid,bjd->bij", w1, w2),
    )


def conditional_kernels(
    moments: Callable[[Pair], Moments],
    left: Inputs,
    right: Inputs,
    W: Float[Array, "b d d"],
) -> Kernels:
    """The kernels given W, averaged over U.

    P = M M' enters through its forms in a and a' only. Heads are taken one by one, so that
    the pairs of one head stay in the cache.
    """

    def geometry(side: Inputs) -> tuple[Array, Array, Array]:
        alpha, a = _attend(side, W)
        centred = side.x[None] - a[:, :, None, :]
        M = jnp.einsum("bnt,bntd,bnte->bnde", alpha, centred, centred)
        return a, M, jnp.einsum("bnde,bne->bnd", M, a)

    q_q = left.q @ right.q.T

    def one_head(sides: Any) -> Array:
        (a1, M1, Ma1), (a2, M2, Ma2) = sides
        s12 = a1 @ a2.T
        flat1, flat2 = M1.reshape(len(a1), -1), M2.reshape(len(a2), -1)
        outer1 = (Ma1[:, :, None] * a1[:, None, :]).reshape(flat1.shape)
        outer2 = (Ma2[:, :, None] * a2[:, None, :]).reshape(flat2.shape)
        M1_a2 = jnp.swapaxes(M1, 0, 1) @ a2.T
        M2_a1 = a1 @ jnp.transpose(M2, (1, 2, 0))
        pair = Pair(
            s11=jnp.sum(a1**2, axis=-1)[:, None],
            s22=jnp.sum(a2**2, axis=-1)[None, :],
            s12=s12,
            p=flat1 @ flat2.T,
            p11=outer1 @ flat2.T,
            cross=Ma1 @ Ma2.T + jnp.sum(M1_a2 * M2_a1, axis=0),
            p22=flat1 @ outer2.T,
        )
        value, slope, curved = moments(pair)
        return _stack(value, slope * s12, q_q * curved)

    return jax.lax.map(one_head, (geometry(left), geometry(right)))


def _standard_errors(running: Running) -> Float[Array, "4 n1 n2"]:
    return np.sqrt(np.asarray(running.scatter) / (running.count * (running.count - 1)))


def _largest_error(running: Running) -> float:
    return float(np.max(_standard_errors(running)))


def _result(running: Running, method: str, target: float | None) -> LimitKernel:
    errors = _standard_errors(running)
    return LimitKernel(
        blocks=dict(zip(BLOCKS, running.mean, strict=False)),
        errors=dict(zip(BLOCKS, errors, strict=False)),
        total=running.mean[3],
        total_error=errors[3],
        method=method,
        heads=int(running.count),
        target_error=target,
        target_met=None if target is None else float(np.max(errors)) <= target,
    )


def _at_width(model: PooledAttention, width: int, seed: int) -> tuple[PooledAttention, Any]:
    """Width m from the paired start."""
    wide = replace(model, m=width)
    return wide, paired(wide, seed)


# Lemma 4 predicts slope -1/2; the limit is estimated with heads of a stream of its own.
register_limit(PooledAttention, Limit(limit_arda2026, _at_width, {"heads": 2**14}))
