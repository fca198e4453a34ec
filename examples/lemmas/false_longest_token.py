"""False by sqrt(2), erratum E5 of wu2023: one token may carry all of |X|_F."""

import jax.numpy as jnp

from headcount.theory import Reals, Size, lemma

d = Size("d", 1, 6)


@lemma(X=Reals(2, d))
def longest_token(X):
    """max_i |x_i| <= |X|_F / sqrt(2) for two tokens."""
    longest = jnp.max(jnp.sqrt(jnp.sum(X**2, axis=1)))
    return longest, jnp.linalg.norm(X) / jnp.sqrt(2.0)
