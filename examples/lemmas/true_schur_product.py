"""True: Schur's bound on the entry-wise product of a kernel matrix and another."""

import jax.numpy as jnp

from headcount.theory import PositiveSemidefinite, Size, lemma

n = Size("n", 1, 5)


@lemma(A=PositiveSemidefinite(n), B=PositiveSemidefinite(n))
def schur_product(A, B):
    """|A o B|_2 <= max_i A_ii |B|_2 for positive semidefinite A and B."""
    return jnp.linalg.norm(A * B, 2), jnp.max(jnp.diag(A)) * jnp.linalg.norm(B, 2)
