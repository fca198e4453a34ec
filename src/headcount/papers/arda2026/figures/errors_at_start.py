"""Linearisation and approximation error of one student at its initialisation [arda2026, Sec. 6.1].

Both need no training. Everything is float64: the second-order term is a small difference.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ....core import Array, head_features, pooled_attention
from ....core._attention import softmax_covariance_times
from ....core._precision import in_float64
from ....kernels import Linearised
from ....lab import Context, Measurement
from ..model import PooledAttention, PooledAttentionParams
from .problem import label_seconds, student, transport_shift

_BATCH_NUMBERS = 2**18
"""Numbers in one (samples, heads, T) array of a batch."""


def measure_linearisation(config: dict[str, Any], context: Context) -> dict[str, Any]:
    """|f - f_lin| at three kinds of points on the boundary of Omega_rho, sup and mean over inputs.

    linearisation: the released code's point, see `code_direction`. Both heads of a pair move
    alike, so c_i (h_i - h_i0 - <grad h_i, dtheta_i>) cancels between them, and only
    m^{-1/2} sum_i dc_i (h_i - h_i0) is left.
    second_order: only the first head of each pair moves, and not its c: that cancelled term alone.
    adversarial: for every input its own worst of eight boundary points per head.
    """
    model, start, x, _, _ = student(config)
    rho = tuple(config["rho"])
    shift = code_direction(model, start, x, rho)
    context.progress(1, 3)
    first = np.arange(model.m) < model.m // 2
    one_sided = PooledAttentionParams(
        np.zeros(model.m), shift.U * first[:, None], shift.W * first[:, None, None]
    )
    found = {
        "linearisation": remainder(model, start, shift, x),
        "second_order": remainder(model, start, one_sided, x),
    }
    context.progress(2, 3)
    found["adversarial"] = adversarial_remainder(model, start, x, rho)
    results: dict[str, Any] = {}
    for name, values in found.items():
        results[f"{name}_sup"] = np.max(np.abs(values))
        results[f"{name}_mean"] = np.mean(np.abs(values))
    return results


def measure_approximation(config: dict[str, Any], context: Context) -> dict[str, Any]:
    """|f_lin(X_j; phi~) - y_j| at the transported parameters phi~ of Eq. (10), sup and rms.

    With the released code's teacher the linear model, too, sees only the diagonal of W, as there.
    """
    own = student(config)
    context.progress(1, 2)
    moved, start = transport_shift(config, own), own.initial
    if config["data_options"]["attention"] == "diagonal":
        start = start._replace(W=start.W * np.eye(own.model.d))
    gap = linear_change(own.model, start, moved, own.x) - own.y
    return {
        "approximation_sup": np.max(np.abs(gap)),
        "approximation_rms": math.sqrt(np.mean(gap**2)),
    }


def code_direction(
    model: PooledAttention,
    start: PooledAttentionParams,
    x: Float[Array, "n T d"],
    rho: tuple[float, ...],
) -> PooledAttentionParams:
    """The shift of the released code: dc_i = +rho_c/sqrt m for every head; dU_i and dW_i on their
    spheres, of radius rho_u/sqrt m and rho_w/sqrt m, along the gradient of sum_j h_i(X_j).
    """
    half = model.m // 2
    G_U, G_W = in_float64(partial(_summed_gradients, model), start.U[:half], start.W[:half], x)
    rho_c, rho_u, rho_w = rho
    root = math.sqrt(model.m)
    dU = rho_u / root * G_U / np.linalg.norm(G_U, axis=1)[:, None]
    dW = rho_w / root * G_W / np.linalg.norm(G_W, axis=(1, 2))[:, None, None]
    return PooledAttentionParams(
        np.full(model.m, rho_c / root), np.concatenate([dU, dU]), np.concatenate([dW, dW])
    )


def remainder(
    model: PooledAttention,
    start: PooledAttentionParams,
    shift: PooledAttentionParams,
    x: Float[Array, "n T d"],
) -> Float[Array, "n"]:
    """f(X_j; phi0 + shift) - f_lin(X_j; phi0 + shift) for every input [arda2026, Lemma 3]."""
    change, linear = in_float64(partial(_linear_change, model), start, shift, x)
    return change - linear


def linear_change(
    model: PooledAttention,
    start: PooledAttentionParams,
    shift: PooledAttentionParams,
    x: Float[Array, "n T d"],
) -> Float[Array, "n"]:
    """<grad f(X_j; phi0), shift> for every input, f_lin of Def. 3."""
    return in_float64(partial(_linear_change, model), start, shift, x)[1]


def adversarial_remainder(
    model: PooledAttention,
    start: PooledAttentionParams,
    x: Float[Array, "n T d"],
    rho: tuple[float, ...],
) -> Float[Array, "n"]:
    """For each input the largest |f - f_lin| with dU_i, dW_i along +- grad h_i(X), dc_i = +-.

    A head contributes c R + dc D, with D = h(theta) - h(theta0) and R = D - <grad h, dtheta>. Heads
    choose separately, and each pair has one c = 1 and one c = -1, so the maximum is
    m^{-1/2} sum over pairs of max(R + r_c |D|) + max(-R + r_c |D|), over the four signs of
    (dU, dW). Along grad_W h = (M U) q^T the logits move by |q| X (M U)/|M U|.
    """
    half = model.m // 2
    return in_float64(partial(_adversarial, model, rho), start.U[:half], start.W[:half], x)


def _over_inputs(model: PooledAttention, one_input: Callable[..., Any], x: Array) -> Any:
    batch = max(1, min(x.shape[0], _BATCH_NUMBERS // (model.m * x.shape[1])))
    return jax.lax.map(one_input, x, batch_size=batch)


@partial(jax.jit, static_argnums=0)
def _summed_gradients(model: PooledAttention, U: Array, W: Array, x: Array) -> tuple[Array, Array]:
    over_heads = jax.vmap(head_features, in_axes=(None, None, 0, 0, None))

    def one_input(X: Float[Array, "T d"]) -> tuple[Array, Array, Array]:
        q = model.query(X)
        features = over_heads(X, q, U, W, model.activation)
        return features.phi_u, features.w_left, q

    phi_u, w_left, q = _over_inputs(model, one_input, x)
    return phi_u.sum(axis=0), jnp.einsum("nhi,nj->hij", w_left, q)


@partial(jax.jit, static_argnums=0)
def _linear_change(model: PooledAttention, start: Any, shift: Any, x: Array) -> tuple[Array, Array]:
    """f(phi0 + shift) - f(phi0) and its linear part, for every input."""
    point, line = jax.tree.map(jnp.add, start, shift), Linearised(model, start)

    def one_input(X: Float[Array, "T d"]) -> tuple[Array, Array]:
        value = model(start, X)
        return model(point, X) - value, line(point, X) - value

    return _over_inputs(model, one_input, x)


@partial(jax.jit, static_argnums=(0, 1))
def _adversarial(
    model: PooledAttention, rho: tuple[float, ...], U: Array, W: Array, x: Array
) -> Float[Array, "n"]:
    root = math.sqrt(model.m)
    r_c, r_u, r_w = (radius / root for radius in rho)
    sigma = model.activation

    def one_head(X: Array, q: Array, u: Array, w: Array) -> Float[Array, ""]:
        alpha = pooled_attention(X, w, q)
        a = alpha @ X
        slope = sigma.derivative(u @ a)
        MU = softmax_covariance_times(X, alpha, u)
        length_q = jnp.linalg.norm(q)
        gain_u, gain_w = slope * jnp.linalg.norm(a), slope * jnp.linalg.norm(MU) * length_q

        def both_signs_of_c(signs: Float[Array, "2"]) -> tuple[Array, Array]:
            sign_u, sign_w = signs
            logits = X @ (w @ q + sign_w * r_w * length_q * _unit(MU))
            h = sigma((u + sign_u * r_u * _unit(a)) @ (jax.nn.softmax(logits) @ X))
            D = h - sigma(u @ a)
            R = D - sign_u * r_u * gain_u - sign_w * r_w * gain_w
            return R + r_c * jnp.abs(D), -R + r_c * jnp.abs(D)

        signs = jnp.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]], X.dtype)
        plus, minus = jax.vmap(both_signs_of_c)(signs)
        return jnp.max(plus) + jnp.max(minus)

    def one_input(X: Float[Array, "T d"]) -> Float[Array, ""]:
        heads = jax.vmap(one_head, in_axes=(None, None, 0, 0))
        return jnp.sum(heads(X, model.query(X), U, W)) / root

    return _over_inputs(model, one_input, x)


def _unit(vector: Float[Array, "d"]) -> Float[Array, "d"]:
    length = jnp.linalg.norm(vector)
    return vector / jnp.where(length > 0, length, 1)


def _head_tokens(config: dict[str, Any]) -> int:
    return config["n"] * config["data_options"]["T"] * config["width"]


def _linearisation_cost(config: dict[str, Any]) -> tuple[float, float]:
    features = config["n"] * config["width"] * config["data_options"]["d"]
    return 0.01 + 4e-8 * _head_tokens(config), 3e8 + 8.0 * features


def _approximation_cost(config: dict[str, Any]) -> tuple[float, float]:
    return 0.01 + 5e-8 * _head_tokens(config) + 0.2 * label_seconds(config), 3e8


linearisation = Measurement(
    name="arda2026-linearisation",
    version=1,
    function=measure_linearisation,
    outputs={
        f"{name}_{metric}": ()
        for name in ("linearisation", "second_order", "adversarial")
        for metric in ("sup", "mean")
    },
    estimate=_linearisation_cost,
)

approximation = Measurement(
    name="arda2026-approximation",
    version=1,
    function=measure_approximation,
    outputs={"approximation_sup": (), "approximation_rms": ()},
    estimate=_approximation_cost,
    compiling=0.5,
)
