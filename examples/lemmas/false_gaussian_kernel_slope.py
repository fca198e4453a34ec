"""False by 1.10: the slope reaches 1/sqrt(e) = 0.607."""

import jax.numpy as jnp

from headcount.theory import Reals, Size, lemma

d = Size("d", 1, 8)


@lemma(x=Reals(d), y=Reals(d))
def gaussian_kernel_slope(x, y):
    """|k(x) - k(y)| <= 0.55 |x - y| for k(x) = exp(-|x|^2/2)."""
    k = jnp.exp(-jnp.stack([x @ x, y @ y]) / 2)
    return jnp.abs(k[0] - k[1]), 0.55 * jnp.linalg.norm(x - y)
