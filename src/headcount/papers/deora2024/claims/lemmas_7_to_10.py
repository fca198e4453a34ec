"""Lemmas 7-10 of deora2024: descent, regret and bounded iterates of gradient descent."""

from __future__ import annotations

import functools

import jax.numpy as jnp

from ....theory import Sides
from .. import twins_runs as slow
from ..conditions import DESCENT, NEAR, REACHABLE, SMOOTH_STEP, WIDE
from ..constants import HESSIAN_TIERS, START_LOSS, state
from ..fits import STEPS
from ..records import Run

_SHARP_FIRST = {form: HESSIAN_TIERS[form] for form in ("sharp", "v2", "v1")}
on_runs = functools.partial(
    state.claim,
    on=Run,
    shapes=STEPS,
    forms=HESSIAN_TIERS,
    proved="Sec. 6.1, App. B.3",
)


@on_runs(
    "lemma-7",
    "Descent",
    where="Lemma 7, Eqs. (13), (68)",
    says=r"\widehat L(\theta_{k+1})\le\widehat L(\theta_k)"
    r"-\tfrac\eta2\|\nabla\widehat L(\theta_k)\|^2",
    given=(SMOOTH_STEP,),
    no_rival="the rival of a step that descends is one that does not",
    forms=_SHARP_FIRST,
    notes=("E31",),
)
def lemma_7(trace):
    """With eta <= 1/rho_k, rho_k = beta_2(theta_k) v beta_2(theta_{k+1}), each step lowers the loss
    by at least (eta/2)|grad L|^2. rho_k is known only after the step."""
    t = trace
    return Sides(t.loss[1:] + t.eta / 2 * t.gradient, t.loss[:-1], {"eta": t.eta})


@lemma_7.twin
def _(num, run):
    done = slow.run(num, run)
    steps = zip(done.loss[1:], done.gradient, strict=True)
    return [after + run["eta"] / 2 * g for after, g in steps], done.loss[:-1]


@on_runs(
    "lemma-8",
    "Regret of gradient descent",
    where="Lemma 8, Eqs. (17), (69)",
    says=r"\tfrac1K\sum_{k=1}^K\widehat L(\theta_k)\le\widehat L(\theta)"
    r"+\frac{\|\theta-\theta_0\|^2}{2\eta K}+\frac1{2K}\sum_{k=0}^{K-1}\tau_k\|\theta-\theta_k\|^2",
    given=(DESCENT,),
    trivial=START_LOSS,
    forms={
        **HESSIAN_TIERS,
        "measured": "tau_k as small as the run allows: what (16) needs at theta and theta_k",
    },
    notes=("E13",),
)
def lemma_8(trace, form):
    """If every step descends, the mean loss of steps 1..K is at most L(theta) + D^2/(2 eta K) +
    (1/2K) sum_k tau_k |theta - theta_k|^2, for every theta."""
    t = trace
    if form == "measured":
        bend = jnp.sum(jnp.maximum(t.tangent, 0.0)) / t.K
    else:
        tau = t.beta_3(form) / jnp.sqrt(t.H) * t.highest
        bend = jnp.sum(tau * t.away[:-1] ** 2) / (2 * t.K)
    start = t.D**2 / (2 * t.eta * t.K)
    parts = {"L(theta)": t.L_theta, "start": start, "curvature": bend}
    return Sides(jnp.mean(t.loss[1:]), t.L_theta + start + bend, parts)


@lemma_8.twin
def _(num, run, form):
    done, K = slow.run(num, run), int(run["K"])
    if form == "measured":
        bend = num.total([num.positive_part(x) for x in done.tangent]) / K
    else:
        root = num.sqrt(done.H)
        terms = zip(done.beta_3(form), done.highest, done.away[:-1], strict=True)
        bend = num.total([b / root * top * x * x for b, top, x in terms]) / (2 * K)
    start = done.D**2 / (2 * run["eta"] * K)
    return num.total(done.loss[1:]) / K, done.L_theta + start + bend


@on_runs(
    "lemma-9",
    "Regret with many heads",
    where="Lemma 9, Eqs. (70), (71)",
    says=r"\tfrac1K\sum_{k=1}^K\widehat L(\theta_k)\le2\widehat L(\theta)"
    r"+\frac{3\|\theta-\theta_0\|^2}{4\eta K}+\frac{\widehat L(\theta_0)}{2K}",
    given=(DESCENT, NEAR),
    trivial=START_LOSS,
    forms=_SHARP_FIRST,
    notes=("E13",),
)
def lemma_9(trace):
    """If every step descends and sqrt(H) >= 2 (beta_3(theta) v beta_3(theta_k)) |theta - theta_k|^2
    for k = 0..K-1, the mean loss is at most 2 L(theta) + 3 D^2/(4 eta K) + L(theta_0)/(2K)."""
    t = trace
    rhs = 2 * t.L_theta + 3 * t.D**2 / (4 * t.eta * t.K) + t.loss[0] / (2 * t.K)
    return Sides(jnp.mean(t.loss[1:]), rhs, {"L(theta)": t.L_theta, "D": t.D})


@lemma_9.twin
def _(num, run):
    done, K = slow.run(num, run), int(run["K"])
    rhs = 2 * done.L_theta + 3 * done.D**2 / (4 * run["eta"] * K) + done.loss[0] / (2 * K)
    return num.total(done.loss[1:]) / K, rhs


@on_runs(
    "lemma-10",
    "Iterates stay near the target",
    where="Lemma 10, Eqs. (73)-(75)",
    says=r"\|\theta_k-\theta\|\le3\|\theta-\theta_0\|",
    given=(DESCENT, REACHABLE, WIDE),
    no_rival="a run of any step size may go any distance",
    forms={
        **_SHARP_FIRST,
        "sharp": ("sharp beta_3, and sqrt(13/3) for 3, as the proof gives it", "E9"),
    },
    notes=("E13",),
)
def lemma_10(trace, form):
    """Under descent, (73) and (74), |theta_k - theta| <= 3 |theta - theta_0| for k <= K."""
    return jnp.max(trace.away), ((13 / 3) ** 0.5 if form == "sharp" else 3.0) * trace.D


@lemma_10.twin
def _(num, run, form):
    done = slow.run(num, run)
    factor = num.sqrt(num.number(13) / 3) if form == "sharp" else num.number(3)
    return num.largest(done.away), factor * done.D


@on_runs(
    "eq-70",
    "Regret of every run, measured",
    where="Eq. (70), before descent is used",
    says=r"\tfrac1K\sum_{k<K}\widehat L(\theta_k)\le\widehat L(\theta)+\frac{D^2}{2\eta K}"
    r"+\frac\eta2\,\overline{\|\nabla\widehat L\|^2}+\overline{[\cdot]_+}",
    forms={"measured": "everything on the right is measured on the run"},
    no_rival="a run that does not descend may have any loss",
)
def eq_70(trace):
    """For every run of gradient descent and every theta, the mean of L(theta_0..K-1) is at most
    L(theta) + D^2/(2 eta K) + (eta/2) mean |grad L|^2 + mean [tangent]_+, with the curvature that
    the run really met. No hypothesis."""
    t = trace
    start, steps = t.D**2 / (2 * t.eta * t.K), t.eta / 2 * jnp.mean(t.gradient)
    bend = jnp.mean(jnp.maximum(t.tangent, 0.0))
    parts = {"L(theta)": t.L_theta, "start": start, "steps": steps, "curvature": bend}
    return Sides(jnp.mean(t.loss[:-1]), t.L_theta + start + steps + bend, parts)


@eq_70.twin
def _(num, run):
    done, K = slow.run(num, run), int(run["K"])
    start = done.D**2 / (2 * run["eta"] * K)
    steps = run["eta"] / 2 * num.total(done.gradient) / K
    bend = num.total([num.positive_part(x) for x in done.tangent]) / K
    return num.total(done.loss[:-1]) / K, done.L_theta + start + steps + bend
