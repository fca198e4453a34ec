"""False by 1.25: the curvature of log-sum-exp reaches 1/2, not 2/5."""

import jax
import jax.numpy as jnp

from headcount.theory import Reals, Size, lemma

T = Size("T", 2, 8)


@lemma(z=Reals(T), u=Reals(T))
def logsumexp_curvature(z, u):
    """lse(z + u) <= lse(z) + <softmax(z), u> + |u|^2/5, both sides less the first two terms."""
    first = jax.nn.logsumexp(z) + jax.nn.softmax(z) @ u
    return jax.nn.logsumexp(z + u) - first, jnp.sum(u**2) / 5
