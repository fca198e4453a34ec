"""False by 1.09: the constant of the commutator is sqrt(2), not 1.3."""

import jax.numpy as jnp

from headcount.theory import Reals, Size, lemma

d = Size("d", 1, 5)


@lemma(A=Reals(d, d), B=Reals(d, d))
def commutator(A, B):
    """|A B - B A|_F <= 1.3 |A|_F |B|_F."""
    sizes = jnp.linalg.norm(A) * jnp.linalg.norm(B)
    return jnp.linalg.norm(A @ B - B @ A), 1.3 * sizes
