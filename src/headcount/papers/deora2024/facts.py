"""Facts 1 and 2 of deora2024, and the concentration of the first phase (Lemmas 2 and 17)."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ...core import Array
from ...theory import Experiment, Kind, Sides, instance_class
from ...theory.domain import Domain, case_problem
from ...theory.families import safe_norm, shaped
from ...theory.slow import Arithmetic, norm
from . import mixture_constants
from .declare import claim, false
from .naive import Data


@instance_class
@dataclass(frozen=True)
class SignsInstance(Domain):
    """The mean of H fair signs, and the probability delta that is allowed."""

    delta: Float[Array, ""]
    H: int = 3

    fractions = ("delta",)


def _deviation(i: SignsInstance, variant: str) -> Sides:
    """P(|mean| > t) exactly, from the binomial distribution; t^2 = 2 log(c/delta)/H."""
    c = 2.0 if variant == "corrected" else 1.0
    limit = 2 * i.H * jnp.log(c / i.delta)
    sums = np.arange(-i.H, i.H + 1, 2)
    weights = np.array([math.comb(i.H, k) / 2**i.H for k in range(i.H + 1)])
    counted = (sums > 0) | (variant != "one-sided")
    beyond = jnp.where(jnp.asarray(sums**2, dtype=float) > limit, weights * counted, 0.0)
    return Sides(jnp.sum(beyond), i.delta)


def _deviation_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    H = int(data["H"])
    limit = 2 * H * num.log((2 if variant == "corrected" else 1) / data["delta"])
    total = 0
    for k in range(H + 1):
        s = 2 * k - H
        if num.number(s * s) > limit and (s > 0 or variant != "one-sided"):
            total += math.comb(H, k)
    return num.number(total) / 2**H, data["delta"]


def _draw_signs(rng: np.random.Generator, count: int, H: int) -> SignsInstance:
    return SignsInstance(rng.uniform(0.01, 0.99, count), H)


def _fraction(i: SignsInstance) -> SignsInstance:
    return replace(i, delta=jnp.clip(i.delta, 1e-6, 1 - 1e-6))


SIGNS = tuple(
    shaped("signs", _draw_signs, _fraction, differentiable=False, H=H) for H in (3, 1, 16)
)

claim(
    "fact-2",
    "Deviation of a mean of bounded variables",
    "Fact 2 (Hoeffding)",
    "For |X_h| <= B, iid of mean zero, P(|mean| > B sqrt(2 log(2/delta)/H)) <= "
    "delta; for fair signs "
    "the probability is computed exactly.",
    r"\mathbb P\Bigl(\bigl|\tfrac1H\textstyle\sum_hX_h\bigr|>B\sqrt{2\log(2/"
    r"\delta)/H}\Bigr)\le\delta",
    sides=_deviation,
    naive=_deviation_naive,
    families=SIGNS,
    targets=lambda: (SignsInstance(np.asarray(0.234375), 3),),
    forms={
        "printed": false("two-sided with log(1/delta)", "E5"),
        "corrected": ("two-sided with log(2/delta)", "E5"),
        "one-sided": ("one-sided with log(1/delta)", "E5"),
    },
    where="App. D.1",
)

Case = Mapping[str, Any]


@instance_class
@dataclass(frozen=True)
class VectorInstance(Domain):
    """A random vector and the probability delta."""

    x: Float[Array, "d"]
    delta: Float[Array, ""]

    fractions = ("delta",)


def _length(i: VectorInstance, variant: str) -> Sides:
    root = i.x.shape[0] ** 0.5 + jnp.sqrt(-jnp.log(i.delta))
    return Sides(safe_norm(i.x), 2**0.5 * root)


def _length_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    d = num.number(len(data["x"]))
    return norm(num, data["x"]), num.sqrt(num.number(2)) * (
        num.sqrt(d) + num.sqrt(-num.log(data["delta"]))
    )


def _draw_vectors(case: Case, rng: np.random.Generator, count: int) -> VectorInstance:
    x = rng.normal(size=(count, case["d"]))
    return VectorInstance(x, np.full(count, case["delta"]))


def _length_count(case: Case, variant: str, seed: int, repetitions: int) -> int:
    rng = np.random.default_rng([seed, 1])
    limit = math.sqrt(2) * (math.sqrt(case["d"]) + math.sqrt(math.log(1 / case["delta"])))
    drawn = (rng.standard_normal(case["d"]) for _ in range(repetitions))
    return sum(math.sqrt(float(np.dot(x, x))) > limit for x in drawn)


claim(
    "fact-1",
    "Norm of a subgaussian vector",
    "Fact 1",
    "|x| <= C K (sqrt(d) + sqrt(log(1/delta))) with probability 1 - delta; for a standard normal "
    "vector with C K = sqrt(2).",
    r"\|x\|\le CK(\sqrt d+\sqrt{\log(1/\delta)})",
    sides=_length,
    naive=_length_naive,
    kind=Kind.HIGH_PROBABILITY,
    forms="standard normal vectors, C K = sqrt(2): |x| is 1-Lipschitz with mean at most sqrt(d)",
    experiment=Experiment(
        cases=({"d": 1, "delta": 0.5}, {"d": 3, "delta": 0.1}),
        draw=_draw_vectors,
        sides=_length,
        exceeds_naively=_length_count,
        case_problem=functools.partial(case_problem, whole={"d": 1000}),
    ),
    where="App. D.1",
)


@instance_class
@dataclass(frozen=True)
class FirstPhaseInstance(Domain):
    """The row (1/2) mean y xbar of a first phase on DM1 with patterns S e_j, and its setting."""

    row: Float[Array, "d"]
    S: Float[Array, ""]
    zeta: Float[Array, ""]
    R: Float[Array, ""]
    n_1: Float[Array, ""]
    delta: Float[Array, ""]

    fractions = ("delta",)
    positive = ("S", "R", "n_1", "zeta")


def _share(variant: str) -> int:
    return 2 if variant == "printed" else 4


def _concentrates(i: FirstPhaseInstance, variant: str) -> Sides:
    centre = jnp.zeros_like(i.row).at[0].set(1.0).at[1].set(-1.0)
    p = i.row - i.zeta / _share(variant) * i.S * centre
    return Sides(safe_norm(p), mixture_constants.row_deviation(i.R, i.n_1, i.delta))


def _concentrates_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    centre = data["zeta"] * data["S"] / _share(variant)
    row = [data["row"][0] - centre, data["row"][1] + centre, *data["row"][2:]]
    level = num.number(1) / 2 + num.sqrt(-num.log(data["delta"]) / 2)
    return norm(num, row), data["R"] / num.sqrt(data["n_1"]) * level


_S, _Z = 2.0, 0.1


def _rows(case: Case, rng: np.random.Generator, count: int) -> Any:
    """Rows of first phases: M = 2 patterns, T = 4 tokens of which `relevant` carry mu_y."""
    n_1, k, T = case["n_1"], case["relevant"], 4
    y = rng.choice([-1.0, 1.0], (count, n_1))
    kinds = rng.integers(2, 4, (count, n_1, T - k))
    patterns = np.stack([np.sum(kinds == j, axis=-1) for j in range(4)], axis=-1) * _S
    noise = np.sum(rng.uniform(-1, 1, (count, n_1, T - k, 4)), axis=2)
    noise *= np.array([_Z / _S] * 2 + [_Z / (2 * _S)] * 2)
    own = np.stack([y > 0, y < 0, np.zeros_like(y), np.zeros_like(y)], axis=-1) * k * _S
    return 0.5 * np.mean(y[..., None] * (own + patterns + noise) / T, axis=1)


def _sure_bound() -> float:
    """R of this setting."""
    Z = math.sqrt(2 * (_Z / _S) ** 2 + (_Z / _S) ** 2 / 2)
    return float(mixture_constants.token_bound(_S, Z, _Z, 2))


def _draw_rows(case: Case, rng: np.random.Generator, count: int) -> FirstPhaseInstance:
    values = (_S, case["relevant"] / 4, _sure_bound(), case["n_1"], case["delta"])
    full = [np.full(count, float(value)) for value in values]
    return FirstPhaseInstance(_rows(case, rng, count), *full)


def _rows_count(case: Case, variant: str, seed: int, repetitions: int) -> int:
    rng = np.random.default_rng([seed, 2])
    zeta = case["relevant"] / 4
    level = 0.5 + math.sqrt(math.log(1 / case["delta"]) / 2)
    limit = _sure_bound() / math.sqrt(case["n_1"]) * level
    found = 0
    for _ in range(repetitions):
        row = _rows(case, rng, 1)[0]
        shift = zeta * _S / _share(variant)
        p = (row[0] - shift, row[1] + shift, row[2], row[3])
        found += math.sqrt(sum(e * e for e in p)) > limit
    return found


claim(
    "lemma-2",
    "Concentration of the first phase",
    "Lemmas 2 and 17, Eq. (6)",
    "With probability 1 - delta the row of the first phase is within P of its centre; the paper's "
    "P has an unspecified constant, used here is (R/sqrt(n_1))(1/2 + sqrt(log(1/delta)/2)).",
    r"\|p\|\le\frac R{\sqrt{n_1}}\Bigl(\tfrac12+\sqrt{\tfrac12\log(1/\delta)}\Bigr)",
    sides=_concentrates,
    naive=_concentrates_naive,
    kind=Kind.HIGH_PROBABILITY,
    forms={
        "printed": false("centre (zeta/2) u_*: |p| does not vanish as n_1 grows", "E1"),
        "corrected": ("centre (zeta/4) u_*, explicit P by bounded differences", "E1"),
    },
    experiment=Experiment(
        cases=(
            {"n_1": 25, "relevant": 1, "delta": 0.1},
            {"n_1": 400, "relevant": 2, "delta": 0.1},
        ),
        draw=_draw_rows,
        sides=_concentrates,
        exceeds_naively=_rows_count,
        case_problem=functools.partial(case_problem, whole={"n_1": 2000, "relevant": 3}),
    ),
    errata=("E29",),
    where="Sec. 5.1, App. D.3",
)
