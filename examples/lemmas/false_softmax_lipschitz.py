"""False by 1.11: the constant is 1/2, not 0.45."""

import jax
import jax.numpy as jnp

from headcount.theory import Reals, Size, lemma

T = Size("T", 1, 8)


@lemma(z=Reals(T), u=Reals(T))
def softmax_lipschitz(z, u):
    """|softmax(z + u) - softmax(z)| <= 0.45 |u|."""
    return jnp.linalg.norm(jax.nn.softmax(z + u) - jax.nn.softmax(z)), 0.45 * jnp.linalg.norm(u)
