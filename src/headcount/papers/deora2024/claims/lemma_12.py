"""The two-phase start on DM1 in deora2024: P1 and P2 of Proposition 2, Lemma 12 [App. D.2]."""

from __future__ import annotations

import functools
import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from ....theory import false, given
from ....theory.families import safe_norm
from ....theory.slow import dot, norm
from .. import mixture_constants
from ..constants import state
from ..mixture import Mixture, Signed, quiet
from ..twins_mixture import SlowMixture

on_mixtures = functools.partial(state.claim, on=Mixture, proved="Sec. 5.1, App. D.2")


@on_mixtures(
    "proposition-2-1",
    "P1: norm of the two-phase start",
    where="Proposition 2 (P1), Definition 1 (P1)",
    says=r"\|\theta_h^{(1)}\|\le\sqrt T(S+P)",
    no_rival="the right side is the sum of norms: nothing simpler is known",
    forms={
        "corrected": ("the centre zeta/4 of the first phase", "E1"),
        "printed": ("the centre zeta/2 of (102)", "E1"),
    },
)
def proposition_2_1(i, form):
    """|theta_h^(1)| = sqrt(T) |row| <= B_2 = sqrt(T) (S + P)."""
    return i.T**0.5 * safe_norm(i.row(form)), mixture_constants.B_2(i.S, i.P, i.T)


@proposition_2_1.twin
def _(num, sample, form):
    m = SlowMixture(num, sample)
    root = num.sqrt(num.number(m.T))
    return root * norm(num, m.row(form)), root * (m.S + m.P)


def _exceeded(i: Signed, form: str, count: Any) -> Any:
    """P(|Phi~(X; theta^(1))| > T R (S + P) sqrt(2 log(count/delta))), exactly.

    Phi~ is one random factor (sum_h alpha_h)/sqrt(H), shared by all X, times a number.
    """
    number = jnp.abs(jnp.vdot(i.row(form), jnp.sum(i.X, axis=0)))
    bound = mixture_constants.B_Phi(i.S, i.P, i.R, i.T, i.delta, count)
    sums = np.arange(-i.H, i.H + 1, 2.0)
    weights = np.array([math.comb(i.H, k) / 2**i.H for k in range(i.H + 1)])
    return jnp.sum(jnp.where(sums**2 * number**2 > i.H * bound**2, weights, 0.0))


def _exceeded_slowly(num: Any, sample: Any, form: str, count: Any) -> Any:
    m, H, total = SlowMixture(num, sample), int(sample["H"]), 0
    number = num.total([dot(x, m.row(form)) for x in m.X])
    level = 2 * num.log(count / sample["delta"])
    bound = (m.T * m.R * (m.S + m.P)) ** 2 * level
    for k in range(H + 1):
        if num.number((2 * k - H) ** 2) * number * number > H * bound:
            total += math.comb(H, k)
    return num.number(total) / 2**H


on_signs = functools.partial(
    on_mixtures, on=Signed, no_rival="delta itself is what is allowed; 1 is known without it"
)


def _one_head() -> tuple[Signed, ...]:
    """One head, no noise, seven of eight tokens relevant: |Phi~| is the same for both signs."""
    still = quiet(8, 2, 7, 1.0)
    return (Signed(**still.fields(), delta=np.asarray(0.9375), n=np.asarray(2.0), H=1),)


@on_signs(
    "lemma-12",
    "Output of the two-phase start on one sample",
    where="Lemma 12",
    says=r"\mathbb P\bigl(|\widetilde\Phi(X;\widetilde\theta^{(1)})|>TR(S+P)\sqrt{2\log(1/\delta)}"
    r"\bigr)\le\delta",
    tight=_one_head,
    forms={
        "printed": false("log(1/delta) for two sides", "E5"),
        "corrected": ("log(2/delta), at the centre zeta/4", "E5"),
    },
    notes=("E28",),
)
def lemma_12(i, form):
    """|Phi~(X; theta^(1))| exceeds T R (S + P) sqrt(2 log(1/delta)) with probability at most delta
    over the signs alpha_h."""
    return _exceeded(i, form, 1 if form == "printed" else 2), i.delta


@lemma_12.twin
def _(num, sample, form):
    count = num.number(1 if form == "printed" else 2)
    return _exceeded_slowly(num, sample, form, count), sample["delta"]


@on_signs(
    "proposition-2-2",
    "P2: outputs of the two-phase start",
    where="Proposition 2 (P2), Definition 1 (P2)",
    says=r"B_\Phi=TR(S+P)\sqrt{2\log(n/\delta)}",
    given=(given("n >= 2, as 2/n", lambda n: 2 / n, 1.0),),
    forms={
        "printed": ("log(n/delta), for n >= 2", "E5"),
        "corrected": ("log(2/delta), whatever n is: all samples share one factor", "E5"),
    },
)
def proposition_2_2(i, form):
    """On every sample |Phi~(X_i; theta^(1))| <= B_Phi = T R (S + P) sqrt(2 log(n/delta)), with
    probability 1 - delta over the signs: asked of the sample that speaks most against it."""
    return _exceeded(i, form, i.n if form == "printed" else 2), i.delta


@proposition_2_2.twin
def _(num, sample, form):
    count = sample["n"] if form == "printed" else num.number(2)
    return _exceeded_slowly(num, sample, form, count), sample["delta"]
