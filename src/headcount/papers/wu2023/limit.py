"""The limiting kernel of wu2023, Lemma 1, in closed form."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ...core import Array, BadArgument, check_choice, float64, own_precision
from ...kernels._convergence import Limit, register_limit
from ...kernels._limit_kernel import LimitKernel, two_batches
from .model import Encoder, EncoderParams, output_scale, softmax_scale
from .starts import ntk_normal

POOLINGS = ("sum", "mean")


@own_precision
def angle(u: Float[Array, "d"], v: Float[Array, "d"]) -> Float[Array, ""]:
    """The angle between two vectors, accurate to rounding also when they are nearly parallel.

    2 atan2(|u/|u| - v/|v||, |u/|u| + v/|v||); zero if either vector is zero.
    """
    scale_u, scale_v = jnp.linalg.norm(u), jnp.linalg.norm(v)
    present = (scale_u > 0) & (scale_v > 0)
    unit_u = u / jnp.where(scale_u > 0, scale_u, 1.0)
    unit_v = v / jnp.where(scale_v > 0, scale_v, 1.0)
    theta = 2 * jnp.arctan2(jnp.linalg.norm(unit_u - unit_v), jnp.linalg.norm(unit_u + unit_v))
    return jnp.where(present, theta, 0.0)


@own_precision
def arc_cosine(u: Float[Array, "d"], v: Float[Array, "d"]) -> tuple[Array, Array]:
    """E[relu(u.w) relu(v.w)] and E[relu'(u.w) relu'(v.w)] for w ~ N(0, I).

    |u||v| (sin t + (pi - t) cos t) / (2 pi) and (pi - t) / (2 pi), t the angle; relu'(0) = 0, so
    both vanish when u or v is zero.
    """
    t = angle(u, v)
    scale = jnp.linalg.norm(u) * jnp.linalg.norm(v)
    value = scale * (jnp.sin(t) + (jnp.pi - t) * jnp.cos(t)) / (2 * jnp.pi)
    slope = jnp.where(scale > 0, (jnp.pi - t) / (2 * jnp.pi), 0.0)
    return value, slope


@jax.jit
def _blocks(
    s1: Float[Array, "n1 d"], s2: Float[Array, "n2 d"]
) -> tuple[Float[Array, "n1 n2"], Float[Array, "n1 n2"]]:
    def row(u: Float[Array, "d"]) -> tuple[Array, Array]:
        value, slope = jax.vmap(arc_cosine, in_axes=(None, 0))(u, s2)
        return value, slope * (s2 @ u)

    w_O, W_V = jax.lax.map(row, s1)
    return w_O, W_V


def limit_wu2023(
    x1: Float[Array, "n1 T d"], x2: Float[Array, "n2 T2 d"] | None = None, *, pooling: str
) -> LimitKernel:
    """The kernel of the wu2023 encoder as d_m -> infinity: NTK initialisation, tau0 = 1/d_m.

    K = E[relu(s.w) relu(s'.w)] + E[relu'(s.w) relu'(s'.w)] (s.s') [wu2023, Lemma 1], w ~ N(0, I_d)
    and s = sum_i x_i for sum pooling or (1/d_s) sum_i x_i for mean pooling: attention is uniform in
    the limit, and relu is homogeneous, so that the paper's factor d_s^2 is contained in s. The
    second product is entry-wise (the paper prints a matrix product; that kernel is not the limit).
    The blocks W_Q and W_K vanish. The d_m-fold scale of LeCun and He has no finite limit.
    """
    check_choice("pooling", pooling, POOLINGS)
    x1, x2, symmetric = two_batches(x1, x2)
    pool = np.sum if pooling == "sum" else np.mean
    s1, s2 = pool(x1, axis=1), pool(x2, axis=1)
    with float64():
        w_O, W_V = (np.asarray(block) for block in _blocks(s1, s2))
    if symmetric:
        w_O, W_V = (w_O + w_O.T) / 2, (W_V + W_V.T) / 2
    nothing = np.zeros_like(w_O)
    blocks = {"W_Q": nothing, "W_K": nothing, "W_V": W_V, "w_O": w_O}
    return LimitKernel(
        blocks=blocks,
        errors=dict.fromkeys(blocks, nothing),
        total=w_O + W_V,
        total_error=nothing,
        method="closed-form",
    )


def _limit(
    model: Encoder,
    x1: Float[Array, "n1 T d"],
    x2: Float[Array, "n2 T d"] | None = None,
    **options: Any,
) -> LimitKernel:
    if options:
        raise BadArgument("options", options, "the limit has a closed form", fix="give none")
    if model.residual:
        fix = "use residual=False"
        raise BadArgument("model", type(model).__name__, "has no known limit", fix=fix)
    return limit_wu2023(x1, x2, pooling=model.pooling)


def _at_width(model: Encoder, width: int, seed: int) -> tuple[Encoder, EncoderParams]:
    """NTK initialisation, tau0 = 1/d_m, tau1 = d_m^{-1/2}."""
    tau0, tau1 = softmax_scale("ntk", width), output_scale("ntk", width)
    wide = replace(model, d_m=width, tau0=tau0, tau1=tau1)
    start = ntk_normal(wide, seed)
    assert isinstance(start, EncoderParams)
    return wide, start


# Lemma 1 predicts slope -1/2; the blocks W_Q and W_K vanish like 1/d_m.
register_limit(Encoder, Limit(_limit, _at_width))
