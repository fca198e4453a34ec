"""Lemmas 4 to 6, 16 and 20 and Eq. (48) of wu2023: what random weights do, by frequency."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ...core import Array
from ...theory import Experiment, Kind, Sides, delta_of, instance_class
from ...theory.domain import Domain, case_problem
from ...theory.slow import FLOATS, Arithmetic, dot, norm
from ...theory.slow_spectrum import extreme_eigenvalues, gram, operator_norm
from . import quantities as model
from .declare import claim
from .naive import Data

Case = Mapping[str, Any]
Draw = Callable[[Case, np.random.Generator, int], Any]


def experiment(
    cases: tuple[Case, ...], draw: Draw, sides: Any, slow: Any, problem: Any, delta: Any = delta_of
) -> Experiment:
    """Count exceedances of lhs <= rhs; the slow side draws its own numbers, one by one."""

    def count(case: Case, variant: str, seed: int, repetitions: int) -> int:
        rng, exceeded = np.random.default_rng([seed, 2023]), 0
        for _ in range(repetitions):
            fields = vars(jax.tree.map(lambda leaf: leaf[0], draw(case, rng, 1)))
            lhs, rhs = slow(FLOATS, {k: np.asarray(v).tolist() for k, v in fields.items()}, variant)
            exceeded += lhs > rhs
        return exceeded

    return Experiment(cases, draw, sides, count, delta, problem)


@instance_class
@dataclass(frozen=True)
class GaussianMatrix(Domain):
    """A matrix of independent N(0, 1) entries, and zeta."""

    W: Float[Array, "d1 d2"]
    zeta: Float[Array, ""]


def _matrices(case: Case, rng: np.random.Generator, count: int) -> GaussianMatrix:
    W = rng.normal(size=(count, case["d1"], case["d2"]))
    return GaussianMatrix(W, np.full(count, float(case["zeta"])))


def _matrix_problem(case: Case) -> str | None:
    return case_problem(case, whole={"d1": 1000, "d2": 1000}, positive=("zeta",), fractions=())


def _two_sided(case: Case) -> float:
    return min(2 * math.exp(-(case["zeta"] ** 2) / 2), 0.999)


_ROOTS = r"\sqrt{d_1}\pm\sqrt{d_2}"


def _upper(i: GaussianMatrix, variant: str) -> Sides:
    d1, d2 = i.W.shape
    return Sides(model.spectral(i.W), d1**0.5 + d2**0.5 + i.zeta)


def _upper_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    W = data["W"]
    roots = num.sqrt(num.number(len(W))) + num.sqrt(num.number(len(W[0])))
    return operator_norm(num, W), roots + data["zeta"]


def _lower(i: GaussianMatrix, variant: str) -> Sides:
    d1, d2 = i.W.shape
    smallest = jnp.linalg.svd(i.W, compute_uv=False)[-1]
    return Sides(d1**0.5 - d2**0.5 - i.zeta, smallest)


def _lower_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    W = data["W"]
    roots = num.sqrt(num.number(len(W))) - num.sqrt(num.number(len(W[0])))
    return roots - data["zeta"], num.root(extreme_eigenvalues(num, gram(W))[0])


_CASES = ({"d1": 20, "d2": 5, "zeta": 1.5}, {"d1": 60, "d2": 1, "zeta": 2.0})
on_weights = functools.partial(claim, kind=Kind.HIGH_PROBABILITY, where="App. C.1")

on_weights(
    "lemma-5-upper",
    "Largest singular value of a Gaussian matrix",
    "Lemma 5",
    "sigma_max(W) <= sqrt d1 + sqrt d2 + zeta with probability at least 1 - 2 exp(-zeta^2/2).",
    rf"\sigma_{{\max}}(W)\le{_ROOTS}+\zeta",
    sides=_upper,
    naive=_upper_naive,
    experiment=experiment(_CASES, _matrices, _upper, _upper_naive, _matrix_problem, _two_sided),
)

on_weights(
    "lemma-5-lower",
    "Smallest singular value of a Gaussian matrix",
    "Lemma 5",
    "sigma_min(W) >= sqrt d1 - sqrt d2 - zeta with probability at least 1 - 2 exp(-zeta^2/2).",
    rf"\sigma_{{\min}}(W)\ge{_ROOTS}-\zeta",
    sides=_lower,
    naive=_lower_naive,
    experiment=experiment(_CASES, _matrices, _lower, _lower_naive, _matrix_problem, _two_sided),
)


@instance_class
@dataclass(frozen=True)
class InitialWeights(Domain):
    """A Gaussian weight matrix at the start, and a vector within R of its first column."""

    W: Float[Array, "d_m d"]
    shift: Float[Array, "d_m"]


def _weights(case: Case, rng: np.random.Generator, count: int) -> InitialWeights:
    """The shift of length R is along the first column: the worst place in the ball."""
    W = rng.normal(size=(count, case["d_m"], case["d"]))
    first = W[:, :, 0]
    return InitialWeights(W, case["R"] * first / np.linalg.norm(first, axis=1, keepdims=True))


def _weights_problem(case: Case) -> str | None:
    reason = case_problem(case, whole={"d_m": 1000, "d": 100}, positive=("R",), fractions=())
    return reason or (None if case["d_m"] > case["d"] else "d_m must exceed d")


def _rare(case: Case) -> float:
    return min(2 * math.exp(-case["d_m"] / 2), 0.999)


def _lemma_6(i: InitialWeights, variant: str) -> Sides:
    return Sides(model.spectral(i.W), 3 * i.W.shape[0] ** 0.5)


def _lemma_6_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    return operator_norm(num, data["W"]), 3 * num.sqrt(num.number(len(data["W"])))


def _lemma_20(i: InitialWeights, variant: str) -> Sides:
    reach = jnp.linalg.norm(i.shift)
    return Sides(jnp.linalg.norm(i.W[:, 0] + i.shift), reach + 3 * i.W.shape[0] ** 0.5)


def _lemma_20_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    moved = [row[0] + x for row, x in zip(data["W"], data["shift"], strict=True)]
    return norm(num, moved), norm(num, data["shift"]) + 3 * num.sqrt(num.number(len(moved)))


_STARTS = ({"d_m": 4, "d": 3, "R": 1.0}, {"d_m": 7, "d": 5, "R": 5.0})

on_weights(
    "lemma-6",
    "Spectral norm of the weights at the start",
    "Lemma 6, (44), (56)",
    "||W|| <= 3 sqrt(d_m) for W in R^{d_m x d} with N(0, 1) entries, d_m > d, with probability at "
    "least 1 - 2 exp(-d_m/2); for variance eta times sqrt(eta).",
    r"\|W\|_2\le3\sqrt{d_m}",
    sides=_lemma_6,
    naive=_lemma_6_naive,
    experiment=experiment(_STARTS, _weights, _lemma_6, _lemma_6_naive, _weights_problem, _rare),
)

on_weights(
    "lemma-20",
    "Norm of a weight vector near its start",
    "Lemma 20",
    "|w~| <= R + 3 sqrt(d_m) for every w~ within R of w ~ N(0, I), with probability at least "
    "1 - 2 exp(-d_m/2).",
    r"\|\tilde w\|_2\le R+3\sqrt{d_m}",
    sides=_lemma_20,
    naive=_lemma_20_naive,
    experiment=experiment(_STARTS, _weights, _lemma_20, _lemma_20_naive, _weights_problem, _rare),
)


@instance_class
@dataclass(frozen=True)
class Products(Domain):
    """Two columns of independent normals, their scale eta and delta."""

    first: Float[Array, "d_m"]
    second: Float[Array, "d_m"]
    eta: Float[Array, ""]
    delta: Float[Array, ""]

    positive: ClassVar[tuple[str, ...]] = ("eta",)
    fractions: ClassVar[tuple[str, ...]] = ("delta",)


def _products(case: Case, rng: np.random.Generator, count: int) -> Products:
    first, second = rng.normal(size=(2, count, case["d_m"])) * case["eta"] ** 0.5
    eta, delta = (np.full(count, float(case[name])) for name in ("eta", "delta"))
    return Products(first, second, eta, delta)


def _lemma_4(i: Products, variant: str) -> Sides:
    nu, a = (2 * i.first.shape[0]) ** 0.5 * i.eta, 2**0.5 * i.eta
    log = jnp.log(2 / i.delta)
    return Sides(jnp.abs(i.first @ i.second), jnp.maximum(nu * jnp.sqrt(2 * log), 2 * a * log))


def _lemma_4_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    n, log = num.number(len(data["first"])), num.log(2 / data["delta"])
    wide = num.sqrt(2 * n) * data["eta"] * num.sqrt(2 * log)
    far = 2 * num.sqrt(num.number(2)) * data["eta"] * log
    return abs(dot(data["first"], data["second"])), num.largest([wide, far])


def _eq_67(i: Products, variant: str) -> Sides:
    spread = jnp.sqrt(i.first.shape[0] * jnp.log(2 / i.delta))
    return Sides(jnp.abs(i.first @ i.second), 2 * i.eta * spread)


def _eq_67_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    n, log = num.number(len(data["first"])), num.log(2 / data["delta"])
    return abs(dot(data["first"], data["second"])), 2 * data["eta"] * num.sqrt(n * log)


def _products_problem(case: Case) -> str | None:
    return case_problem(case, whole={"d_m": 10_000}, positive=("eta",))


def _products_for_67(case: Case) -> str | None:
    reason = _products_problem(case)
    needed = 2 * math.log(2 / case["delta"]) if reason is None else 0.0
    return reason or (None if case["d_m"] >= needed else f"d_m is below {needed:.3g}")


_SUMS = ({"d_m": 30, "eta": 0.5, "delta": 0.1}, {"d_m": 10, "eta": 2.0, "delta": 0.3})


on_weights(
    "lemma-4",
    "Tail of a sub-exponential variable",
    "Lemma 4",
    "X ~ SE(nu, a) with mean mu: |X - mu| < max(nu sqrt(2 log(2/delta)), 2 a log(2/delta)) with "
    "probability at least 1 - delta. Tested on a sum of d_m products of two N(0, eta): "
    "nu = eta sqrt(2 d_m), a = sqrt 2 eta.",
    r"|X-\mu|<\max(\nu\sqrt{2\log(2/\delta)},2\alpha\log(2/\delta))",
    sides=_lemma_4,
    naive=_lemma_4_naive,
    experiment=experiment(_SUMS, _products, _lemma_4, _lemma_4_naive, _products_problem),
)

on_weights(
    "eq-67",
    "An entry of W_Q^T W_K",
    "(67), Lemma 16",
    "|sum_q W_Q^(q,i) W_K^(q,j)| <= 2 eta_QK sqrt(d_m log(2/delta)) for d_m >= 2 log(2/delta), "
    "with probability at least 1 - delta.",
    r"|\textstyle\sum_qW_Q^{(q,i)}W_K^{(q,j)}|\le2\eta_{QK}\sqrt{d_m\log(2/\delta)}",
    sides=_eq_67,
    naive=_eq_67_naive,
    experiment=experiment(_SUMS, _products, _eq_67, _eq_67_naive, _products_for_67),
)
