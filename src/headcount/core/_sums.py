"""Sums whose rounding respects the models' symmetries."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Float

from ._precision import own_precision
from ._types import Array


@own_precision
def mirrored_sum(values: Float[Array, "m"]) -> Float[Array, ""]:
    """sum_i values_i, adding entry i and its mirror image i + m/2 first.

    A paired initialisation then gives exactly zero, not zero up to rounding.
    """
    m = values.shape[0]
    if m % 2:
        return jnp.sum(values)
    return jnp.sum(values[: m // 2] + values[m // 2 :])
