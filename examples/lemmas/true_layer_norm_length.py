"""True: a normalised vector has length at most sqrt(d), whatever epsilon is."""

import jax.numpy as jnp

from headcount.theory import Reals, Size, lemma

d = Size("d", 1, 8)


@lemma(x=Reals(d))
def layer_norm_length(x):
    """|LN(x)| <= sqrt(d) with epsilon = 2^-17."""
    centred = x - jnp.mean(x)
    normalised = centred / jnp.sqrt(jnp.mean(centred**2) + 2.0**-17)
    return jnp.sqrt(jnp.sum(normalised**2)), jnp.sqrt(1.0 * len(x))
