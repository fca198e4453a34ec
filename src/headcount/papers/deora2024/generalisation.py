"""Generalisation in deora2024: Lemma 3, Theorem 4, Corollaries 4 and 5, on populations.

The population is finite, so that every training set of size m can be listed and expectations over
training sets are exact. theta and eta are fixed before the data are seen (see E32).
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...theory import Bound, Check, Hypothesis, Kind, Sides, instance_class
from ...theory.slow import Arithmetic
from . import constants, naive, naive_constants, naive_runs
from . import quantities as model
from .corollary_5 import (
    STABLE_TRAINING,
    descended,
    required,
    squared_stretch,
    stable_step,
    training_root,
)
from .declare import HESSIAN_TIERS, claim, tier_of
from .good_start import (
    NaiveStart,
    StartInstance,
    draw_starts,
    form_of,
    start_family,
)
from .naive import Data
from .runs import RunInstance, draw_runs, project_run, run_family
from .setting import Setting
from .theorem_3 import WIDER
from .training import short_step


@instance_class
@dataclass(frozen=True)
class PopulationInstance(RunInstance):
    """A run on every training set of `m` draws from the n equally likely points of (X, y)."""

    m: int = 2


@instance_class
@dataclass(frozen=True)
class PopulationStart(StartInstance):
    """A good start for every training set of `m` draws from the n points of (X, y)."""

    m: int = 2


def training_sets(n: int, m: int) -> list[tuple[int, ...]]:
    """Every ordered training set, all equally likely."""
    return list(itertools.product(range(n), repeat=m))


def set_weights(n: int, m: int) -> tuple[Any, Any]:
    """(weights of L for each set, weights of L^{-i} for each set and i)."""
    eye = np.eye(n)
    whole = np.array([sum(eye[j] for j in chosen) / m for chosen in training_sets(n, m)])
    left = np.array(
        [
            [w - eye[j] / m for j in chosen]
            for w, chosen in zip(whole, training_sets(n, m), strict=True)
        ]
    )
    return whole, left


def expected_losses(i: Any) -> tuple[Any, Any]:
    """(E Ltest(theta_K), E L(theta_K)) over training sets."""
    n = len(i.y)
    whole, _ = set_weights(n, i.m)

    def both(weights: Any) -> Any:
        losses = model.losses(i, descended(i, weights))
        return jnp.mean(losses), jnp.sum(weights * losses)

    test, train = jax.vmap(both)(jnp.asarray(whole))
    return jnp.mean(test), jnp.mean(train)


def gap_sides(i: Any, bound: Any, table: dict[str, Any]) -> Sides:
    """E Ltest <= E L + bound: nothing is subtracted that rounding could blur."""
    test, train = expected_losses(i)
    return Sides(test, train + bound, {"gap": test - train, "bound": bound, **table})


def _naive_sets(num: Arithmetic, data: Data) -> Iterator[tuple[list[Any], list[list[Any]]]]:
    """For every training set the weights of L and of each L^{-i}, as exact fractions."""
    n, m = len(data["y"]), int(data["m"])

    def weights(points: list[int]) -> list[Any]:
        return [num.number(points.count(j)) / m for j in range(n)]

    for code in range(n**m):
        points = [code // n**place % n for place in range(m)]
        yield weights(points), [weights(points[:i] + points[i + 1 :]) for i in range(m)]


def _naive_descend(num: Arithmetic, data: Data, weights: list[Any]) -> Any:
    return naive_runs.path(num, data, weights)[-1]


def naive_gap_sides(num: Arithmetic, data: Data, bound: Any) -> tuple[Any, Any]:
    """The same in slow arithmetic."""
    test, train = [], []
    for weights, _ in _naive_sets(num, data):
        parts = naive.samples(num, data, _naive_descend(num, data, weights))
        own = num.total([w * p.loss for w, p in zip(weights, parts, strict=True)])
        test.append(naive.mean_loss(num, parts))
        train.append(own)
    return num.total(test) / len(test), num.total(train) / len(train) + bound


def _project(i: PopulationInstance, tier: str, factor: int = 128) -> Any:
    """Theorem 4's hypotheses for every training set: eta by the largest sample loss."""
    inside: Any = project_run(i, tier, factor)
    return replace(inside, eta=jnp.minimum(inside.eta, (1 - 1e-9) * sure_step(inside, tier)))


def sure_step(i: Any, variant: str) -> Any:
    """The largest eta that Theorem 3 and (94) allow on every training set."""
    rho = constants.stable_rho(constants.reach(i.D, i.N), i.R, i.H, i.T, i.d, variant, i.readout)
    worst, first = (jnp.max(model.losses(i, rows)) for rows in (i.target, i.rows))
    return constants.largest_step(rho, i.D, i.K, worst, first)


def sure_step_naively(num: Arithmetic, data: Data, variant: str) -> Any:
    D, R, H = naive_runs.distance(num, data), naive.token_bound(num, data), naive.total(num, data)
    rest = (*naive.shape(data), variant, data["readout"])
    rho = naive_constants.stable_rho(num, 3 * D + naive_runs.width(num, data), R, H, *rest)
    worst, first = (
        num.largest([p.loss for p in naive.samples(num, data, rows)])
        for rows in (naive_runs.target(num, data), naive.parameters(data))
    )
    terms = [num.number(1), 1 / rho, D * D / (int(data["K"]) * worst), D * D / first]
    return num.smallest(terms)


SURE_STEP = short_step(
    "eta as in Theorem 3, eta beta_1(B)^2 <= 1, for every training set",
    sure_step,
    sure_step_naively,
)


def _draw_population(rng: np.random.Generator, count: int, **shape: Any) -> PopulationInstance:
    run = draw_runs(rng, count, **shape)
    return PopulationInstance(**{f.name: getattr(run, f.name) for f in fields(RunInstance)}, m=2)


def _population(tier: str, project: Any = _project, d: int = 2, K: int = 3) -> Any:
    family = run_family(functools.partial(project, tier=tier), f"population, {tier}", d=d, K=K)
    draw = functools.partial(_draw_population, n=2, d=d, T=2, G=1, K=K, readout="full")
    return replace(family, draw=draw)


SHARP_GAP = ("R^2 beta_1 for beta_3; eta beta_1(B)^2 <= 1 is then asked for by itself", "E9")
POPULATIONS = (_population("v2"), _population("v1"), _population("sharp", d=1, K=1))
on_populations = functools.partial(
    claim, families=POPULATIONS, kind=Kind.EXPECTATION, where="Sec. 4.2, App. C"
)


def _lipschitz(i: Any) -> tuple[Any, Any]:
    """(beta_1 over all runs, E[(1/m) sum_i |theta_K - theta_K^{-i}|])."""
    whole, left = set_weights(len(i.y), i.m)
    ends = jax.vmap(functools.partial(descended, i))(jnp.asarray(whole))
    others = jax.vmap(jax.vmap(functools.partial(descended, i)))(jnp.asarray(left))
    N = jnp.maximum(
        jnp.max(jax.vmap(model.widest)(ends)), jnp.max(jax.vmap(jax.vmap(model.widest))(others))
    )
    distances = jax.vmap(jax.vmap(lambda a: model.length(i, a)))(ends[:, None] - others)
    return constants.beta_1(N, i.R, i.T, i.readout), jnp.mean(distances)


def _stability(i: PopulationInstance, variant: str) -> Sides:
    G, distance = _lipschitz(i)
    return gap_sides(i, 2 * G * distance, {"G": G, "stability": distance})


def _stability_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    widths, distances = [], []
    for weights, rest in _naive_sets(num, data):
        end = _naive_descend(num, data, weights)
        widths.append(naive.widest(num, end))
        for lacking in rest:
            other = _naive_descend(num, data, lacking)
            widths.append(naive.widest(num, other))
            distances.append(naive.length(num, data, naive.difference(end, other)))
    R, (T, _) = naive.token_bound(num, data), naive.shape(data)
    G = naive_constants.beta_1(num, num.largest(widths), R, T, data["readout"])
    return naive_gap_sides(num, data, 2 * G * num.total(distances) / len(distances))


on_populations(
    "lemma-3",
    "Stability bounds the generalisation gap",
    "Lemma 3",
    "E[Ltest(theta_K) - L(theta_K)] <= 2 G E[(1/n) sum_i |theta_K - theta_K^{-i}|] where samples' "
    "losses are G-Lipschitz; G = beta_1 at the longest head of all runs.",
    r"\mathbb E[L(\theta_K)-\widehat L(\theta_K)]\le2G\,\mathbb E\bigl[\tfrac1n\textstyle\sum_i"
    r"\|\theta_K-\theta_K^{-i}\|\bigr]",
    sides=_stability,
    naive=_stability_naive,
    forms="exact expectations over a finite population",
    errata=("E32",),
)


def _gap(i: PopulationInstance, variant: str) -> Sides:
    L_theta = model.loss(i, i.target)
    rhs = constants.gap_bound(L_theta, i.D, i.eta, i.K, i.m)
    return gap_sides(i, rhs, {"E L(theta)": L_theta, "D": i.D, "eta": i.eta})


def _gap_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    L_theta = naive.loss(num, data, naive_runs.target(num, data))
    D, m, K = naive_runs.distance(num, data), int(data["m"]), int(data["K"])
    rhs = num.number(4) / m * (2 * K * L_theta + 9 * D * D / (4 * data["eta"]))
    return naive_gap_sides(num, data, rhs)


def _promised_gap(setting: Setting, variant: str) -> Bound:
    s, eta = setting, setting.step(variant, stable=True)
    table = {"D": s.D, "N": s.N, "R": s.R, "eta": eta}
    return Bound(float(constants.gap_bound(s.L_theta, s.D, eta, s.K, s.n)), table)


def _required_for_gap(setting: Setting, variant: str) -> tuple[Check, ...]:
    s = setting
    root = constants.required_root(s.D, s.N, s.R, s.T, s.d, variant, s.readout, factor=128)
    return (
        Check("(84): required sqrt(H) over sqrt(H)", root / float(s.H) ** 0.5, 1.0),
        Check(
            "eta over its largest value",
            s.step(variant, stable=True) / s.largest_step(variant, stable=True),
            1.0,
        ),
    )


on_populations(
    "theorem-4",
    "Generalisation gap",
    "Theorem 4 = Theorem 2",
    "With (84) and eta of Theorem 3 (both for every training set), E[Ltest(theta_K) - L(theta_K)] "
    "<= (4/n) E[2 K L(theta) + 9 D^2/(4 eta)].",
    r"\mathbb E[L(\theta_K)-\widehat L(\theta_K)]\le\frac4n\,\mathbb E\Bigl[2K\widehat L(\theta)"
    r"+\frac{9\|\theta-\theta_0\|^2}{4\eta}\Bigr]",
    sides=_gap,
    naive=_gap_naive,
    hypotheses=(WIDER, SURE_STEP),
    forms={**HESSIAN_TIERS, "sharp": SHARP_GAP},
    bound=_promised_gap,
    requires=_required_for_gap,
    quantity="gap",
    errata=("E32",),
)


def _labelled(i: PopulationInstance, tier: str) -> Any:
    """A population that the target labels: L(theta) <= log 2 <= 1/K surely."""
    inside: Any = _project(i, tier)
    labels = jnp.where(model.outputs(inside, inside.target) >= 0, 1.0, -1.0)
    relabelled = replace(inside, y=labels)
    step = jnp.minimum(sure_step(relabelled, tier), relabelled.D**2)
    return replace(relabelled, eta=jnp.minimum(inside.eta, (1 - 1e-9) * step))


SURELY_REALIZED = Hypothesis(
    "Assumption 2 surely: K max_i l_i(theta) <= 1",
    lambda i: i.K * jnp.max(model.losses(i, i.target)),
    lambda num, data: (
        int(data["K"])
        * num.largest([p.loss for p in naive.samples(num, data, naive_runs.target(num, data))])
    ),
)


def _realizable(i: PopulationInstance, variant: str) -> Sides:
    return gap_sides(i, 17 * i.D**2 / (i.eta * i.m), {"g_0": i.D, "eta": i.eta})


def _realizable_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    D = naive_runs.distance(num, data)
    return naive_gap_sides(num, data, 17 * D * D / (data["eta"] * int(data["m"])))


on_populations(
    "corollary-4",
    "Generalisation gap under realizability",
    "Corollary 4",
    "If some theta with L(theta) <= 1/K lies within g_0 of theta_0 for every training set, then "
    "E[Ltest(theta_K) - L(theta_K)] <= 17 g_0^2/(eta n).",
    r"\mathbb E[L(\theta_K)-\widehat L(\theta_K)]\le\frac{17g_0(1/K)^2}{\eta n}",
    sides=_realizable,
    naive=_realizable_naive,
    families=tuple(_population(tier, _labelled, K=1) for tier in ("v2", "v1", "sharp")),
    hypotheses=(SURELY_REALIZED, WIDER, SURE_STEP),
    forms={**HESSIAN_TIERS, "sharp": SHARP_GAP},
    errata=("E14", "E32"),
)


def _draw_start(rng: np.random.Generator, count: int, **shape: Any) -> PopulationStart:
    start = draw_starts(rng, count, **shape)
    return PopulationStart(**{f.name: getattr(start, f.name) for f in fields(StartInstance)}, m=2)


def _from_start(i: PopulationStart, variant: str) -> Sides:
    rhs = 17 * squared_stretch(variant) * i.G**2 / (i.eta * i.m)
    return gap_sides(i, rhs, {"gamma": i.gamma, "H": i.H, "eta": i.eta})


def _from_start_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    s = NaiveStart(num, data)
    factor = 17 if variant in ("printed", "sharp") else 34
    return naive_gap_sides(num, data, factor * s.G**2 / (data["eta"] * int(data["m"])))


def _promised_from_start(setting: Setting, variant: str) -> Bound:
    s, form = setting, form_of(variant)
    eta = s.eta if s.eta is not None else s.start_step(tier_of(variant), form, stable=True)
    g0 = s.g_0(form)
    return Bound(17 * g0**2 / (eta * s.n), {"g_0": g0, "eta": eta, "gamma": s.gamma})


def _start_families() -> tuple[Any, ...]:
    return tuple(
        replace(
            start_family(f"population, {form}", form, training_root, stable_step),
            draw=functools.partial(_draw_start, n=2, d=2, T=2, G=2, K=3, readout="full"),
        )
        for form in ("v2", "v1", "printed", "sharp")
    )


on_populations(
    "corollary-5-gap",
    "Generalisation gap from a good start",
    "Corollary 5 = Corollary 2, second half of (5) and (101)",
    "From a start that is good for every training set, E[Ltest(theta_K) - L(theta_K)] <= "
    "17 g_0^2/(eta n), g_0 = sqrt(2) (2 B_Phi + log K)/gamma.",
    r"\mathbb E[L(\theta_K)-\widehat L(\theta_K)]\le\frac{34(2B_\Phi+\log K)^2}{\gamma^2\eta n}",
    sides=_from_start,
    naive=_from_start_naive,
    families=_start_families(),
    hypotheses=STABLE_TRAINING,
    bound=_promised_from_start,
    requires=functools.partial(required, stable=True),
    quantity="gap",
    forms={
        "corrected": ("g_0 = sqrt(2) G: 34 for 17", "E2"),
        "printed": ("g_0 = G: the proof is wrong, the bound is not", "E2"),
        "v1": ("as corrected, with the first text's beta_3", "E9"),
        "sharp": (f"g_0 = G, with {SHARP_GAP[0]}", "E9"),
    },
    errata=("E2", "E32"),
)
