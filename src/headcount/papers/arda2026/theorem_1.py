"""Theorem 1 of arda2026 with explicit constants: (43), (44), (45), (46) and the average iterate.

On a run they are conditioned on E_U through the realised B_U, and on E_app as a hypothesis that
is checked; for a setting they use the a priori B_U of Remark 7, and |nu|^2 >= V(phi0).
"""

from __future__ import annotations

import functools
from typing import Any

import jax.numpy as jnp

from ...core import activation_named
from ...theory import Bound, Sides
from ...theory.slow import Arithmetic
from . import constants, naive_constants, naive_theorem
from .declare import claim
from .naive import Data, Number
from .naive_runs import run
from .run_hypotheses import CLOSED, INSIDE, PAIRED_START, STEP_SIZE, UNIT_TOKENS
from .run_hypotheses import decided_by_setting as decided
from .runs import THEOREM_RUNS, RunTrace, as_trace
from .setting import Setting

FORMS = {
    "printed": "|nu|^2 and the paper's constants; B_app with s1 nu_w as the appendix proves it",
    "sharp": "the sharp constants in place of the printed ones",
    "measured": "V(phi0) of the run in place of |nu|^2, which bounds it",
}
declare = functools.partial(claim, families=THEOREM_RUNS, needs_event=True, where="App. A.7")


def _tier(variant: str) -> str:
    return "sharp" if variant == "sharp" else "printed"


def run_constants(trace: RunTrace, variant: str) -> dict[str, Any]:
    """The constants at the run's realised B_U and delta."""
    sizes: dict[str, Any] = {"d": trace.d, "m": trace.m, "n": trace.n, "delta": trace.delta}
    sigma = activation_named(trace.activation)
    found = constants.constants_at(
        sigma, trace.B_U, trace.rho, trace.nu, **sizes, tier=_tier(variant)
    )
    return found.to_dict()


def closed_terms(k: Any, start: Number, eta: Number, tau: Any) -> dict[str, Any]:
    """The two summands of (44): k are the constants, start is V(phi0) or |nu|^2."""
    errors = k["B_app"] + k["B_lin"] + k["B_CoF"]
    return {
        "optimisation": start / (4 * eta * tau) + eta * k["B_grad"] / 4,
        "errors": (k["f_max"] + k["y_max"]) * errors,
    }


def known_loss(trace: RunTrace) -> Any:
    """What bounds the loss on Omega_rho without the theorem."""
    sigma = activation_named(trace.activation)
    return constants.known_loss(sigma, trace.B_U, trace.rho, trace.nu, trace.m)


def closed_side(trace: RunTrace, variant: str, lhs: Any, *, distance: bool) -> Sides:
    """lhs against the right side of (44), started from V(phi0) or from |nu|^2."""
    k = run_constants(trace, variant)
    start = trace.distance[0] if distance else jnp.sum(trace.nu**2)
    terms = closed_terms(k, start, trace.eta, trace.tau)
    return Sides(lhs, sum(terms.values()), {**k, **terms}, known_loss(trace))


def setting_bound(setting: Setting, variant: str) -> Bound:
    """The right side of (45), for any step size, and what is known of the mean loss without it."""
    k = constants.constants(setting, _tier(variant)).to_dict()
    terms = closed_terms(k, k["nu_norm"] ** 2, setting.step, setting.tau)
    known = constants.known_loss(setting.sigma, k["B_U"], setting.rho, setting.nu, setting.m)
    return Bound(sum(terms.values()), {**k, **terms}, float(known))


def best_bound(setting: Setting, variant: str) -> Bound:
    """As `setting_bound`; a best iterate is no worse than L(phi0) <= y_max*^2."""
    known = constants.label_envelope(setting.sigma, setting.nu, setting.d, "sharp") ** 2
    return setting_bound(setting, variant)._replace(trivial=known)


def average_bound(setting: Setting, variant: str) -> Bound:
    """(45) in (46)."""
    mean = setting_bound(setting, variant)
    return mean._replace(rhs=4 * mean.rhs + 6 * mean.constants["B_lin"] ** 2)


def _one_step(instance: Any, variant: str) -> Sides:
    """Both sides of (43) for every step, each with nothing to subtract."""
    trace = as_trace(instance)
    k = run_constants(trace, variant)
    errors = closed_terms(k, 0.0, trace.eta, 1)["errors"]
    rhs = trace.distance[:-1] + 4 * trace.eta * errors + trace.eta**2 * k["B_grad"]
    farthest = (constants.length(trace.nu) + constants.length(trace.rho)) ** 2
    known = farthest + 4 * trace.eta * known_loss(trace)
    return Sides(trace.distance[1:] + 4 * trace.eta * trace.loss, rhs, k, known)


def _one_step_naively(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    k, eta = naive_constants.table(num, data, _tier(variant)), data["eta"]
    rest = 4 * eta * naive_theorem.error_term(k) + eta * eta * k["B_grad"]
    steps = run(num, data).steps
    left = [s.distance_after + 4 * eta * s.loss for s in steps]
    return left, [s.distance + rest for s in steps]


declare(
    "eq-43",
    "Lyapunov drift of one step with explicit constants",
    "(43)",
    "On E_U and E_app, V(s+1) - V(s) <= -4 eta L_s + 4 eta (f_max + y_max)(B_app + B_lin + B_CoF) "
    "+ eta^2 B_grad for every step.",
    r"\mathcal V(\varphi^{(s+1)})-\mathcal V(\varphi^{(s)})\le-4\eta\widehat{\mathcal L}_n"
    r"+4\eta(f^{\max}+y^{\max})(B_{app}+B_{lin}+B_{CoF})+\eta^2B_{grad}",
    sides=_one_step,
    naive=_one_step_naively,
    forms={"printed": "constants of the paper", "sharp": FORMS["sharp"]},
    hypotheses=CLOSED,
)


def _mean_loss(instance: Any, variant: str) -> Sides:
    trace = as_trace(instance)
    return closed_side(trace, variant, jnp.mean(trace.loss), distance=True)


def _mean_loss_naively(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    steps = run(num, data).steps
    rhs = naive_theorem.mean_loss(num, data, _tier(variant), steps[0].distance)
    return sum(s.loss for s in steps) / len(steps), rhs


declare(
    "eq-44",
    "Mean loss of a run with explicit constants",
    "(44)",
    "On E_U and E_app, the mean of L_0..L_{tau-1} is at most V(0)/(4 eta tau) "
    "+ (f_max + y_max)(B_app + B_lin + B_CoF) + eta B_grad/4, for any step size.",
    r"\frac1\tau\sum_{s<\tau}\widehat{\mathcal L}_n(\varphi^{(s)})\le\frac{\mathcal V"
    r"(\varphi^{(0)})}{4\eta\tau}+(f^{\max}+y^{\max})(B_{app}+B_{lin}+B_{CoF})"
    r"+\frac\eta4B_{grad}",
    sides=_mean_loss,
    naive=_mean_loss_naively,
    forms={"printed": "constants of the paper; V(phi0) as printed", "sharp": FORMS["sharp"]},
    hypotheses=CLOSED,
    bound=setting_bound,
    requires=decided,
)


def _start_naively(data: Data, steps: Any, variant: str) -> Number:
    return steps[0].distance if variant == "measured" else naive_theorem.nu_squared(data)


def _best(instance: Any, variant: str) -> Sides:
    trace = as_trace(instance)
    smallest = jnp.min(trace.loss)
    sides = closed_side(trace, variant, smallest, distance=variant == "measured")
    return sides._replace(trivial=trace.loss[0])


def _best_naively(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    steps = run(num, data).steps
    start = _start_naively(data, steps, variant)
    rhs = naive_theorem.mean_loss(num, data, _tier(variant), start)
    return num.smallest(s.loss for s in steps), rhs


declare(
    "theorem-1",
    "ProjGD, best iterate",
    "Theorem 1, (45)",
    "With eta = tau^{-1/2}, rho >= nu and a target in F_nu, on E_U and E_app: min over "
    "s < tau of L_s <= (|nu|^2 + B_grad)/(4 sqrt tau) + (f_max + y_max)(B_app + B_lin + B_CoF).",
    r"\min_{s<\tau}\widehat{\mathcal L}_n(\varphi^{(s)})\le\frac{\|\bar\nu\|^2+B_{grad}}"
    r"{4\sqrt\tau}+(f^{\max}+y^{\max})(B_{app}+B_{lin}+B_{CoF})",
    sides=_best,
    naive=_best_naively,
    forms=FORMS,
    hypotheses=(*CLOSED, STEP_SIZE),
    bound=best_bound,
    requires=decided,
    quantity="loss",
    errata=("E7", "E11", "E16"),
)


def _sandwich(instance: Any, variant: str) -> Sides:
    trace = as_trace(instance)
    mean, known = jnp.mean(trace.loss), known_loss(trace)
    if variant == "measured":
        largest = jnp.maximum(jnp.max(trace.e_lin), trace.average_e_lin)
        return Sides(trace.average_loss, 4 * mean + 6 * largest**2, {"e_lin": largest}, known)
    B_lin = run_constants(trace, variant)["B_lin"]
    rhs = 4 * mean + 6 * B_lin**2
    return Sides(trace.average_loss, rhs, {"mean loss": mean, "B_lin": B_lin}, known)


def _sandwich_naively(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    done = run(num, data)
    mean = sum(s.loss for s in done.steps) / len(done.steps)
    if variant == "measured":
        largest = num.largest([done.average_e_lin, *(s.e_lin for s in done.steps)])
    else:
        largest = naive_constants.table(num, data, variant)["B_lin"]
    return done.average_loss, 4 * mean + 6 * largest**2


declare(
    "eq-46",
    "Loss of the average iterate against the mean loss",
    "(46)",
    "On E_U, L(average iterate) <= (4/tau) sum_s L_s + 6 B_lin^2.",
    r"\widehat{\mathcal L}_n(\bar\varphi^{(\tau)})\le\frac4\tau\sum_{s<\tau}"
    r"\widehat{\mathcal L}_n(\varphi^{(s)})+6B_{lin}^2",
    sides=_sandwich,
    naive=_sandwich_naively,
    forms={
        "printed": "B_lin of Lemma 3",
        "sharp": "sharp B_lin",
        "measured": "the largest linearisation error of the run in place of B_lin",
    },
    hypotheses=(UNIT_TOKENS, PAIRED_START, INSIDE),
)


def _average(instance: Any, variant: str) -> Sides:
    trace = as_trace(instance)
    mean = closed_side(trace, variant, trace.average_loss, distance=variant == "measured")
    return mean._replace(rhs=4 * mean.rhs + 6 * mean.constants["B_lin"] ** 2)


def _average_naively(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    done = run(num, data)
    start = _start_naively(data, done.steps, variant)
    return done.average_loss, naive_theorem.average_loss(num, data, _tier(variant), start)


declare(
    "theorem-1-average",
    "ProjGD, average iterate",
    "Theorem 1, (44) in (46)",
    "Under the conditions of Theorem 1, L(average iterate) <= (|nu|^2 + B_grad)/sqrt tau "
    "+ 4 (f_max + y_max)(B_app + B_lin + B_CoF) + 6 B_lin^2.",
    r"\widehat{\mathcal L}_n(\bar\varphi^{(\tau)})\le\frac{\|\bar\nu\|^2+B_{grad}}"
    r"{\sqrt\tau}+4(f^{\max}+y^{\max})(B_{app}+B_{lin}+B_{CoF})+6B_{lin}^2",
    sides=_average,
    naive=_average_naively,
    forms=FORMS,
    hypotheses=(*CLOSED, STEP_SIZE),
    bound=average_bound,
    requires=decided,
    quantity="loss",
    errata=("E16",),
)
