"""False by sqrt(d/(d - 1)), 1.41 for d = 2: the unbiased variance is not the one in use."""

import jax.numpy as jnp

from headcount.theory import Reals, Size, lemma

d = Size("d", 2, 8)


@lemma(x=Reals(d))
def layer_norm_length(x):
    """|LN(x)| <= sqrt(d - 1) with epsilon = 2^-17."""
    centred = x - jnp.mean(x)
    normalised = centred / jnp.sqrt(jnp.mean(centred**2) + 2.0**-17)
    return jnp.sqrt(jnp.sum(normalised**2)), jnp.sqrt(len(x) - 1.0)
