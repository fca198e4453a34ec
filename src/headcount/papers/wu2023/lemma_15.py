"""Lemma 15 of wu2023, the chain (38) to (41) without its asymptotics, and (66) of Lemma 16."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ...theory import Sides
from ...theory.slow import Arithmetic, dot, flat, norm
from ...theory.slow_spectrum import extreme_eigenvalues, outer_gram
from . import naive, naive_constants
from . import quantities as model
from .declare import claim
from .features import lowest_of_relu, lowest_of_relu_naively
from .instances import MODELS, ModelInstance
from .naive import Data


def _chain(i: ModelInstance, variant: str) -> Sides:
    beta = model.attention(i, i.theta)[:, 0]
    Phi = jnp.einsum("nt,ntd->nd", beta, i.X)
    sizes = jnp.linalg.norm(beta, axis=-1)
    lowest = jax.vmap(lambda x: jnp.linalg.eigvalsh(x @ x.T)[0])(i.X)
    similar = jnp.sqrt(jnp.sum(jnp.einsum("ntd,msd->nmts", i.X, i.X) ** 2, axis=(2, 3)))
    others = jnp.sum(similar * (1 - jnp.eye(len(sizes))), axis=1)
    bound = jnp.min(lowest * sizes**2 - sizes * others) / 4
    common = jnp.sum(i.X**2)
    return Sides(bound + common, lowest_of_relu(Phi) + common)


def _chain_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    theta, X = naive.theta_of(data), data["X"]
    beta = [naive.attention(num, one, theta, data["tau"][0])[0] for one in X]
    bounds = []
    for k, one in enumerate(X):
        size = norm(num, beta[k])
        others = [
            norm(num, [dot(x, y) for x in one for y in other])
            for j, other in enumerate(X)
            if j != k
        ]
        lowest = extreme_eigenvalues(num, outer_gram(one))[0]
        bounds.append(lowest * size**2 - size * num.total(others))
    common = num.total([x**2 for one in X for x in flat(one)])
    Phi = [naive.mixed(weights, one) for weights, one in zip(beta, X, strict=True)]
    return num.smallest(bounds) / 4 + common, lowest_of_relu_naively(num, Phi) + common


claim(
    "lemma-15",
    "The kernel of relu on attended tokens",
    "Lemma 15, (38)-(41)",
    "lambda_0 >= eta_V mu^2 min_k (lambda_min(X_k X_k^T)|beta_k|^2 - |beta_k| sum_{j != k} "
    "||X_k X_j^T||_F): the chain of the proof. Its last step, Theta(eta_V/d_s), needs nearly "
    "orthogonal samples, N <= d, and holds with a probability that is never shown to exceed 0.63. "
    "Here eta_V = 1; both sides carry sum_n |X_n|_F^2.",
    r"\lambda_0\ge\Theta(\eta_V/d_s)",
    sides=_chain,
    naive=_chain_naive,
    families=MODELS,
    forms={"corrected": ("the chain as an inequality between numbers", "E17")},
    errata=("E20",),
    where="App. C.3",
)


def _uniform(i: ModelInstance, variant: str) -> Sides:
    """beta_j - 1/d_s is the mean over k of (beta_j + beta_k) tanh((u_j - u_k)/2).

    Written as a difference it would be all rounding where the logits u are small.
    """
    s = model.sizes(i)
    M = s.tau0 * i.W_Q.T @ i.W_K
    u = i.X @ M @ jnp.swapaxes(i.X, -1, -2)
    beta = model.attention(i, i.theta)
    slopes = jnp.tanh((u[..., :, None] - u[..., None, :]) / 2)
    gaps = jnp.mean((beta[..., :, None] + beta[..., None, :]) * slopes, axis=-1)
    gap = jnp.linalg.norm(gaps, axis=-1)
    return Sides(jnp.max(gap), 2 * s.S * jnp.linalg.norm(jnp.ravel(M)))


def _uniform_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    theta, X = naive.theta_of(data), data["X"]
    even = num.number(1) / len(X[0])
    gaps = [
        norm(num, [p - even for p in row])
        for one in X
        for row in naive.attention(num, one, theta, data["tau"][0])
    ]
    columns_Q, columns_K = (list(zip(*W, strict=True)) for W in (theta.W_Q, theta.W_K))
    M = [data["tau"][0] * dot(a, b) for a in columns_Q for b in columns_K]
    S = len(X[0]) * naive_constants.C_x_of(num, X) ** 2
    return num.largest(gaps), 2 * S * norm(num, M)


claim(
    "eq-66",
    "Attention against uniform attention",
    "(66), Lemma 16",
    "|beta_i - 1/d_s| <= 2 C_x^2 d_s ||tau0 W_Q^T W_K||_F, by Lemma 7 from logits zero.",
    r"\|\beta_{1,n}-\beta^*_{1,n}\|_2\le2C_x^2d_s\|\tau_0W_Q^\top W_K\|_F",
    sides=_uniform,
    naive=_uniform_naive,
    families=MODELS,
    where="App. D.1",
)
