"""Random sizes, projections onto balls, and norms that search can follow."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ..core import Array


@jax.custom_jvp
def safe_root(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """sqrt(max(x, 0)), with the derivative zero where x <= 0."""
    return jnp.sqrt(jnp.maximum(x, 0.0))


@safe_root.defjvp
def _safe_root_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    (x,), (direction,) = primals, tangents
    root = safe_root(x)
    slope = jnp.where(root > 0, 0.5 / jnp.where(root > 0, root, 1.0), 0.0)
    return root, slope * direction


def safe_norm(
    x: Float[Array, "..."], axis: int | tuple[int, ...] | None = -1
) -> Float[Array, "..."]:
    """The Euclidean norm with a finite gradient at zero."""
    return safe_root(jnp.sum(x * x, axis=axis))


def into_ball(x: Float[Array, "..."], radius: Any = 1.0, axes: int = 1) -> Float[Array, "..."]:
    """Radial projection of the last `axes` axes onto the ball."""
    over = tuple(range(-axes, 0))
    lengths = jnp.expand_dims(safe_norm(x, axis=over), over)
    return x / jnp.maximum(lengths / radius, 1.0)


def log_uniform(rng: np.random.Generator, low: float, high: float, *shape: int) -> Array:
    """Log-uniform between low and high: instances of every size, not only of size one."""
    return np.exp(rng.uniform(math.log(low), math.log(high), shape))
