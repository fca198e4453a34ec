"""True: an orthogonal matrix moves a unit vector by at most 2, its opposite."""

import jax.numpy as jnp

from headcount.theory import Orthogonal, Size, Sphere, lemma

d = Size("d", 1, 5)


@lemma(Q=Orthogonal(d), x=Sphere(d))
def orthogonal_distance(Q, x):
    """|Q x - x| <= 2 for |x| = 1."""
    return jnp.linalg.norm(Q @ x - x), 2.0
