"""True: the Gram matrix of points in a ball is 2-Lipschitz."""

import jax.numpy as jnp

from headcount.theory import Ball, Size, lemma

n, d = Size("n", 1, 5), Size("d", 1, 5)


@lemma(X=Ball(n, d), Y=Ball(n, d))
def gram_matrix_change(X, Y):
    """|X X^T - Y Y^T|_F <= 2 |X - Y|_F for |X|_F, |Y|_F <= 1."""
    return jnp.linalg.norm(X @ X.T - Y @ Y.T), 2 * jnp.linalg.norm(X - Y)
