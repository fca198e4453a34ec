"""False by 1.11: opposite vectors need the constant 2 of Dunkl and Williams."""

import jax.numpy as jnp

from headcount.theory import Box, Size, Sphere, lemma

d = Size("d", 1, 6)


@lemma(x=Sphere(d), y=Sphere(d), a=Box(low=0.1, high=10), b=Box(low=0.1, high=10))
def cosine_attention(x, y, a, b):
    """|x/|x| - y/|y|| <= 1.8 |x - y|/(|x| + |y|), here for a x and b y with unit x and y."""
    return jnp.linalg.norm(x - y), 1.8 * jnp.linalg.norm(a * x - b * y) / (a + b)
