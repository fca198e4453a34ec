"""Lemmas 8 and 11 of wu2023: the size of softmax's output, and its Jacobian."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np

from ....theory import Sides
from ....theory.slow import dot, norm, softmax
from ..constants import state
from ..records import Softmax


def _ends() -> tuple[Softmax, ...]:
    """Equal weights, and nearly all weight on one token."""
    signs = np.array([1.0, -1.0])
    return Softmax(u=np.zeros(2), v=signs), Softmax(u=40.0 * signs, v=signs)


of_softmax = functools.partial(state.claim, on=Softmax, proved="App. C.1")


@of_softmax(
    "lemma-8-lower",
    "Softmax output from below",
    lower=True,
    where="Lemma 8",
    says=r"1/\sqrt{d_s}\le\|\mathrm{softmax}(u)\|_2",
    forms={"printed": ("attained by equal weights; the proof's AM-GM is QM-AM", "E25")},
    tight=_ends,
    no_rival="a norm is known to be positive, and no more",
)
def lemma_8_lower(u):
    """1/sqrt(d_s) <= |softmax(u)|: the quadratic mean of the weights is at least their mean."""
    return 1 / u.shape[0] ** 0.5, jnp.linalg.norm(jax.nn.softmax(u))


@lemma_8_lower.twin
def _(num, u):
    return 1 / num.sqrt(num.number(len(u))), norm(num, softmax(num, u))


@of_softmax(
    "lemma-8-upper",
    "Softmax output from above",
    where="Lemma 8",
    says=r"\|\mathrm{softmax}(u)\|_2\le1",
    forms="approached as one weight tends to 1",
    right=1.0,
    bound=None,
    tight=_ends,
    no_rival="1 is what is known of a vector of weights",
)
def lemma_8_upper(u):
    """|softmax(u)| <= 1."""
    return jnp.linalg.norm(jax.nn.softmax(u))


@lemma_8_upper.twin
def _(num, u):
    return norm(num, softmax(num, u))


@state.identity(
    "lemma-11",
    "The Jacobian of softmax",
    where="Lemma 11",
    proved="App. C.1",
    on=Softmax,
    says=r"\partial v/\partial u=\mathrm{diag}(v)-vv^\top",
    forms={"printed": ("the proof prints a sum where a product is meant", "E25")},
)
def lemma_11(u):
    """dv/du = diag(v) - v v^T for v = softmax(u). Left: derivatives; right: the formula."""
    v = jax.nn.softmax(u)
    return Sides(jax.jacfwd(jax.nn.softmax)(u), jnp.diag(v) - jnp.outer(v, v), scale=1.0)


@of_softmax(
    "lemma-11-size",
    "Size of the Jacobian of softmax",
    where="Lemmas 7 and 12",
    says=r"\|(\mathrm{diag}(p)-pp^\top)v\|_2\le2\|v\|_2",
    forms={
        "printed": "constant 2",
        "sharp": "constant 1/2, attained by two equal weights: the largest eigenvalue of a "
        "weighted covariance of indicator vectors",
    },
    tight=_ends,
    no_rival="the norm of a matrix is known in no other way",
)
def lemma_11_size(u, v, form):
    """|(diag(p) - p p^T) v| <= 2 |v|, as the lemmas use it."""
    p = jax.nn.softmax(u)
    constant = 2.0 if form == "printed" else 0.5
    return jnp.linalg.norm(p * (v - p @ v)), constant * jnp.linalg.norm(v)


@lemma_11_size.twin
def _(num, u, v, form):
    p = softmax(num, u)
    mean = dot(p, v)
    image = [weight * (x - mean) for weight, x in zip(p, v, strict=True)]
    return norm(num, image), norm(num, v) * 2 if form == "printed" else norm(num, v) / 2
