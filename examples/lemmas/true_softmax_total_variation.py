"""True: from the maximum norm to the sum norm, softmax is 1-Lipschitz."""

import jax
import jax.numpy as jnp

from headcount.theory import Reals, Size, lemma

T = Size("T", 1, 8)


@lemma(z=Reals(T), u=Reals(T))
def softmax_total_variation(z, u):
    """|softmax(z + u) - softmax(z)|_1 <= max |u|."""
    moved = jax.nn.softmax(z + u) - jax.nn.softmax(z)
    return jnp.sum(jnp.abs(moved)), jnp.max(jnp.abs(u))
