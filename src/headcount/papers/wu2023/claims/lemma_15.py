"""Lemma 15 of wu2023, the chain (38) to (41) without its asymptotics, and (66) of Lemma 16."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp

from ....theory.slow import dot, flat, norm
from ....theory.slow_spectrum import outer_gram, smallest_eigenvalue
from .. import quantities, twins
from ..constants import state
from ..records import Network
from .relu_kernels import NOTHING, lowest_of_relu, slow_lowest_of_relu

on_networks = functools.partial(state.claim, on=Network)


@on_networks(
    "lemma-15",
    "The kernel of relu on attended tokens",
    lower=True,
    where="Lemma 15, (38)-(41)",
    proved="App. C.3",
    says=r"\lambda_0\ge\Theta(\eta_V/d_s)",
    forms={"corrected": ("the chain as an inequality between numbers", "E17")},
    notes=("E20",),
    no_rival=NOTHING,
)
def lemma_15(network, X):
    """lambda_0 >= eta_V mu^2 min_k (lambda_min(X_k X_k^T)|beta_k|^2 - |beta_k| sum_{j != k}
    ||X_k X_j^T||_F): the chain of the proof. Its last step, Theta(eta_V/d_s), needs nearly
    orthogonal samples, N <= d, and holds with a probability that is never shown to exceed 0.63.
    Here eta_V = 1; both sides carry sum_n |X_n|_F^2."""
    beta = quantities.attention(network, network.theta)[:, 0]
    Phi = jnp.einsum("nt,ntd->nd", beta, X)
    sizes = jnp.linalg.norm(beta, axis=-1)
    lowest = jax.vmap(lambda x: jnp.linalg.eigvalsh(x @ x.T)[0])(X)
    similar = jnp.sqrt(jnp.sum(jnp.einsum("ntd,msd->nmts", X, X) ** 2, axis=(2, 3)))
    others = jnp.sum(similar * (1 - jnp.eye(len(sizes))), axis=1)
    bound = jnp.min(lowest * sizes**2 - sizes * others) / 4
    common = jnp.sum(X**2)
    return bound + common, lowest_of_relu(Phi) + common


@lemma_15.twin
def _(num, network, X):
    theta = twins.theta_of(network)
    beta = [twins.attention(num, one, theta, network["tau"][0])[0] for one in X]
    bounds = []
    for k, one in enumerate(X):
        size, rest = norm(num, beta[k]), [other for j, other in enumerate(X) if j != k]
        others = [norm(num, [dot(x, y) for x in one for y in other]) for other in rest]
        lowest = smallest_eigenvalue(num, outer_gram(one))
        bounds.append(lowest * size**2 - size * num.total(others))
    common = num.total([x**2 for one in X for x in flat(one)])
    Phi = [twins.mixed(weights, one) for weights, one in zip(beta, X, strict=True)]
    return num.smallest(bounds) / 4 + common, slow_lowest_of_relu(num, Phi) + common


@on_networks(
    "eq-66",
    "Attention against uniform attention",
    where="(66), Lemma 16",
    proved="App. D.2",
    trivial=lambda k: (1 - 1 / k.s.d_s) ** 0.5,
    says=r"\|\beta_{1,n}-\beta^*_{1,n}\|_2\le2C_x^2d_s\|\tau_0W_Q^\top W_K\|_F",
)
def eq_66(network, X, sizes):
    """|beta_i - 1/d_s| <= 2 C_x^2 d_s ||tau0 W_Q^T W_K||_F, by Lemma 7 from logits zero."""
    # beta_j - 1/d_s is the mean over k of (beta_j + beta_k) tanh((u_j - u_k)/2) for logits u: as
    # a difference it would be all rounding where they are small.
    M = sizes.tau0 * network.W_Q.T @ network.W_K
    u, beta = X @ M @ jnp.swapaxes(X, -1, -2), quantities.attention(network, network.theta)
    slopes = jnp.tanh((u[..., :, None] - u[..., None, :]) / 2)
    gaps = jnp.mean((beta[..., :, None] + beta[..., None, :]) * slopes, axis=-1)
    longest = jnp.max(jnp.linalg.norm(gaps, axis=-1))
    return longest, 2 * sizes.S * jnp.linalg.norm(jnp.ravel(M))


@eq_66.twin
def _(num, network, X, k):
    theta, tau0 = twins.theta_of(network), network["tau"][0]
    even = num.number(1) / len(X[0])
    rows = [row for one in X for row in twins.attention(num, one, theta, tau0)]
    gaps = [norm(num, [p - even for p in row]) for row in rows]
    columns_Q, columns_K = (list(zip(*W, strict=True)) for W in (theta.W_Q, theta.W_K))
    M = [tau0 * dot(a, b) for a in columns_Q for b in columns_K]
    return num.largest(gaps), 2 * k.S * norm(num, M)
