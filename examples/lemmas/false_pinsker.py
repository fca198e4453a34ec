"""False by 1.18: Pinsker's constant is 1/2, not 10/17."""

import jax
import jax.numpy as jnp

from headcount.theory import Reals, Size, lemma

T = Size("T", 2, 8)


@lemma(z=Reals(T), u=Reals(T))
def pinsker(z, u):
    """|p - q|_1^2 / 1.7 <= KL(p, q) for p = softmax(z) and q = softmax(z + u)."""
    p, q = jax.nn.log_softmax(z), jax.nn.log_softmax(z + u)
    return jnp.sum(jnp.abs(jnp.exp(p) - jnp.exp(q))) ** 2 / 1.7, jnp.exp(p) @ (p - q)
