"""Assumptions 1 to 4 of wu2023, as what can be measured and what they are used for.

`wu2023.GaussianRegression.measure` reports the constants C_x, C_lambda, the tail and C_Sigma of a
data set; here are the inequalities through which they enter.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ...core import Array
from ...theory import Sides, instance_class
from ...theory.domain import MOST_ENTRIES, Domain
from ...theory.families import shaped
from ...theory.slow import Arithmetic, dot, flat, norm, softmax
from ...theory.slow_spectrum import extreme_eigenvalues, outer_gram
from . import naive_constants
from .declare import claim, false, identity
from .instances import LARGEST
from .naive import Data, mixed


@instance_class
@dataclass(frozen=True)
class DataInstance(Domain):
    """Samples X_n, and logits whose softmax weighs the tokens."""

    X: Float[Array, "n T d"]
    u: Float[Array, "T"]

    ranges = (("n", 2, MOST_ENTRIES),)  # Assumption 3 is about pairs


def _draw(rng: np.random.Generator, count: int, *, n: int, T: int, d: int) -> DataInstance:
    scale = np.exp(rng.uniform(-2, 2, (count, n, T, 1)))
    return DataInstance(scale * rng.normal(size=(count, n, T, d)), rng.normal(size=(count, T)))


def _project(i: DataInstance) -> DataInstance:
    return replace(i, X=jnp.clip(i.X, -LARGEST, LARGEST), u=jnp.clip(i.u, -30.0, 30.0))


FAMILIES = tuple(
    shaped("data", _draw, _project, n=n, T=T, d=d) for n, T, d in ((2, 2, 3), (3, 3, 2), (2, 2, 1))
)


def _tokens(i: DataInstance, variant: str) -> Sides:
    T = i.X.shape[1]
    C_x = jnp.max(jnp.sqrt(jnp.sum(i.X**2, axis=(1, 2)))) / T**0.5
    longest = jnp.max(jnp.linalg.norm(i.X, axis=-1))
    return Sides(longest, C_x * (1.0 if variant == "printed" else T**0.5), {"C_x": C_x})


def _tokens_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    X = data["X"]
    C_x = naive_constants.C_x_of(num, X)
    longest = num.largest([norm(num, x) for one in X for x in one])
    return longest, C_x if variant == "printed" else C_x * num.sqrt(num.number(len(X[0])))


on_data = functools.partial(claim, families=FAMILIES)

on_data(
    "assumption-1",
    "Assumption 1 and the size of a token",
    "Assumption 1, (21)",
    "||X||_F <= sqrt(d_s) C_x; a token then has |x_i| <= C_x, as (21) uses it.",
    r"\|X\|_F\le\sqrt{d_s}C_x",
    sides=_tokens,
    naive=_tokens_naive,
    targets=lambda: (DataInstance(np.array([[[2.0], [0.0]], [[1.0], [1.0]]]), np.zeros(2)),),
    forms={
        "printed": false("C_x: one token may carry all of the norm", "E5"),
        "corrected": ("sqrt(d_s) C_x", "E5"),
    },
    where="Sec. 4.1",
)


def _row_rank(i: DataInstance, variant: str) -> Sides:
    beta = jax.nn.softmax(i.u)
    lowest = jax.vmap(lambda x: jnp.linalg.eigvalsh(x @ x.T)[0])(i.X)
    common = jnp.sum(i.X**2, axis=(1, 2))
    return Sides(lowest * (beta @ beta) + common, jnp.sum((beta @ i.X) ** 2, axis=-1) + common)


def _row_rank_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    beta = softmax(num, data["u"])
    left, right = [], []
    for X in data["X"]:
        common = num.total([x**2 for x in flat(X)])
        left.append(extreme_eigenvalues(num, outer_gram(X))[0] * dot(beta, beta) + common)
        right.append(num.total([x**2 for x in mixed(beta, X)]) + common)
    return left, right


on_data(
    "assumption-2",
    "Full row rank and the attended token",
    "Assumption 2, (41)",
    "lambda_min(X X^T) |beta|^2 <= |X^T beta|^2: with linearly independent tokens (d_s <= d) no "
    "attention can make the attended token vanish. Both sides carry |X|_F^2.",
    r"\lambda_{\min}(XX^\top)\|\beta\|_2^2\le\|X^\top\beta\|_2^2",
    sides=_row_rank,
    naive=_row_rank_naive,
    where="Sec. 4.2",
)


def _similarity(i: DataInstance, variant: str) -> Sides:
    first, second = i.X[0], i.X[1]
    inner = jnp.sum((first.T @ first) * (second.T @ second))
    return Sides(inner, jnp.sum((first @ second.T) ** 2))


def _similarity_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    first, second = data["X"][0], data["X"][1]
    grams = [flat(outer_gram(list(zip(*X, strict=True)))) for X in (first, second)]
    return [dot(*grams)], [num.total([dot(x, y) ** 2 for x in first for y in second])]


identity(
    "assumption-3",
    "The similarity of two samples",
    "Assumption 3",
    "<X^T X, X'^T X'> = ||X X'^T||_F^2, which is never negative: the absolute value in Assumption "
    "3 is not needed.",
    r"\langle X_n^\top X_n,X_{n'}^\top X_{n'}\rangle=\|X_nX_{n'}^\top\|_F^2",
    sides=_similarity,
    naive=_similarity_naive,
    families=FAMILIES,
    where="Sec. 4.2",
)


def _covariance(i: DataInstance, variant: str) -> Sides:
    n, T = i.X.shape[0], i.X.shape[1]
    total, mean = jnp.sum(i.X, axis=1), jnp.mean(i.X, axis=1)
    return Sides(total.T @ total / n, T**2 * mean.T @ mean / n, scale=jnp.mean(total**2))


def _covariance_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    X, T = data["X"], len(data["X"][0])
    totals = [[num.total(list(column)) for column in zip(*one, strict=True)] for one in X]
    means = [[x / T for x in row] for row in totals]
    left, right = (flat(outer_gram(list(zip(*rows, strict=True)))) for rows in (totals, means))
    return [x / len(X) for x in left], [T * T * x / len(X) for x in right]


identity(
    "assumption-4",
    "Second moments of the summed and of the mean token",
    "Assumption 4, Lemma 17",
    "E[x x^T] of the token sum is d_s^2 times that of the token mean, which Lemma 17 uses.",
    r"E[xx^\top]=d_s^2E[\bar x\bar x^\top]",
    sides=_covariance,
    naive=_covariance_naive,
    families=FAMILIES,
    forms={"printed": ("x is the sum in Assumption 4, one token in Lemma 17", "E19")},
    where="App. D.2",
)
