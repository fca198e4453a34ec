"""False by sqrt(2), erratum E9 of arda2026: an induced norm used as a Frobenius norm."""

import jax.numpy as jnp

from headcount.theory import Reals, lemma


@lemma(A=Reals(2, 2))
def induced_is_frobenius(A):
    """|A|_F <= |A|_2 for a 2 x 2 matrix."""
    return jnp.linalg.norm(A), jnp.linalg.norm(A, 2)
