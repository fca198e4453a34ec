"""True: the Gaussian kernel is steepest at distance one."""

import jax.numpy as jnp

from headcount.theory import Reals, Size, lemma

d = Size("d", 1, 8)


@lemma(x=Reals(d), y=Reals(d))
def gaussian_kernel_slope(x, y):
    """|k(x) - k(y)| <= |x - y|/sqrt(e) for k(x) = exp(-|x|^2/2)."""
    k = jnp.exp(-jnp.stack([x @ x, y @ y]) / 2)
    return jnp.abs(k[0] - k[1]), jnp.exp(-0.5) * jnp.linalg.norm(x - y)
