"""True: 4/(3 sqrt 3), the supremum behind erratum E9 of arda2026, attained by two tokens."""

import jax.numpy as jnp

from headcount.theory import Box, Simplex, Size, lemma

T = Size("T", 2, 8)


@lemma(p=Simplex(T), x=Box(T))
def third_central_moment(p, x):
    """|sum_i p_i (x_i - mean)^3| <= 4/(3 sqrt 3) for |x_i| <= 1."""
    return jnp.abs(p @ (x - p @ x) ** 3), 4 / (3 * jnp.sqrt(3.0))
