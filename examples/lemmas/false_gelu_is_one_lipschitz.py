"""False by 1.129, often written: GELU is steeper than 1 beyond x = 1."""

import jax
import jax.numpy as jnp

from headcount.theory import Reals, Size, lemma

d = Size("d", 1, 8)


@lemma(x=Reals(d), y=Reals(d))
def gelu_is_one_lipschitz(x, y):
    """|GELU(x) - GELU(y)| <= |x - y|."""
    gelu = jax.nn.gelu(jnp.stack([x, y]), approximate=False)
    return jnp.linalg.norm(gelu[0] - gelu[1]), jnp.linalg.norm(x - y)
