"""Assumptions 1 to 4 of wu2023, as what can be measured and what they are used for.

`wu2023.GaussianRegression.measure` reports the constants C_x, C_lambda, the tail and C_Sigma of a
data set; here are the inequalities through which they enter.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from ....theory import Sides, false
from ....theory.slow import dot, flat, norm, softmax
from ....theory.slow_spectrum import extreme_eigenvalues, outer_gram
from ..constants import state
from ..records import Samples
from ..twins import C_x_of, mixed


@state.claim(
    "assumption-1",
    "Assumption 1 and the size of a token",
    where="Assumption 1, (21)",
    proved="Sec. 4.1",
    on=Samples,
    says=r"\|X\|_F\le\sqrt{d_s}C_x",
    forms={
        "printed": false("C_x: one token may carry all of the norm", "E5"),
        "corrected": ("sqrt(d_s) C_x", "E5"),
    },
    tight=lambda: (Samples(X=np.array([[[2.0], [0.0]], [[1.0], [1.0]]]), u=np.zeros(2)),),
    no_rival="a token is no longer than its sample, which is the corrected form",
)
def assumption_1(X, form):
    """||X||_F <= sqrt(d_s) C_x; a token then has |x_i| <= C_x, as (21) uses it."""
    T = X.shape[1]
    C_x = jnp.max(jnp.sqrt(jnp.sum(X**2, axis=(1, 2)))) / T**0.5
    longest = jnp.max(jnp.linalg.norm(X, axis=-1))
    return Sides(longest, C_x * (1.0 if form == "printed" else T**0.5), {"C_x": C_x})


@assumption_1.twin
def _(num, X, form):
    C_x, longest = C_x_of(num, X), num.largest([norm(num, x) for one in X for x in one])
    return longest, C_x if form == "printed" else C_x * num.sqrt(num.number(len(X[0])))


@state.claim(
    "assumption-2",
    "Full row rank and the attended token",
    lower=True,
    where="Assumption 2, (41)",
    proved="Sec. 4.2",
    on=Samples,
    says=r"\lambda_{\min}(XX^\top)\|\beta\|_2^2\le\|X^\top\beta\|_2^2",
    no_rival="a norm is known to be at least zero, and no more",
)
def assumption_2(X, u):
    """lambda_min(X X^T) |beta|^2 <= |X^T beta|^2: with linearly independent tokens (d_s <= d) no
    attention can make the attended token vanish. Both sides carry |X|_F^2."""
    beta, common = jax.nn.softmax(u), jnp.sum(X**2, axis=(1, 2))
    lowest = jax.vmap(lambda x: jnp.linalg.eigvalsh(x @ x.T)[0])(X)
    return lowest * (beta @ beta) + common, jnp.sum((beta @ X) ** 2, axis=-1) + common


@assumption_2.twin
def _(num, X, u):
    beta = softmax(num, u)
    left, right = [], []
    for one in X:
        common = num.total([x**2 for x in flat(one)])
        left.append(extreme_eigenvalues(num, outer_gram(one))[0] * dot(beta, beta) + common)
        right.append(num.total([x**2 for x in mixed(beta, one)]) + common)
    return left, right


@state.identity(
    "assumption-3",
    "The similarity of two samples",
    where="Assumption 3",
    proved="Sec. 4.2",
    on=Samples,
    says=r"\langle X_n^\top X_n,X_{n'}^\top X_{n'}\rangle=\|X_nX_{n'}^\top\|_F^2",
    forms={"equality": "what the inner product is; the assumption itself is about a tail"},
)
def assumption_3(X):
    """<X^T X, X'^T X'> = ||X X'^T||_F^2, which is never negative: the absolute value in Assumption
    3 is not needed."""
    first, second = X[0], X[1]
    inner = jnp.sum((first.T @ first) * (second.T @ second))
    return inner, jnp.sum((first @ second.T) ** 2)


@state.identity(
    "assumption-4",
    "Second moments of the summed and of the mean token",
    where="Assumption 4, Lemma 17",
    proved="App. D.2",
    on=Samples,
    says=r"E[xx^\top]=d_s^2E[\bar x\bar x^\top]",
    forms={"equality": ("x is the sum in Assumption 4, one token in Lemma 17", "E19")},
)
def assumption_4(X):
    """E[x x^T] of the token sum is d_s^2 times that of the token mean, which Lemma 17 uses."""
    n, T = X.shape[:2]
    total, mean = jnp.sum(X, axis=1), jnp.mean(X, axis=1)
    return Sides(total.T @ total / n, T**2 * mean.T @ mean / n, scale=jnp.mean(total**2))
