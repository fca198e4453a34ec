"""Lemmas 7-10 of deora2024: descent, regret and bounded iterates of gradient descent."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from ...theory import Hypothesis, Sides
from ...theory.slow import Arithmetic
from . import constants, naive, naive_constants, naive_runs
from .declare import HESSIAN_TIERS, claim
from .naive import Data
from .runs import STEPS, as_trace, ends

Instance = Any


def _descent(i: Instance) -> Any:
    t = as_trace(i)
    return jnp.max((t.loss[1:] + t.eta / 2 * t.gradient) / t.loss[:-1])


def _descent_naively(num: Arithmetic, data: Data) -> Any:
    done = naive_runs.run(num, data)
    terms = zip(done.loss[1:], done.gradient, done.loss[:-1], strict=True)
    return num.largest([(after + data["eta"] / 2 * g) / before for after, g, before in terms])


DESCENT = Hypothesis(
    "descent (68): L(theta_{k+1}) + (eta/2)|grad L|^2 <= L(theta_k)", _descent, _descent_naively
)


def _width_limit(i: Instance, variant: str, factor: int) -> Any:
    B = constants.reach(i.D, i.N)
    beta = constants.beta_3(B, i.R, i.T, i.d, variant, i.readout)
    return jnp.sqrt(i.H) / (factor * beta)


def _width_limit_naively(num: Arithmetic, data: Data, variant: str, factor: int) -> Any:
    B = 3 * naive_runs.distance(num, data) + naive_runs.width(num, data)
    R, rest = naive.token_bound(num, data), (*naive.shape(data), variant, data["readout"])
    beta = naive_constants.beta_3(num, B, R, *rest)
    return num.sqrt(naive.total(num, data)) / (factor * beta)


def wide(name: str, factor: int) -> Hypothesis:
    """sqrt(H) >= factor beta_3[N -> B] D^2, written as a bound on D^2."""
    return Hypothesis(
        f"{name}: D^2 <= sqrt(H)/({factor} beta_3(B))",
        lambda i: i.D**2,
        lambda num, data: naive_runs.distance(num, data) ** 2,
        threshold=functools.partial(_width_limit, factor=factor),
        naive_threshold=functools.partial(_width_limit_naively, factor=factor),
    )


WIDE = wide("(74)", 18)


def _reachable(i: Instance) -> Any:
    L_theta, L_0 = ends(i)
    return i.eta * jnp.maximum(i.K * L_theta, L_0) / i.D**2


def _reachable_naively(num: Arithmetic, data: Data) -> Any:
    L_theta = naive.loss(num, data, naive_runs.target(num, data))
    L_0 = naive.loss(num, data, naive.parameters(data))
    largest = num.largest([int(data["K"]) * L_theta, L_0])
    return data["eta"] * largest / naive_runs.distance(num, data) ** 2


REACHABLE = Hypothesis(
    "(73): eta max(K L(theta), L(theta_0)) <= D^2", _reachable, _reachable_naively
)


def _smooth_limit(i: Instance, variant: str) -> Any:
    return 1 / jnp.max(as_trace(i).beta_2(variant))


def _smooth_limit_naively(num: Arithmetic, data: Data, variant: str) -> Any:
    return 1 / num.largest(naive_runs.run(num, data).beta_2(variant))


def short_step(
    name: str, limit: Callable[[Any, str], Any], naive_limit: Callable[[Any, Data, str], Any]
) -> Hypothesis:
    """eta <= limit, written as 1 <= limit/eta: limits of 1e-13 would drown in a check's slack."""
    return Hypothesis(
        f"{name}, as 1 <= limit/eta",
        lambda i: jnp.ones(()),
        lambda num, data: num.number(1),
        threshold=lambda i, variant: limit(i, variant) / i.eta,
        naive_threshold=lambda num, data, variant: naive_limit(num, data, variant) / data["eta"],
    )


SHORT_STEP = short_step("eta <= 1/rho_k", _smooth_limit, _smooth_limit_naively)


def _near_limit(i: Instance, variant: str) -> Any:
    """The largest D^2 that Lemma 9's condition allows, in units of the distances of the run."""
    t = as_trace(i)
    return jnp.min(jnp.sqrt(t.H) / (2 * t.beta_3(variant) * (t.away[:-1] / t.D) ** 2))


def _near_limit_naively(num: Arithmetic, data: Data, variant: str) -> Any:
    done = naive_runs.run(num, data)
    root = num.sqrt(done.H)
    pairs = zip(done.beta_3(variant), done.away[:-1], strict=True)
    return num.smallest([root / (2 * beta * (x / done.D) ** 2) for beta, x in pairs])


NEAR = Hypothesis(
    "sqrt(H) >= 2 beta_3 |theta - theta_k|^2, as a bound on D^2",
    lambda i: i.D**2,
    lambda num, data: naive_runs.distance(num, data) ** 2,
    threshold=_near_limit,
    naive_threshold=_near_limit_naively,
)

on_runs = functools.partial(claim, families=STEPS, forms=HESSIAN_TIERS, where="Sec. 6.1, App. B.3")


def _descends(i: Instance, variant: str) -> Sides:
    t = as_trace(i)
    return Sides(t.loss[1:] + t.eta / 2 * t.gradient, t.loss[:-1], {"eta": t.eta})


def _descends_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    done = naive_runs.run(num, data)
    steps = zip(done.loss[1:], done.gradient, strict=True)
    return [after + data["eta"] / 2 * g for after, g in steps], done.loss[:-1]


on_runs(
    "lemma-7",
    "Descent",
    "Lemma 7, Eqs. (13), (68)",
    "With eta <= 1/rho_k, rho_k = beta_2(theta_k) v beta_2(theta_{k+1}), each step lowers the loss "
    "by at least (eta/2)|grad L|^2. rho_k is known only after the step.",
    r"\widehat L(\theta_{k+1})\le\widehat L(\theta_k)-\tfrac\eta2\|\nabla\widehat L(\theta_k)\|^2",
    sides=_descends,
    naive=_descends_naive,
    hypotheses=(SHORT_STEP,),
    forms={"sharp": HESSIAN_TIERS["sharp"], "v2": HESSIAN_TIERS["v2"], "v1": HESSIAN_TIERS["v1"]},
    errata=("E31",),
)


def _regret(i: Instance, variant: str) -> Sides:
    t = as_trace(i)
    if variant == "measured":
        bend = jnp.sum(jnp.maximum(t.tangent, 0.0)) / t.K
    else:
        tau = t.beta_3(variant) / jnp.sqrt(t.H) * t.highest
        bend = jnp.sum(tau * t.away[:-1] ** 2) / (2 * t.K)
    start = t.D**2 / (2 * t.eta * t.K)
    parts = {"L(theta)": t.L_theta, "start": start, "curvature": bend}
    return Sides(jnp.mean(t.loss[1:]), t.L_theta + start + bend, parts)


def _regret_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    done, K = naive_runs.run(num, data), int(data["K"])
    if variant == "measured":
        bend = num.total([num.positive_part(x) for x in done.tangent]) / K
    else:
        root = num.sqrt(done.H)
        terms = zip(done.beta_3(variant), done.highest, done.away[:-1], strict=True)
        bend = num.total([b / root * top * x * x for b, top, x in terms]) / (2 * K)
    start = done.D**2 / (2 * data["eta"] * K)
    return num.total(done.loss[1:]) / K, done.L_theta + start + bend


on_runs(
    "lemma-8",
    "Regret of gradient descent",
    "Lemma 8, Eqs. (17), (69)",
    "If every step descends, the mean loss of steps 1..K is at most L(theta) + D^2/(2 eta K) + "
    "(1/2K) sum_k tau_k |theta - theta_k|^2, for every theta.",
    r"\tfrac1K\sum_{k=1}^K\widehat L(\theta_k)\le\widehat L(\theta)+\frac{\|\theta-\theta_0\|^2}"
    r"{2\eta K}+\frac1{2K}\sum_{k=0}^{K-1}\tau_k\|\theta-\theta_k\|^2",
    sides=_regret,
    naive=_regret_naive,
    hypotheses=(DESCENT,),
    forms={
        **HESSIAN_TIERS,
        "measured": "tau_k as small as the run allows: what (16) needs at theta and theta_k",
    },
    errata=("E13",),
)


def _closed_regret(i: Instance, variant: str) -> Sides:
    t = as_trace(i)
    rhs = 2 * t.L_theta + 3 * t.D**2 / (4 * t.eta * t.K) + t.loss[0] / (2 * t.K)
    return Sides(jnp.mean(t.loss[1:]), rhs, {"L(theta)": t.L_theta, "D": t.D}, t.loss[0])


def _closed_regret_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    done, K = naive_runs.run(num, data), int(data["K"])
    rhs = 2 * done.L_theta + 3 * done.D**2 / (4 * data["eta"] * K) + done.loss[0] / (2 * K)
    return num.total(done.loss[1:]) / K, rhs


on_runs(
    "lemma-9",
    "Regret with many heads",
    "Lemma 9, Eqs. (70), (71)",
    "If every step descends and sqrt(H) >= 2 (beta_3(theta) v beta_3(theta_k)) |theta - theta_k|^2 "
    "for k = 0..K-1, the mean loss is at most 2 L(theta) + 3 D^2/(4 eta K) + L(theta_0)/(2K).",
    r"\tfrac1K\sum_{k=1}^K\widehat L(\theta_k)\le2\widehat L(\theta)"
    r"+\frac{3\|\theta-\theta_0\|^2}{4\eta K}+\frac{\widehat L(\theta_0)}{2K}",
    sides=_closed_regret,
    naive=_closed_regret_naive,
    hypotheses=(DESCENT, NEAR),
    forms={"sharp": HESSIAN_TIERS["sharp"], "v2": HESSIAN_TIERS["v2"], "v1": HESSIAN_TIERS["v1"]},
    errata=("E13",),
)


def _near_target(i: Instance, variant: str) -> Sides:
    t = as_trace(i)
    return Sides(jnp.max(t.away), ((13 / 3) ** 0.5 if variant == "sharp" else 3.0) * t.D)


def _near_target_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    done = naive_runs.run(num, data)
    factor = num.sqrt(num.number(13) / 3) if variant == "sharp" else num.number(3)
    return num.largest(done.away), factor * done.D


on_runs(
    "lemma-10",
    "Iterates stay near the target",
    "Lemma 10, Eqs. (72)-(74)",
    "Under descent, (73) and (74), |theta_k - theta| <= 3 |theta - theta_0| for k <= K.",
    r"\|\theta_k-\theta\|\le3\|\theta-\theta_0\|",
    sides=_near_target,
    naive=_near_target_naive,
    hypotheses=(DESCENT, REACHABLE, WIDE),
    forms={
        "sharp": ("sharp beta_3, and sqrt(13/3) for 3, as the proof gives it", "E9"),
        "v2": HESSIAN_TIERS["v2"],
        "v1": HESSIAN_TIERS["v1"],
    },
    errata=("E13",),
)


def _every_run(i: Instance, variant: str) -> Sides:
    t = as_trace(i)
    start, steps = t.D**2 / (2 * t.eta * t.K), t.eta / 2 * jnp.mean(t.gradient)
    bend = jnp.mean(jnp.maximum(t.tangent, 0.0))
    parts = {"L(theta)": t.L_theta, "start": start, "steps": steps, "curvature": bend}
    return Sides(jnp.mean(t.loss[:-1]), t.L_theta + start + steps + bend, parts)


def _every_run_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    done, K = naive_runs.run(num, data), int(data["K"])
    start = done.D**2 / (2 * data["eta"] * K)
    steps = data["eta"] / 2 * num.total(done.gradient) / K
    bend = num.total([num.positive_part(x) for x in done.tangent]) / K
    return num.total(done.loss[:-1]) / K, done.L_theta + start + steps + bend


on_runs(
    "eq-70",
    "Regret of every run, measured",
    "Eq. (70), before descent is used",
    "For every run of gradient descent and every theta, the mean of L(theta_0..K-1) is at most "
    "L(theta) + D^2/(2 eta K) + (eta/2) mean |grad L|^2 + mean [tangent]_+, with the "
    "curvature that "
    "the run really met. No hypothesis.",
    r"\tfrac1K\sum_{k<K}\widehat L(\theta_k)\le\widehat L(\theta)+\frac{D^2}{2\eta K}"
    r"+\frac\eta2\,\overline{\|\nabla\widehat L\|^2}+\overline{[\cdot]_+}",
    sides=_every_run,
    naive=_every_run_naive,
    forms={"measured": "everything on the right is measured on the run"},
)
