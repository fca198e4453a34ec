"""Proposition 1 of arda2026: ProjSGD in expectation over the indices.

On a point the expectation is exact: all n^tau index sequences are run.
"""

import functools

import jax.numpy as jnp

from ....theory import Kind
from ..runs import StochasticRun
from ..twins_runs import run
from .theorem_1 import (
    CLOSED,
    FORMS,
    THEOREM,
    average,
    closed,
    decided,
    decided_with_step,
    on_runs,
)

RULE = "projsgd"
CLOSED_FORMS = {"printed": FORMS["printed"], "sharp": FORMS["sharp"]}
on_stochastic_runs = functools.partial(
    on_runs,
    on=StochasticRun,
    shapes=None,
    kind=Kind.EXPECTATION,
    given=THEOREM,
    requires=functools.partial(decided_with_step, rule=RULE),
    proved="App. A.8",
)


def runs_slowly(num, i):
    """A run along every sequence of indices."""
    n, tau = len(i["X"]), int(i["tau"])
    return [run(num, i, [number // n**s % n for s in range(tau)]) for number in range(n**tau)]


@on_stochastic_runs(
    "proposition-1",
    "ProjSGD, best iterate in expectation",
    where="Proposition 1, (47)-(49)",
    says=r"\mathbb E\big[\min_{s<\tau}\widehat{\mathcal L}_n(\varphi^{(s)})\mid\varphi^{(0)}"
    r"\big]\le\frac{\|\bar\nu\|^2+B_{grad}}{4\sqrt\tau}+(f^{\max}+y^{\max})"
    r"(B_{app}+B_{lin}+B_{CoF})",
    forms=CLOSED_FORMS,
    right=closed,
    trivial=lambda k: k.loss_at_start,
    quantity="loss",
)
def proposition_1(traces):
    """Under the conditions of Theorem 1, with one index drawn uniformly at each step: E[min over
    s < tau of L_s | phi0] <= (|nu|^2 + B_grad)/(4 sqrt tau)
    + (f_max + y_max)(B_app + B_lin + B_CoF)."""
    return jnp.mean(jnp.min(traces.loss, axis=1))


@proposition_1.twin
def _(num, i):
    best = [num.smallest(s.loss for s in one.steps) for one in runs_slowly(num, i)]
    return sum(best) / len(best)


@on_stochastic_runs(
    "eq-48",
    "ProjSGD, mean loss in expectation",
    where="(48)",
    says=r"\frac1\tau\sum_{s<\tau}\mathbb E[\widehat{\mathcal L}_n(\varphi^{(s)})\mid\varphi^{(0)}]"
    r"\le\frac{\|\bar\nu\|^2}{4\eta\tau}+(f^{\max}+y^{\max})(B_{app}+B_{lin}+B_{CoF})"
    r"+\frac\eta4B_{grad}",
    forms={
        **CLOSED_FORMS,
        "measured": "before its constants: V0/(4 eta tau) + E mean (f-y)(errors) "
        "+ (eta/4) E mean |grad l_J|^2",
    },
    right=closed,
    trivial=lambda k: k.known_loss,
    given=CLOSED,
    requires=functools.partial(decided, rule=RULE),
    quantity="loss",
)
def eq_48(traces, trace, form):
    """Under the conditions of Theorem 1, for any step size: the mean of E[L_s | phi0] is at most
    |nu|^2/(4 eta tau) + (f_max + y_max)(B_app + B_lin + B_CoF) + eta B_grad/4."""
    mean = jnp.mean(traces.loss)
    if form != "measured":
        return mean
    start = trace.V0 / (4 * trace.eta * trace.tau)
    return mean, start + jnp.mean(traces.cross) + trace.eta / 4 * jnp.mean(traces.gradient)


@eq_48.twin
def _(num, i, form):
    steps = [s for one in runs_slowly(num, i) for s in one.steps]
    mean = sum(s.loss for s in steps) / len(steps)
    if form != "measured":
        return mean
    cross = sum(s.cross for s in steps) / len(steps)
    gradient = sum(s.gradient for s in steps) / len(steps)
    start = steps[0].distance / (4 * i["eta"] * int(i["tau"]))
    return mean, start + cross + i["eta"] / 4 * gradient


@on_stochastic_runs(
    "proposition-1-average",
    "ProjSGD, average iterate in expectation",
    where="Proposition 1, (48) in (50)",
    says=r"\mathbb E[\widehat{\mathcal L}_n(\bar\varphi^{(\tau)})\mid\varphi^{(0)}]\le"
    r"\frac{\|\bar\nu\|^2+B_{grad}}{\sqrt\tau}+4(f^{\max}+y^{\max})(B_{app}+B_{lin}+B_{CoF})"
    r"+6B_{lin}^2",
    forms=CLOSED_FORMS,
    right=average,
    trivial=lambda k: k.known_loss,
    quantity="loss",
)
def proposition_1_average(traces):
    """Under the conditions of Theorem 1, E[L(average iterate) | phi0] <= (|nu|^2 + B_grad)/sqrt tau
    + 4 (f_max + y_max)(B_app + B_lin + B_CoF) + 6 B_lin^2."""
    return jnp.mean(traces.average_loss)


@proposition_1_average.twin
def _(num, i):
    losses = [one.average_loss for one in runs_slowly(num, i)]
    return sum(losses) / len(losses)
