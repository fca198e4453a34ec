"""False by 1.128, erratum E6 of arda2026: the factor sigma_1 = 2/sqrt(pi) of erf is missing."""

import jax
import jax.numpy as jnp

from headcount.theory import Reals, Size, Tokens, lemma

T, d = Size("T", 1, 4), Size("d", 1, 4)


@lemma(X=Tokens(T, d), U=Reals(d), V=Reals(d))
def erf_is_one_lipschitz(X, U, V):
    """|erf(U.a) - erf(V.a)| <= |U - V| for the mean token a of tokens in the unit ball."""
    a = jnp.mean(X, axis=0)
    return jnp.abs(jax.lax.erf(U @ a) - jax.lax.erf(V @ a)), jnp.linalg.norm(U - V)
