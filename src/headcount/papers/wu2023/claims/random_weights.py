"""Lemmas 4 to 6 and 20 and Eq. (67) of wu2023: what random weights do, by frequency."""

from __future__ import annotations

import functools
import math

import jax.numpy as jnp
import numpy as np

from ....theory.domain import case_problem
from ....theory.slow import dot, norm
from ....theory.slow_spectrum import gram, operator_norm, smallest_eigenvalue
from .. import quantities
from ..constants import state
from ..records import GaussianMatrix, InitialWeights, Products

on_weights = functools.partial(
    state.probability,
    proved="App. C.1",
    no_rival="a Gaussian has no bound of its own",
)


def matrices(case, rng, count):
    """Matrices of independent N(0, 1) entries."""
    W = rng.normal(size=(count, case["d1"], case["d2"]))
    return GaussianMatrix(W=W, zeta=np.full(count, float(case["zeta"])))


on_matrices = functools.partial(
    on_weights,
    where="Lemma 5",
    on=GaussianMatrix,
    cases=({"d1": 20, "d2": 5, "zeta": 1.5}, {"d1": 60, "d2": 1, "zeta": 2.0}),
    draw=matrices,
    delta=lambda case: min(2 * math.exp(-(case["zeta"] ** 2) / 2), 0.999),
    problem=functools.partial(
        case_problem, whole={"d1": 1000, "d2": 1000}, positive=("zeta",), fractions=()
    ),
)


@on_matrices(
    "lemma-5-upper",
    "Largest singular value of a Gaussian matrix",
    says=r"\sigma_{\max}(W)\le\sqrt{d_1}\pm\sqrt{d_2}+\zeta",
)
def lemma_5_upper(W, zeta):
    """sigma_max(W) <= sqrt d1 + sqrt d2 + zeta with probability at least 1 - 2 exp(-zeta^2/2)."""
    d1, d2 = W.shape
    return quantities.spectral(W), d1**0.5 + d2**0.5 + zeta


@lemma_5_upper.twin
def _(num, W, zeta):
    d1, d2 = num.number(len(W)), num.number(len(W[0]))
    return operator_norm(num, W), num.sqrt(d1) + num.sqrt(d2) + zeta


@on_matrices(
    "lemma-5-lower",
    "Smallest singular value of a Gaussian matrix",
    lower=True,
    says=r"\sigma_{\min}(W)\ge\sqrt{d_1}\pm\sqrt{d_2}-\zeta",
)
def lemma_5_lower(W, zeta):
    """sigma_min(W) >= sqrt d1 - sqrt d2 - zeta with probability at least 1 - 2 exp(-zeta^2/2)."""
    d1, d2 = W.shape
    return d1**0.5 - d2**0.5 - zeta, quantities.smallest_singular(W)


@lemma_5_lower.twin
def _(num, W, zeta):
    d1, d2 = num.number(len(W)), num.number(len(W[0]))
    return num.sqrt(d1) - num.sqrt(d2) - zeta, num.root(smallest_eigenvalue(num, gram(W)))


def weights(case, rng, count):
    """The shift of length R is along the first column: the worst place in the ball."""
    W = rng.normal(size=(count, case["d_m"], case["d"]))
    first = W[:, :, 0]
    shift = case["R"] * first / np.linalg.norm(first, axis=1, keepdims=True)
    return InitialWeights(W=W, shift=shift)


def weights_problem(case):
    """Why a case makes no sense."""
    reason = case_problem(case, whole={"d_m": 1000, "d": 100}, positive=("R",), fractions=())
    return reason or (None if case["d_m"] > case["d"] else "d_m must exceed d")


on_starts = functools.partial(
    on_weights,
    on=InitialWeights,
    cases=({"d_m": 4, "d": 3, "R": 1.0}, {"d_m": 7, "d": 5, "R": 5.0}),
    draw=weights,
    delta=lambda case: min(2 * math.exp(-case["d_m"] / 2), 0.999),
    problem=weights_problem,
)


@on_starts(
    "lemma-6",
    "Spectral norm of the weights at the start",
    where="Lemma 6, (44), (56)",
    says=r"\|W\|_2\le3\sqrt{d_m}",
)
def lemma_6(W):
    """||W|| <= 3 sqrt(d_m) for W in R^{d_m x d} with N(0, 1) entries, d_m > d, with probability at
    least 1 - 2 exp(-d_m/2); for variance eta times sqrt(eta)."""
    return quantities.spectral(W), 3 * W.shape[0] ** 0.5


@lemma_6.twin
def _(num, W):
    return operator_norm(num, W), 3 * num.sqrt(num.number(len(W)))


@on_starts(
    "lemma-20",
    "Norm of a weight vector near its start",
    where="Lemma 20",
    says=r"\|\tilde w\|_2\le R+3\sqrt{d_m}",
)
def lemma_20(W, shift):
    """|w~| <= R + 3 sqrt(d_m) for every w~ within R of w ~ N(0, I), with probability at least
    1 - 2 exp(-d_m/2)."""
    reach = jnp.linalg.norm(shift)
    return jnp.linalg.norm(W[:, 0] + shift), reach + 3 * W.shape[0] ** 0.5


@lemma_20.twin
def _(num, W, shift):
    moved = [row[0] + x for row, x in zip(W, shift, strict=True)]
    return norm(num, moved), norm(num, shift) + 3 * num.sqrt(num.number(len(moved)))


def products(case, rng, count):
    """Pairs of columns of independent N(0, eta)."""
    first, second = rng.normal(size=(2, count, case["d_m"])) * case["eta"] ** 0.5
    eta, delta = (np.full(count, float(case[name])) for name in ("eta", "delta"))
    return Products(first=first, second=second, eta=eta, delta=delta)


products_problem = functools.partial(case_problem, whole={"d_m": 10_000}, positive=("eta",))


def wide_problem(case):
    """(67) is about d_m >= 2 log(2/delta)."""
    reason = products_problem(case)
    needed = 2 * math.log(2 / case["delta"]) if reason is None else 0.0
    return reason or (None if case["d_m"] >= needed else f"d_m is below {needed:.3g}")


on_products = functools.partial(
    on_weights,
    on=Products,
    cases=({"d_m": 30, "eta": 0.5, "delta": 0.1}, {"d_m": 10, "eta": 2.0, "delta": 0.3}),
    draw=products,
)


@on_products(
    "lemma-4",
    "Tail of a sub-exponential variable",
    where="Lemma 4",
    says=r"|X-\mu|<\max(\nu\sqrt{2\log(2/\delta)},2\alpha\log(2/\delta))",
    problem=products_problem,
)
def lemma_4(first, second, eta, delta):
    """X ~ SE(nu, a) with mean mu: |X - mu| < max(nu sqrt(2 log(2/delta)), 2 a log(2/delta)) with
    probability at least 1 - delta. Tested on a sum of d_m products of two N(0, eta):
    nu = eta sqrt(2 d_m), a = sqrt 2 eta."""
    nu, a, log = (2 * len(first)) ** 0.5 * eta, 2**0.5 * eta, jnp.log(2 / delta)
    return jnp.abs(first @ second), jnp.maximum(nu * jnp.sqrt(2 * log), 2 * a * log)


@lemma_4.twin
def _(num, first, second, eta, delta):
    n, log = num.number(len(first)), num.log(2 / delta)
    wide = num.sqrt(2 * n) * eta * num.sqrt(2 * log)
    far = 2 * num.sqrt(num.number(2)) * eta * log
    return abs(dot(first, second)), num.largest([wide, far])


@on_products(
    "eq-67",
    "An entry of W_Q^T W_K",
    where="(67), Lemma 16",
    says=r"|\textstyle\sum_qW_Q^{(q,i)}W_K^{(q,j)}|\le2\eta_{QK}\sqrt{d_m\log(2/\delta)}",
    problem=wide_problem,
)
def eq_67(first, second, eta, delta):
    """|sum_q W_Q^(q,i) W_K^(q,j)| <= 2 eta_QK sqrt(d_m log(2/delta)) for d_m >= 2 log(2/delta),
    with probability at least 1 - delta."""
    return jnp.abs(first @ second), 2 * eta * jnp.sqrt(len(first) * jnp.log(2 / delta))


@eq_67.twin
def _(num, first, second, eta, delta):
    n, log = num.number(len(first)), num.log(2 / delta)
    return abs(dot(first, second)), 2 * eta * num.sqrt(n * log)
