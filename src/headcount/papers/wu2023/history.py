"""Gradient descent on the encoder with what an audit writes down at every step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from ...core import Array
from ...models import EncoderParams
from . import model
from .instances import ModelInstance

_SEGMENT = 20
"""Steps between two looks at the clock."""

Progress = Callable[[int, int, float], None]


@dataclass(frozen=True)
class History:
    """One run: values at theta^0 .. theta^t, sign changes between neighbours, some iterates."""

    loss: Float[Array, "points"]
    alpha: Float[Array, "points"]
    """sigma_min(F_pre)."""
    norms: Float[Array, "points 4"]
    flips: Int[Array, "steps"]
    """Units, counted per sample and token, that change sign from one step to the next."""
    units: int
    pairs: tuple[tuple[EncoderParams, EncoderParams], ...]
    """The first and the last two neighbouring iterates."""
    last: EncoderParams
    top_of_kernel: float
    """lambda_max of the tangent kernel at the start."""
    largest_feature: float
    """max_n |f_pre(X_n)| at the start."""


def trace(i: ModelInstance, gamma: float, steps: int, progress: Progress | None = None) -> History:
    """Descend from theta^0 on (1/2)|f - y|^2 with step size gamma."""
    lengths = [1, *_middle(steps - 2), 1] if steps > 1 else [1]
    theta = EncoderParams(*(jnp.asarray(block) for block in i.theta))
    parts: list[dict[str, Any]] = []
    ends = [theta]
    run = jax.jit(_segment, static_argnums=3)
    done = 0
    for count in lengths:
        theta, seen = run(i, theta, gamma, count)
        parts.append(jax.device_get(seen))
        ends.append(theta)
        done += count
        if progress is not None:
            progress(done, steps, float(seen["loss"][-1]))
    final = jax.device_get(jax.jit(_observed)(i, theta))
    seen_all = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    kept = [EncoderParams(*(np.asarray(block) for block in end)) for end in ends]
    first = jax.jit(_sizes_at_start)(i)
    return History(
        loss=np.append(seen_all["loss"], final["loss"]),
        alpha=np.append(seen_all["alpha"], final["alpha"]),
        norms=np.concatenate([seen_all["norms"], final["norms"][None]]),
        flips=seen_all["flips"],
        units=int(np.prod(i.X.shape[:2])) * len(i.w_O),
        pairs=((kept[0], kept[1]), (kept[-2], kept[-1])),
        last=kept[-1],
        top_of_kernel=float(first[0]),
        largest_feature=float(first[1]),
    )


def _middle(steps: int) -> list[int]:
    whole, rest = divmod(steps, _SEGMENT)
    return [_SEGMENT] * whole + ([rest] if rest else [])


def _observed(i: ModelInstance, theta: EncoderParams) -> dict[str, Any]:
    F = model.features(i, theta)
    residual = F @ theta.w_O - i.y
    lowest = jnp.linalg.eigvalsh(F @ F.T)[0] if F.shape[0] <= F.shape[1] else 0.0
    return {
        "loss": jnp.sum(residual**2) / 2,
        "alpha": jnp.sqrt(jnp.maximum(lowest, 0.0)),
        "norms": jnp.stack(list(model.norms(theta))),
    }


def _segment(
    i: ModelInstance, theta: EncoderParams, gamma: Any, count: int
) -> tuple[EncoderParams, dict[str, Any]]:
    def step(now: EncoderParams, _: None) -> tuple[EncoderParams, dict[str, Any]]:
        slope = jax.grad(lambda t: model.loss(i, t))(now)
        after = EncoderParams(*(a - gamma * g for a, g in zip(now, slope, strict=True)))
        changed = (model.hidden(i, now) > 0) != (model.hidden(i, after) > 0)
        return after, {**_observed(i, now), "flips": jnp.sum(changed)}

    return jax.lax.scan(step, theta, None, length=count)


def _sizes_at_start(i: ModelInstance) -> tuple[Any, Any]:
    F, J = model.features(i, i.theta), model.jacobian(i, i.theta)
    return jnp.linalg.eigvalsh(J @ J.T)[-1], jnp.max(jnp.linalg.norm(F, axis=1))
