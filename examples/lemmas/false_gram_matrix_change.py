"""False by 1.11: two nearly equal unit rows change the Gram matrix by twice their distance."""

import jax.numpy as jnp

from headcount.theory import Ball, Size, lemma

n, d = Size("n", 1, 5), Size("d", 1, 5)


@lemma(X=Ball(n, d), Y=Ball(n, d))
def gram_matrix_change(X, Y):
    """|X X^T - Y Y^T|_F <= 1.8 |X - Y|_F for |X|_F, |Y|_F <= 1."""
    return jnp.linalg.norm(X @ X.T - Y @ Y.T), 1.8 * jnp.linalg.norm(X - Y)
