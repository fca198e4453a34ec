"""True: the inequality of Dunkl and Williams in a Hilbert space, for cosine similarities."""

import jax.numpy as jnp

from headcount.theory import Box, Size, Sphere, lemma

d = Size("d", 1, 6)


@lemma(x=Sphere(d), y=Sphere(d), a=Box(low=0.1, high=10), b=Box(low=0.1, high=10))
def cosine_attention(x, y, a, b):
    """|x/|x| - y/|y|| <= 2 |x - y|/(|x| + |y|), here for a x and b y with unit x and y."""
    return jnp.linalg.norm(x - y), 2 * jnp.linalg.norm(a * x - b * y) / (a + b)
