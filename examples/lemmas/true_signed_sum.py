"""True: a signed sum of T numbers is at most sqrt(T) times their length."""

import jax.numpy as jnp

from headcount.theory import Signs, Size, Sphere, lemma

T = Size("T", 1, 8)


@lemma(s=Signs(T), x=Sphere(T))
def signed_sum(s, x):
    """|sum_i s_i x_i| <= sqrt(T) for |x| = 1."""
    return jnp.abs(s @ x), jnp.sqrt(1.0 * len(x))
