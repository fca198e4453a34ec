"""False by 1.36, erratum E4 of arda2026: |Z| <= 1 gives a psi_2 norm of 1.2011, not 1."""

import jax.numpy as jnp

from headcount.theory import Box, Simplex, Size, lemma

k = Size("k", 1, 6)


@lemma(p=Simplex(k), z=Box(k))
def psi_2_of_bounded(p, z):
    """E exp(Z^2) <= 2 for a variable with values z_i in [-1, 1] and probabilities p_i."""
    return p @ jnp.exp(z**2), 2.0
