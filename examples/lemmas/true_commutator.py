"""True: the inequality of Boettcher and Wenzel, attained by two 2 x 2 matrices."""

import jax.numpy as jnp

from headcount.theory import Reals, Size, lemma

d = Size("d", 1, 5)


@lemma(A=Reals(d, d), B=Reals(d, d))
def commutator(A, B):
    """|A B - B A|_F <= sqrt(2) |A|_F |B|_F."""
    sizes = jnp.linalg.norm(A) * jnp.linalg.norm(B)
    return jnp.linalg.norm(A @ B - B @ A), jnp.sqrt(2.0) * sizes
