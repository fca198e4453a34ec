"""Facts 1 and 2 of deora2024, and the concentration of the first phase (Lemmas 2 and 17).

The row of a first phase on n_1 samples is zeta/(2 n_1) sum_i y_i mu_{y_i}, of which p_1 is what is
left of its centre, plus p_2, the share of the irrelevant tokens [(120)]. With a share a of positive
labels and the printed centre |p_1| = (zeta S/2) |(1 - a, a)| >= zeta S/(2 sqrt 2), whatever n_1 is.
"""

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
from ..spaces import Whole

Case = Mapping[str, Any]
_ALLOWED = "delta itself is what is allowed; 1 is known without it"


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
    no_rival=_ALLOWED,
    forms={
        "printed": false("two-sided with log(1/delta), for fair signs", "E5"),
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
    forms={"normal": "standard normal, C K = sqrt(2): |x| is 1-Lipschitz, of mean at most sqrt(d)"},
    no_rival=_ALLOWED,
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


class FairLabels(Record):
    """A first phase without noise: S, zeta, n_1 fair labels, a constant C, d and delta."""

    S = Positive(low=1.0, high=1e2)
    zeta = Fraction(low=1e-3, high=0.999)
    C = Positive(low=1e-3, high=1e6)
    n_1 = Whole(high=1e18)
    d = Whole(low=3.0, high=1e4)
    delta = Fraction(low=1e-6, high=0.499)

    shapes = ({},)
    slopes = False


def _failing(i: FairLabels, bound: Any, form: str) -> Any:
    """P(|p_1| > bound) from below for the centre u_*, from above (Hoeffding) for u_*/2."""
    if form == "printed":
        return jnp.where(bound < i.zeta * i.S / 8**0.5, 1.0, 0.0)
    return jnp.minimum(1.0, 2 * jnp.exp(-4 * i.n_1 * (bound / (i.zeta * i.S)) ** 2))


def _failing_slowly(num: Any, i: Any, bound: Any, form: str) -> Any:
    if form == "printed":
        return num.number(int(8 * bound * bound < (i["zeta"] * i["S"]) ** 2))
    part = bound / (i["zeta"] * i["S"])
    return num.smallest([num.number(1), 2 * num.exp(-4 * i["n_1"] * part * part)])


def _large() -> tuple[FairLabels, ...]:
    """C = 2^20, and so many samples that the bound is 0.003 while |p_1| is at least 0.17."""
    numbers = {"S": 1.0, "zeta": 0.5, "C": 2.0**20, "n_1": 2.0**60, "d": 3.0, "delta": 0.25}
    return (FairLabels(**{name: np.asarray(value) for name, value in numbers.items()}),)


on_labels = functools.partial(
    state.claim, on=FairLabels, tight=_large, proved="App. D.3", no_rival=_ALLOWED
)


def _rate(n_1: Any, d: Any, delta: Any) -> Any:
    """sqrt(d/n_1) + sqrt(log(1/delta)/n_1)."""
    return (d / n_1) ** 0.5 + (-jnp.log(delta) / n_1) ** 0.5


def _slow_rate(num: Any, n_1: Any, d: Any, delta: Any) -> Any:
    return num.sqrt(d / n_1) + num.sqrt(-num.log(delta) / n_1)


@on_labels(
    "lemma-2",
    "Concentration of the first phase",
    where="Lemma 2, Eq. (6)",
    says=r"\|p\|\le C(2S+Z)\Bigl(\sqrt{d/n_1}+\sqrt{\log(1/\delta)/n_1}\Bigr)",
    forms={
        "printed": false("centre (zeta/2) u_*: |p| does not vanish as n_1 grows, for any C", "E1"),
        "corrected": ("centre (zeta/4) u_*, with C = 1, for p_1 and p_2 in equal parts", "E1"),
    },
    notes=("E29",),
)
def lemma_2(i, form):
    """After the first phase every row of U_h^(1) is alpha_h ((zeta/2) u_* + p), and for some
    universal C, |p| <= P of (6) with probability 1 - delta. Asked of every C, without noise: there
    |p| is at least |p_1|, the labels' part of it. Left is the probability that |p| > P."""
    bound = 2 * (i.C if form == "printed" else 1.0) * i.S * _rate(i.n_1, i.d, i.delta)
    if form == "printed":
        return _failing(i, bound, form), i.delta
    beyond = jnp.maximum(0.0, i.n_1**0.5 * bound / ((1 - i.zeta) * i.S) - 1)
    return _failing(i, bound / 2, form) + jnp.exp(-(beyond**2) / 2), i.delta


@lemma_2.twin
def _(num, i, form):
    C = i["C"] if form == "printed" else num.number(1)
    bound = 2 * C * i["S"] * _slow_rate(num, i["n_1"], i["d"], i["delta"])
    if form == "printed":
        return _failing_slowly(num, i, bound, form), i["delta"]
    beyond = num.positive_part(num.sqrt(i["n_1"]) * bound / ((1 - i["zeta"]) * i["S"]) - 1)
    rest = num.exp(-beyond * beyond / 2)
    return _failing_slowly(num, i, bound / 2, form) + rest, i["delta"]


@on_labels(
    "eq-121",
    "What the labels leave of the centre",
    where="Lemma 17, Eq. (121)",
    says=r"\|p_1\|\le CS\Bigl(\sqrt{d/n_1}+\sqrt{\log(1/\delta)/n_1}\Bigr)",
    forms={
        "printed": false("p_1 around u_*: it does not vanish as n_1 grows, for any C", "E1"),
        "corrected": ("p_1 around u_*/2, with C = 1/2", "E1"),
    },
    notes=("E29",),
)
def eq_121(i, form):
    """With probability 1 - 2 delta, |p_1| <= C S (sqrt(d/n_1) + sqrt(log(1/delta)/n_1)), p_1 =
    (zeta/2) (mean y mu_y - u_*), for some absolute C. Asked of every C, without noise. Left is the
    probability that |p_1| exceeds its bound."""
    bound = (i.C if form == "printed" else 0.5) * i.S * _rate(i.n_1, i.d, i.delta)
    return _failing(i, bound, form), 2 * i.delta


@eq_121.twin
def _(num, i, form):
    C = i["C"] if form == "printed" else num.number(1) / 2
    bound = C * i["S"] * _slow_rate(num, i["n_1"], i["d"], i["delta"])
    return _failing_slowly(num, i, bound, form), 2 * i["delta"]


class FirstPhase(Record):
    """The row (1/2) mean y xbar of a first phase on DM1 with patterns S e_j, and its setting.

    `others` is p_2, the share of the irrelevant tokens in the row.
    """

    row = Reals("d")
    others = Reals("d")
    S = Positive()
    Z = Positive()
    zeta = Positive()
    R = Positive()
    n_1 = Positive()
    delta = Fraction()


_S, _Z = 2.0, 0.1


def _rows(case: Case, rng: np.random.Generator, count: int) -> tuple[Array, Array]:
    """(rows, p_2) of first phases: M = 2 patterns, T = 4 tokens, `relevant` of which carry mu_y."""
    n_1, k, T = case["n_1"], case["relevant"], 4
    y = rng.choice([-1.0, 1.0], (count, n_1))
    kinds = rng.integers(2, 4, (count, n_1, T - k))
    patterns = np.stack([np.sum(kinds == j, axis=-1) for j in range(4)], axis=-1) * _S
    noise = np.sum(rng.uniform(-1, 1, (count, n_1, T - k, 4)), axis=2)
    noise *= np.array([_Z / _S] * 2 + [_Z / (2 * _S)] * 2)
    own = np.stack([y > 0, y < 0, np.zeros_like(y), np.zeros_like(y)], axis=-1) * k * _S
    parts = (own + patterns + noise, patterns + noise)
    row, others = (0.5 * np.mean(y[..., None] * part / T, axis=1) for part in parts)
    return row, others


def _draw_rows(case: Case, rng: np.random.Generator, count: int) -> FirstPhase:
    Z = math.sqrt(2 * (_Z / _S) ** 2 + (_Z / _S) ** 2 / 2)
    R = float(mixture_constants.token_bound(_S, Z, _Z, 2))
    numbers = {"S": _S, "Z": Z, "zeta": case["relevant"] / 4, "R": R}
    numbers |= {name: float(case[name]) for name in ("n_1", "delta")}
    full = {name: np.full(count, value) for name, value in numbers.items()}
    row, others = _rows(case, rng, count)
    return FirstPhase(row=row, others=others, **full)


on_first_phases = functools.partial(
    state.probability,
    on=FirstPhase,
    cases=(
        {"n_1": 25, "relevant": 1, "delta": 0.1},
        {"n_1": 400, "relevant": 2, "delta": 0.1},
    ),
    draw=_draw_rows,
    problem=functools.partial(case_problem, whole={"n_1": 2000, "relevant": 3}),
    proved="App. D.3",
    no_rival=_ALLOWED,
)


@on_first_phases(
    "first-phase",
    "Concentration of the first phase, with its constants",
    where="beside Lemma 2, Eq. (6)",
    says=r"\|p\|\le\frac R{\sqrt{n_1}}\Bigl(\tfrac12+\sqrt{\tfrac12\log(1/\delta)}\Bigr)",
    forms={"explicit": ("centre (zeta/4) u_*, explicit P by bounded differences", "E1")},
    notes=("E29",),
)
def first_phase(i):
    """With probability 1 - delta the row of the first phase is within (R/sqrt(n_1))(1/2 +
    sqrt(log(1/delta)/2)) of (zeta/4) u_*: our bound, in place of (6) with its constant."""
    centre = jnp.zeros_like(i.row).at[0].set(1.0).at[1].set(-1.0)
    p = i.row - i.zeta / 4 * i.S * centre
    return safe_norm(p), mixture_constants.row_deviation(i.R, i.n_1, i.delta)


@first_phase.twin
def _(num, row, S, zeta, R, n_1, delta):
    centre = zeta * S / 4
    p = [row[0] - centre, row[1] + centre, *row[2:]]
    level = num.number(1) / 2 + num.sqrt(-num.log(delta) / 2)
    return norm(num, p), R / num.sqrt(n_1) * level


@on_first_phases(
    "eq-122",
    "What the irrelevant tokens leave",
    where="Lemma 17, Eq. (122)",
    says=r"\|p_2\|\le C(S+Z)\Bigl(\sqrt{d/n_1}+\sqrt{\log(1/\delta)/n_1}\Bigr)",
    forms={
        "explicit": ("C = 1, and 1 - delta for 1 - 2 delta", "E29"),
        "printed": ("1 - 2 delta; asked with C = 1, which is enough", "E29"),
    },
)
def eq_122(i, form):
    """With probability 1 - delta (1 - 2 delta as printed), |p_2| <= C (S + Z) (sqrt(d/n_1) +
    sqrt(log(1/delta)/n_1)), here with C = 1, which bounded differences give."""
    delta = i.delta / 2 if form == "printed" else i.delta
    return safe_norm(i.others), (i.S + i.Z) * _rate(i.n_1, len(i.others), delta)


@eq_122.twin
def _(num, others, S, Z, n_1, delta, form):
    delta = delta / 2 if form == "printed" else delta
    return norm(num, others), (S + Z) * _slow_rate(num, n_1, len(others), delta)
