"""True: Pinsker's inequality, attained in the limit of equal attention weights."""

import jax
import jax.numpy as jnp

from headcount.theory import Reals, Size, lemma

T = Size("T", 2, 8)


@lemma(z=Reals(T), u=Reals(T))
def pinsker(z, u):
    """|p - q|_1^2 / 2 <= KL(p, q) for p = softmax(z) and q = softmax(z + u)."""
    p, q = jax.nn.log_softmax(z), jax.nn.log_softmax(z + u)
    return jnp.sum(jnp.abs(jnp.exp(p) - jnp.exp(q))) ** 2 / 2, jnp.exp(p) @ (p - q)
