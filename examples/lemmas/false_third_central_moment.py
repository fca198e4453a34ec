"""False by 1.026: the third central moment of tokens in [-1, 1] exceeds 3/4."""

import jax.numpy as jnp

from headcount.theory import Box, Simplex, Size, lemma

T = Size("T", 2, 8)


@lemma(p=Simplex(T), x=Box(T))
def third_central_moment(p, x):
    """|sum_i p_i (x_i - mean)^3| <= 3/4 for |x_i| <= 1."""
    return jnp.abs(p @ (x - p @ x) ** 3), 0.75
