"""Theorem 1 of arda2026 with explicit constants: (44), (45), (46) and the average iterate.

On a run they are conditioned on E_U through the realised B_U, and on E_app as a hypothesis that
is checked; for a setting they use the a priori B_U of Remark 7.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from ...core import activation_named
from ...theory import Bound, Claim, Hypothesis, Kind, Sides, Variant, claims
from ...theory.slow import Arithmetic
from . import constants as constants
from .model import linear_outputs
from .naive import Data, Number, bounds
from .naive_runs import run
from .realised import REACHABLE, REFERENCE, STEP_SIZE, UNIT_TOKENS
from .runs import THEOREM_RUNS, RunTrace, as_trace
from .setting import Setting

DELTA = 0.05
"""The delta of E_app at which runs are audited; settings carry their own."""


def run_constants(trace: RunTrace, variant: str) -> dict[str, Any]:
    """The constants of ledger 1.7 at the run's realised B_U."""
    tier = "sharp" if variant == "sharp" else "printed"
    sigma, rho, nu, m = activation_named(trace.activation), trace.rho, trace.nu, trace.m
    L1 = constants.lipschitz(sigma, trace.B_U, tier)
    L2 = constants.smoothness(sigma, trace.B_U, tier)
    f_max = constants.output_envelope(sigma, L1, rho)
    y_max = constants.label_envelope(sigma, nu, trace.d, tier)
    A = constants.gradient_envelope(sigma, L1, rho, m, tier)
    form = "sharp" if tier == "sharp" else "corrected"
    return {
        "B_U": trace.B_U,
        "L1": L1,
        "L2": L2,
        "B_app": constants.approximation(sigma, nu, trace.n, m, DELTA, form),
        "B_lin": constants.linearisation(L1, L2, rho, m, tier),
        "B_CoF": constants.change_of_features(L1, L2, rho, nu, m),
        "f_max": f_max,
        "y_max": y_max,
        "A": A,
        "B_grad": constants.loss_gradient(f_max, y_max, A),
    }


def closed_terms(k: Any, start: Number, eta: Number, tau: int) -> dict[str, Any]:
    """The three summands of (44): k are the constants, start is V(phi0) or |nu|^2."""
    errors = k["B_app"] + k["B_lin"] + k["B_CoF"]
    return {
        "optimisation": start / (4 * eta * tau) + eta * k["B_grad"] / 4,
        "errors": (k["f_max"] + k["y_max"]) * errors,
    }


def setting_bound(setting: Setting, variant: str) -> tuple[dict[str, float], dict[str, float]]:
    """(constants, summands of (45)) for a setting."""
    k = constants.constants(setting, "sharp" if variant == "sharp" else "printed").to_dict()
    return k, closed_terms(k, k["nu_norm"] ** 2, setting.step, setting.tau)


def trivial_loss(setting: Setting) -> float:
    """y_max*^2 >= L(phi0): what holds before the first step."""
    return constants.label_envelope(setting.sigma, setting.nu, setting.d, "sharp") ** 2


def naive_constants(num: Arithmetic, data: Data, variant: str) -> dict[str, Number]:
    """The constants of ledger 1.7 in slow arithmetic."""
    b = bounds(num, data, variant)
    sharp = variant == "sharp"
    n, m = len(data["X"]), len(data["c0"])
    log = num.log(num.number(2 * n) / num.number("0.05"))
    bounded = b.s0 * b.nu[0] + b.s1 * b.nu[1]
    w = num.sqrt(num.number(2)) * b.s1 * b.nu[2] if sharp else b.s1 * b.nu[2]
    spread = num.sqrt((log if sharp else 2 * log) / m)
    lengths = [num.sqrt(sum(x * x for x in radii)) for radii in (b.rho, b.nu)]
    root_d = num.number(1) if sharp else num.sqrt(num.number(len(data["q"][0])))
    theta = (1 + b.rho[0] / b.root_m) * b.L1
    return {
        "B_app": 2 * (bounded + w) * spread,
        "B_lin": (b.L1 * b.rho[0] * b.k + (b.L2 / 2 if sharp else b.L2) * b.k**2) / b.root_m,
        "B_CoF": ((b.L1 + b.L2) * b.k + b.rho[0] * b.L1) * sum(lengths) / b.root_m,
        "f_max": b.L1 * b.k + b.s0 * b.rho[0],
        "y_max": bounded + b.s1 * root_d * b.nu[2],
        "A": num.sqrt(b.s0**2 + theta**2) if sharp else b.s0 + theta,
    }


def _naive_closed(num: Arithmetic, data: Data, variant: str) -> tuple[Any, dict[str, Number]]:
    done = run(num, data)
    k = naive_constants(num, data, variant)
    k["B_grad"] = 4 * (k["f_max"] + k["y_max"]) ** 2 * k["A"] ** 2
    terms = closed_terms(k, done.steps[0].distance, data["eta"], len(done.steps))
    return done, {**k, "rhs": sum(terms.values())}


def _event_naively(num: Arithmetic, data: Data) -> Any:
    return run(num, data).e_app / naive_constants(num, data, "printed")["B_app"]


def _event(instance: Any) -> Any:
    if isinstance(instance, RunTrace):
        e_app, n, m = instance.e_app, instance.n, instance.m
    else:
        gap = linear_outputs(instance, instance.transported) - instance.y
        e_app, n, m = jnp.max(jnp.abs(gap)), len(instance.y), instance.m
    sigma = activation_named(instance.activation)
    return e_app / constants.approximation(sigma, instance.nu, n, m, DELTA)


E_APP = Hypothesis("event E_app: e_app / B_app", _event, _event_naively)
HYPOTHESES = (UNIT_TOKENS, REACHABLE, E_APP)
VARIANTS = {
    "printed": Variant("constants of the paper; B_app with s1 nu_w as the appendix proves it"),
    "sharp": Variant("sharp constants of ledger 1.7"),
}


def _mean_loss(instance: Any, variant: str) -> Sides:
    trace = as_trace(instance)
    k = run_constants(trace, variant)
    terms = closed_terms(k, trace.distance[0], trace.eta, trace.tau)
    trivial = (k["f_max"] + k["y_max"]) ** 2
    return Sides(jnp.mean(trace.loss), sum(terms.values()), {**k, **terms}, trivial)


def _mean_loss_naively(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    done, k = _naive_closed(num, data, variant)
    return sum(s.loss for s in done.steps) / len(done.steps), k["rhs"]


def _mean_loss_bound(setting: Setting, variant: str) -> Bound:
    k, terms = setting_bound(setting, variant)
    return Bound(sum(terms.values()), {**k, **terms}, (k["f_max"] + k["y_max"]) ** 2)


eq_44 = claims.add(
    Claim(
        id="arda2026/eq-44",
        title="Mean loss of a run with explicit constants",
        kind=Kind.DETERMINISTIC,
        equations="(44)",
        statement=(
            "On E_U and E_app, the mean of L_0..L_{tau-1} is at most V(0)/(4 eta tau) "
            "+ (f_max + y_max)(B_app + B_lin + B_CoF) + eta B_grad/4, for any step size."
        ),
        latex=(
            r"\frac1\tau\sum_{s<\tau}\widehat{\mathcal L}_n(\varphi^{(s)})\le\frac{\mathcal V"
            r"(\varphi^{(0)})}{4\eta\tau}+(f^{\max}+y^{\max})(B_{app}+B_{lin}+B_{CoF})"
            r"+\frac\eta4B_{grad}"
        ),
        sides=_mean_loss,
        naive=_mean_loss_naively,
        families=THEOREM_RUNS,
        variants=VARIANTS,
        default="printed",
        hypotheses=HYPOTHESES,
        bound=_mean_loss_bound,
        needs_event=True,
        references=REFERENCE,
    )
)


def _best(instance: Any, variant: str) -> Sides:
    sides = _mean_loss(instance, variant)
    trace = as_trace(instance)
    return sides._replace(lhs=jnp.min(trace.loss), trivial=trace.loss[0])


def _best_naively(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    done, k = _naive_closed(num, data, variant)
    return num.smallest(s.loss for s in done.steps), k["rhs"]


def _best_bound(setting: Setting, variant: str) -> Bound:
    return _mean_loss_bound(setting, variant)._replace(trivial=trivial_loss(setting))


theorem_1 = claims.add(
    Claim(
        id="arda2026/theorem-1",
        title="ProjGD, best iterate",
        kind=Kind.DETERMINISTIC,
        equations="Theorem 1, (45)",
        statement=(
            "With eta = tau^{-1/2}, rho >= nu and a target in F_nu, on E_U and E_app: min over "
            "s < tau of L_s <= (|nu|^2 + B_grad)/(4 sqrt tau) "
            "+ (f_max + y_max)(B_app + B_lin + B_CoF)."
        ),
        latex=(
            r"\min_{s<\tau}\widehat{\mathcal L}_n(\varphi^{(s)})\le\frac{\|\bar\nu\|^2+B_{grad}}"
            r"{4\sqrt\tau}+(f^{\max}+y^{\max})(B_{app}+B_{lin}+B_{CoF})"
        ),
        sides=_best,
        naive=_best_naively,
        families=THEOREM_RUNS,
        variants=VARIANTS,
        default="printed",
        hypotheses=(*HYPOTHESES, STEP_SIZE),
        bound=_best_bound,
        quantity="loss",
        needs_event=True,
        errata=("E7", "E11"),
        references=REFERENCE,
    )
)


def _sandwich(instance: Any, variant: str) -> Sides:
    trace = as_trace(instance)
    mean = jnp.mean(trace.loss)
    if variant == "measured":
        largest = jnp.maximum(jnp.max(trace.e_lin), trace.average_e_lin)
        return Sides(trace.average_loss, 4 * mean + 6 * largest**2, {"e_lin": largest})
    k = run_constants(trace, variant)
    rhs = 4 * mean + 6 * k["B_lin"] ** 2
    return Sides(trace.average_loss, rhs, {"mean loss": mean, "B_lin": k["B_lin"]})


def _sandwich_naively(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    done = run(num, data)
    mean = sum(s.loss for s in done.steps) / len(done.steps)
    if variant == "measured":
        largest = num.largest([done.average_e_lin, *(s.e_lin for s in done.steps)])
    else:
        largest = naive_constants(num, data, variant)["B_lin"]
    return done.average_loss, 4 * mean + 6 * largest**2


eq_46 = claims.add(
    Claim(
        id="arda2026/eq-46",
        title="Loss of the average iterate against the mean loss",
        kind=Kind.DETERMINISTIC,
        equations="(46)",
        statement="On E_U, L(average iterate) <= (4/tau) sum_s L_s + 6 B_lin^2.",
        latex=(
            r"\widehat{\mathcal L}_n(\bar\varphi^{(\tau)})\le\frac4\tau\sum_{s<\tau}"
            r"\widehat{\mathcal L}_n(\varphi^{(s)})+6B_{lin}^2"
        ),
        sides=_sandwich,
        naive=_sandwich_naively,
        families=THEOREM_RUNS,
        variants={
            "printed": Variant("B_lin of Lemma 3"),
            "sharp": Variant("sharp B_lin"),
            "measured": Variant("the largest linearisation error of the run in place of B_lin"),
        },
        default="printed",
        hypotheses=(UNIT_TOKENS,),
        needs_event=True,
        references=REFERENCE,
    )
)


def _average(instance: Any, variant: str) -> Sides:
    trace = as_trace(instance)
    best = _mean_loss(instance, variant)
    k = run_constants(trace, variant)
    rhs = 4 * best.rhs + 6 * k["B_lin"] ** 2
    return best._replace(lhs=trace.average_loss, rhs=rhs)


def _average_naively(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    done, k = _naive_closed(num, data, variant)
    return done.average_loss, 4 * k["rhs"] + 6 * k["B_lin"] ** 2


def _average_bound(setting: Setting, variant: str) -> Bound:
    mean = _mean_loss_bound(setting, variant)
    return mean._replace(rhs=4 * mean.rhs + 6 * mean.constants["B_lin"] ** 2)


theorem_1_average = claims.add(
    Claim(
        id="arda2026/theorem-1-average",
        title="ProjGD, average iterate",
        kind=Kind.DETERMINISTIC,
        equations="Theorem 1, (44) in (46)",
        statement=(
            "Under the conditions of Theorem 1, L(average iterate) <= (|nu|^2 + B_grad)/sqrt tau "
            "+ 4 (f_max + y_max)(B_app + B_lin + B_CoF) + 6 B_lin^2."
        ),
        latex=(
            r"\widehat{\mathcal L}_n(\bar\varphi^{(\tau)})\le\frac{\|\bar\nu\|^2+B_{grad}}"
            r"{\sqrt\tau}+4(f^{\max}+y^{\max})(B_{app}+B_{lin}+B_{CoF})+6B_{lin}^2"
        ),
        sides=_average,
        naive=_average_naively,
        families=THEOREM_RUNS,
        variants=VARIANTS,
        default="printed",
        hypotheses=(*HYPOTHESES, STEP_SIZE),
        bound=_average_bound,
        quantity="loss",
        needs_event=True,
        references=REFERENCE,
    )
)
