"""False by 1.25: two opposite tokens have covariance of norm 1, not 4/5."""

import jax
import jax.numpy as jnp

from headcount.theory import Reals, Size, Tokens, lemma

T, d = Size("T", 2, 6), Size("d", 1, 4)


@lemma(X=Tokens(T, d), v=Reals(d), u=Reals(d))
def pooled_attention_query(X, v, u):
    """|A(v + u) - A(v)| <= 4 |u| / 5 for A(v) = X^T softmax(X v)."""
    moved = X.T @ jax.nn.softmax(X @ (v + u)) - X.T @ jax.nn.softmax(X @ v)
    return jnp.linalg.norm(moved), 0.8 * jnp.linalg.norm(u)
