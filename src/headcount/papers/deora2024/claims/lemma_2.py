"""Facts 1 and 2 of deora2024, and the concentration of the first phase (Lemmas 2 and 17)."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from ....core import Array
from ....theory import Fraction, Positive, Reals, Record, Static, false
from ....theory.domain import case_problem
from ....theory.families import safe_norm
from ....theory.slow import norm
from .. import mixture_constants
from ..constants import state

Case = Mapping[str, Any]


class FairSigns(Record):
    """The mean of H fair signs, and the probability delta that is allowed."""

    delta = Fraction(low=1e-6, high=1 - 1e-6)
    H = Static(3)

    shapes = ({"H": 3}, {"H": 1}, {"H": 16})
    slopes = False


@state.claim(
    "fact-2",
    "Deviation of a mean of bounded variables",
    where="Fact 2 (Hoeffding)",
    proved="App. D.1",
    on=FairSigns,
    says=r"\mathbb P\Bigl(\bigl|\tfrac1H\textstyle\sum_hX_h\bigr|>B\sqrt{2\log(2/"
    r"\delta)/H}\Bigr)\le\delta",
    tight=lambda: (FairSigns(delta=np.asarray(0.234375), H=3),),
    forms={
        "printed": false("two-sided with log(1/delta)", "E5"),
        "corrected": ("two-sided with log(2/delta)", "E5"),
        "one-sided": ("one-sided with log(1/delta)", "E5"),
    },
)
def fact_2(delta, H, form):
    """For |X_h| <= B, iid of mean zero, P(|mean| > B sqrt(2 log(2/delta)/H)) <= delta; for fair
    signs the probability is computed exactly."""
    limit = 2 * H * jnp.log((2.0 if form == "corrected" else 1.0) / delta)
    sums = np.arange(-H, H + 1, 2)
    weights = np.array([math.comb(H, k) / 2**H for k in range(H + 1)])
    counted = (sums > 0) | (form != "one-sided")
    beyond = jnp.where(jnp.asarray(sums**2, dtype=float) > limit, weights * counted, 0.0)
    return jnp.sum(beyond), delta


@fact_2.twin
def _(num, delta, H, form):
    limit = 2 * H * num.log((2 if form == "corrected" else 1) / delta)
    total = 0
    for k in range(H + 1):
        s = 2 * k - H
        if num.number(s * s) > limit and (s > 0 or form != "one-sided"):
            total += math.comb(H, k)
    return num.number(total) / 2**H, delta


class Vector(Record):
    """A random vector and the probability delta."""

    x = Reals("d")
    delta = Fraction()


def _draw_vectors(case: Case, rng: np.random.Generator, count: int) -> Vector:
    x = rng.normal(size=(count, case["d"]))
    return Vector(x=x, delta=np.full(count, case["delta"]))


@state.probability(
    "fact-1",
    "Norm of a subgaussian vector",
    where="Fact 1",
    proved="App. D.1",
    on=Vector,
    says=r"\|x\|\le CK(\sqrt d+\sqrt{\log(1/\delta)})",
    forms="standard normal vectors, C K = sqrt(2): |x| is 1-Lipschitz with mean at most sqrt(d)",
    cases=({"d": 1, "delta": 0.5}, {"d": 3, "delta": 0.1}),
    draw=_draw_vectors,
    problem=functools.partial(case_problem, whole={"d": 1000}),
)
def fact_1(x, delta):
    """|x| <= C K (sqrt(d) + sqrt(log(1/delta))) with probability 1 - delta; for a standard normal
    vector with C K = sqrt(2)."""
    return safe_norm(x), 2**0.5 * (x.shape[0] ** 0.5 + jnp.sqrt(-jnp.log(delta)))


@fact_1.twin
def _(num, x, delta):
    root = num.sqrt(num.number(len(x))) + num.sqrt(-num.log(delta))
    return norm(num, x), num.sqrt(num.number(2)) * root


class FirstPhase(Record):
    """The row (1/2) mean y xbar of a first phase on DM1 with patterns S e_j, and its setting."""

    row = Reals("d")
    S = Positive()
    zeta = Positive()
    R = Positive()
    n_1 = Positive()
    delta = Fraction()


_S, _Z = 2.0, 0.1


def _rows(case: Case, rng: np.random.Generator, count: int) -> Array:
    """Rows of first phases: M = 2 patterns, T = 4 tokens of which `relevant` carry mu_y."""
    n_1, k, T = case["n_1"], case["relevant"], 4
    y = rng.choice([-1.0, 1.0], (count, n_1))
    kinds = rng.integers(2, 4, (count, n_1, T - k))
    patterns = np.stack([np.sum(kinds == j, axis=-1) for j in range(4)], axis=-1) * _S
    noise = np.sum(rng.uniform(-1, 1, (count, n_1, T - k, 4)), axis=2)
    noise *= np.array([_Z / _S] * 2 + [_Z / (2 * _S)] * 2)
    own = np.stack([y > 0, y < 0, np.zeros_like(y), np.zeros_like(y)], axis=-1) * k * _S
    return 0.5 * np.mean(y[..., None] * (own + patterns + noise) / T, axis=1)


def _draw_rows(case: Case, rng: np.random.Generator, count: int) -> FirstPhase:
    Z = math.sqrt(2 * (_Z / _S) ** 2 + (_Z / _S) ** 2 / 2)
    R = float(mixture_constants.token_bound(_S, Z, _Z, 2))
    numbers = {"S": _S, "zeta": case["relevant"] / 4, "R": R}
    numbers |= {name: float(case[name]) for name in ("n_1", "delta")}
    full = {name: np.full(count, value) for name, value in numbers.items()}
    return FirstPhase(row=_rows(case, rng, count), **full)


def _share(form: str) -> int:
    return 2 if form == "printed" else 4


@state.probability(
    "lemma-2",
    "Concentration of the first phase",
    where="Lemmas 2 and 17, Eq. (6)",
    proved="Sec. 5.1, App. D.3",
    on=FirstPhase,
    says=r"\|p\|\le\frac R{\sqrt{n_1}}\Bigl(\tfrac12+\sqrt{\tfrac12\log(1/\delta)}\Bigr)",
    forms={
        "printed": false("centre (zeta/2) u_*: |p| does not vanish as n_1 grows", "E1"),
        "corrected": ("centre (zeta/4) u_*, explicit P by bounded differences", "E1"),
    },
    cases=(
        {"n_1": 25, "relevant": 1, "delta": 0.1},
        {"n_1": 400, "relevant": 2, "delta": 0.1},
    ),
    draw=_draw_rows,
    problem=functools.partial(case_problem, whole={"n_1": 2000, "relevant": 3}),
    notes=("E29",),
)
def lemma_2(i, form):
    """With probability 1 - delta the row of the first phase is within P of its centre; the paper's
    P has an unspecified constant, used here is (R/sqrt(n_1))(1/2 + sqrt(log(1/delta)/2))."""
    centre = jnp.zeros_like(i.row).at[0].set(1.0).at[1].set(-1.0)
    p = i.row - i.zeta / _share(form) * i.S * centre
    return safe_norm(p), mixture_constants.row_deviation(i.R, i.n_1, i.delta)


@lemma_2.twin
def _(num, row, S, zeta, R, n_1, delta, form):
    centre = zeta * S / (2 if form == "printed" else 4)
    p = [row[0] - centre, row[1] + centre, *row[2:]]
    level = num.number(1) / 2 + num.sqrt(-num.log(delta) / 2)
    return norm(num, p), R / num.sqrt(n_1) * level
