"""True: attention averages, so the values may move by at most their largest move."""

import jax
import jax.numpy as jnp

from headcount.theory import Reals, Size, Tokens, lemma

T, d = Size("T", 1, 6), Size("d", 1, 4)


@lemma(X=Tokens(T, d), V=Reals(T, d), W=Reals(T, d), q=Reals(d))
def attention_values(X, V, W, q):
    """|softmax(X q)^T (V - W)| <= max_i |V_i - W_i|."""
    weights = jax.nn.softmax(X @ q)
    return jnp.linalg.norm(weights @ (V - W)), jnp.max(jnp.sqrt(jnp.sum((V - W) ** 2, axis=1)))
