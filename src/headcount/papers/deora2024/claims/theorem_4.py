"""Generalisation in deora2024: Lemma 3, Theorem 4, Corollaries 4 and 5, on populations.

The population is finite, so that every training set of size m can be listed and expectations over
training sets are exact. theta and eta are fixed before the data are seen (see E32).
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ....theory import Check, Kind, Sides
from .. import constants, quantities, twins_constants, twins_runs
from .. import twins as slow
from ..conditions import STABLE_TRAINING, SURE_STEP, SURELY_REALIZED, WIDER, heads_and_step
from ..constants import HESSIAN_TIERS, Constants, state
from ..fits import fit_start, fit_surely, fit_surely_labelled, shape
from ..quantities import descended
from ..records import Population, PopulationStart
from .corollary_5 import required


def set_weights(n: int, m: int) -> tuple[Any, Any]:
    """(weights of L for each set, weights of L^{-i} for each set and i); all are equally likely."""
    eye, sets = np.eye(n), list(itertools.product(range(n), repeat=m))
    whole = np.array([sum(eye[j] for j in chosen) / m for chosen in sets])
    pairs = zip(whole, sets, strict=True)
    return whole, np.array([[w - eye[j] / m for j in chosen] for w, chosen in pairs])


def expected_losses(i: Any) -> tuple[Any, Any]:
    """(E Ltest(theta_K), E L(theta_K)) over training sets."""
    whole, _ = set_weights(len(i.y), i.m)

    def both(weights: Any) -> Any:
        losses = quantities.losses(i, descended(i, weights))
        return jnp.mean(losses), jnp.sum(weights * losses)

    test, train = jax.vmap(both)(jnp.asarray(whole))
    return jnp.mean(test), jnp.mean(train)


def _gap(i: Any, bound: Any, table: dict[str, Any]) -> Sides:
    """E Ltest <= E L + bound: nothing is subtracted that rounding could blur."""
    test, train = expected_losses(i)
    return Sides(test, train + bound, {"gap": test - train, "bound": bound, **table})


def _slow_sets(num: Any, data: Any) -> Iterator[tuple[list[Any], list[list[Any]]]]:
    """For every training set the weights of L and of each L^{-i}, as exact fractions."""
    n, m = len(data["y"]), int(data["m"])

    def weights(points: list[int]) -> list[Any]:
        return [num.number(points.count(j)) / m for j in range(n)]

    for code in range(n**m):
        points = [code // n**place % n for place in range(m)]
        yield weights(points), [weights(points[:i] + points[i + 1 :]) for i in range(m)]


def _slow_gap(num: Any, data: Any, bound: Any) -> tuple[Any, Any]:
    test, train = [], []
    for weights, _ in _slow_sets(num, data):
        parts = slow.samples(num, data, twins_runs.path(num, data, weights)[-1])
        own = num.total([w * p.loss for w, p in zip(weights, parts, strict=True)])
        test.append(slow.mean_loss(num, parts))
        train.append(own)
    return num.total(test) / len(test), num.total(train) / len(train) + bound


SHARP_GAP = ("R^2 beta_1 for beta_3; eta beta_1(B)^2 <= 1 is then asked for by itself", "E9")
_TIERS = {**HESSIAN_TIERS, "sharp": SHARP_GAP}
on_populations = functools.partial(
    state.claim,
    on=Population,
    shapes=(
        shape(fit_surely, "v2", K=3),
        shape(fit_surely, "v1", K=3),
        shape(fit_surely, "sharp", d=1, K=1),
    ),
    kind=Kind.EXPECTATION,
    proved="Sec. 4.2, App. C",
    no_rival="the logistic loss has no largest value, so that a gap has none",
)


@on_populations(
    "lemma-3",
    "Stability bounds the generalisation gap",
    where="Lemma 3",
    says=r"\mathbb E[L(\theta_K)-\widehat L(\theta_K)]\le2G\,\mathbb E\bigl[\tfrac1n\textstyle"
    r"\sum_i\|\theta_K-\theta_K^{-i}\|\bigr]",
    forms="exact expectations over a finite population",
    notes=("E32",),
)
def lemma_3(i):
    """E[Ltest(theta_K) - L(theta_K)] <= 2 G E[(1/n) sum_i |theta_K - theta_K^{-i}|] where samples'
    losses are G-Lipschitz; G = beta_1 at the longest head of all runs."""
    whole, left = set_weights(len(i.y), i.m)
    ends = jax.vmap(functools.partial(descended, i))(jnp.asarray(whole))
    others = jax.vmap(jax.vmap(functools.partial(descended, i)))(jnp.asarray(left))
    apart = jax.vmap(jax.vmap(functools.partial(quantities.length, i)))(ends[:, None] - others)
    N = jnp.maximum(quantities.widest(ends), quantities.widest(others))
    G, distance = constants.beta_1(N, i.R, i.T, i.readout), jnp.mean(apart)
    return _gap(i, 2 * G * distance, {"G": G, "stability": distance})


@lemma_3.twin
def _(num, data):
    widths, distances = [], []
    for weights, rest in _slow_sets(num, data):
        end = twins_runs.path(num, data, weights)[-1]
        widths.append(slow.widest(num, end))
        for lacking in rest:
            other = twins_runs.path(num, data, lacking)[-1]
            widths.append(slow.widest(num, other))
            distances.append(slow.length(num, data, slow.difference(end, other)))
    R, (T, _d) = slow.token_bound(num, data), slow.shape(data)
    G = twins_constants.beta_1(num, num.largest(widths), R, T, data["readout"])
    return _slow_gap(num, data, 2 * G * num.total(distances) / len(distances))


SURELY = "its conditions are asked for every training set and were checked on these samples alone"


def _required_for_gap(setting: Any, form: str) -> tuple[Check, ...]:
    k = Constants(setting, form)
    return heads_and_step("(84)", k, k.wider_root, k.stable_eta, k.longest_stable_step)


@on_populations(
    "theorem-4",
    "Generalisation gap",
    where="Theorem 4 = Theorem 2 with its constants, Eqs. (93), (94)",
    says=r"\mathbb E[L(\theta_K)-\widehat L(\theta_K)]\le\frac4n\,\mathbb E\Bigl[2K\widehat"
    r" L(\theta)+\frac{9\|\theta-\theta_0\|^2}{4\eta}\Bigr]",
    given=(WIDER, SURE_STEP),
    forms=_TIERS,
    promise=lambda k: k.gap_bound,
    requires=_required_for_gap,
    quantity="gap",
    proviso=SURELY,
    notes=("E32",),
)
def theorem_4(i, k):
    """With (84) and eta of Theorem 3 (both for every training set), E[Ltest(theta_K) - L(theta_K)]
    <= (4/n) E[2 K L(theta) + 9 D^2/(4 eta)]."""
    return _gap(i, k.gap_bound, {"E L(theta)": i.L_theta, "D": i.D, "eta": i.eta})


@theorem_4.twin
def _(num, data, k):
    return _slow_gap(num, data, k.gap_bound)


@on_populations(
    "corollary-4",
    "Generalisation gap under realizability",
    where="Corollary 4, Eqs. (95)-(97)",
    says=r"\mathbb E[L(\theta_K)-\widehat L(\theta_K)]\le\frac{17g_0(1/K)^2}{\eta n}",
    shapes=tuple(shape(fit_surely_labelled, tier, K=1) for tier in ("v2", "v1", "sharp")),
    given=(SURELY_REALIZED, WIDER, SURE_STEP),
    forms=_TIERS,
    notes=("E14", "E32"),
)
def corollary_4(i):
    """If some theta with L(theta) <= 1/K lies within g_0 of theta_0 for every training set, then
    E[Ltest(theta_K) - L(theta_K)] <= 17 g_0^2/(eta n)."""
    return _gap(i, 17 * i.D**2 / (i.eta * i.m), {"g_0": i.D, "eta": i.eta})


@corollary_4.twin
def _(num, data, k):
    return _slow_gap(num, data, 17 * k.D * k.D / (k.eta * k.samples))


_stable = functools.partial(
    fit_start, root=lambda k: k.start_root, step=lambda k: k.stable_start_step
)


@on_populations(
    "corollary-5-gap",
    "Generalisation gap from a good start",
    where="Corollary 5 = Corollary 2, second half of (5) and (101)",
    on=PopulationStart,
    shapes=tuple(shape(_stable, form, G=2, K=3) for form in ("v2", "v1", "printed", "sharp")),
    says=r"\mathbb E[L(\theta_K)-\widehat L(\theta_K)]"
    r"\le\frac{34(2B_\Phi+\log K)^2}{\gamma^2\eta n}",
    given=STABLE_TRAINING,
    promise=lambda k: k.start_gap_bound,
    requires=functools.partial(required, stable=True),
    quantity="gap",
    proviso=SURELY,
    forms={
        "corrected": ("g_0 = sqrt(2) G: 34 for 17", "E2"),
        "printed": ("g_0 = G: the proof is wrong, the bound is not", "E2"),
        "v1": ("as corrected, with the first text's beta_3", "E9"),
        "sharp": (f"g_0 = G, with {SHARP_GAP[0]}", "E9"),
    },
    notes=("E2", "E32"),
)
def corollary_5_gap(i, k):
    """From a start that is good for every training set, E[Ltest(theta_K) - L(theta_K)] <=
    17 g_0^2/(eta n), g_0 = sqrt(2) (2 B_Phi + log K)/gamma."""
    return _gap(i, k.start_gap_bound, {"gamma": i.gamma, "H": i.H, "eta": i.eta})


@corollary_5_gap.twin
def _(num, data, k):
    return _slow_gap(num, data, k.start_gap_bound)
