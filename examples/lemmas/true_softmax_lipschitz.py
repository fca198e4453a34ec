"""True: softmax is 1/2-Lipschitz; the worst case is two equal logits."""

import jax
import jax.numpy as jnp

from headcount.theory import Reals, Size, lemma

T = Size("T", 1, 8)


@lemma(z=Reals(T), u=Reals(T))
def softmax_lipschitz(z, u):
    """|softmax(z + u) - softmax(z)| <= |u|/2."""
    return jnp.linalg.norm(jax.nn.softmax(z + u) - jax.nn.softmax(z)), jnp.linalg.norm(u) / 2
