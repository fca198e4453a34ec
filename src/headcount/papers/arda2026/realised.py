"""What holds for every gradient descent of arda2026 without any event: drift and mean loss."""

from __future__ import annotations

import functools
from typing import Any

import jax.numpy as jnp

from ...theory import Sides
from ...theory.slow import Arithmetic
from .declare import claim
from .naive import Data
from .naive_runs import run
from .run_hypotheses import REALISED
from .runs import RUNS, RunTrace, as_trace

declare = functools.partial(claim, families=RUNS, hypotheses=REALISED, where="App. A.7")


def drift_terms(trace: RunTrace, *, excess: bool) -> tuple[Any, Any]:
    """Both sides of the drift inequality for every step, each with nothing to subtract.

    V(s+1) + 4 eta L_s (+ what the projection cut off) <= V(s) + 4 eta cross_s + eta^2 |grad|^2.
    """
    lhs = trace.distance[1:] + 4 * trace.eta * trace.loss + (trace.excess if excess else 0.0)
    rhs = trace.distance[:-1] + 4 * trace.eta * trace.cross + trace.eta**2 * trace.gradient
    return lhs, rhs


def _drift(instance: Any, variant: str) -> Sides:
    trace = as_trace(instance)
    lhs, rhs = drift_terms(trace, excess=variant == "sharp")
    worst = jnp.argmax(lhs / jnp.maximum(rhs, 1e-300))
    return Sides(
        lhs[worst],
        rhs[worst],
        {
            "step": worst,
            "loss": trace.loss[worst],
            "cross": trace.cross[worst],
            "gradient": trace.gradient[worst],
            "cut off": trace.excess[worst],
            "projected steps": jnp.sum(trace.excess > 0),
        },
    )


def _drift_naively(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    eta = data["eta"]
    pairs = []
    for s in run(num, data).steps:
        lhs = s.distance_after + 4 * eta * s.loss + (s.excess if variant == "sharp" else 0)
        pairs.append((lhs, s.distance + 4 * eta * s.cross + eta * eta * s.gradient))
    return max(pairs, key=lambda pair: num.roughly(pair[0] / pair[1]))


declare(
    "drift",
    "Lyapunov drift of one ProjGD step, realised",
    "(24)-(27), with the errors of the run in place of their bounds",
    "With V(phi) = |phi - phi~|^2 and the errors of the run itself, every step satisfies "
    "V(s+1) - V(s) <= -4 eta L_s + 4 eta mean_j[(f_j - y_j)(e_app + e_lin + e_CoF)_j] "
    "+ eta^2 |grad L_s|^2.",
    r"\mathcal V(\varphi^{(s+1)})-\mathcal V(\varphi^{(s)})\le-4\eta\widehat{\mathcal L}_n"
    r"+\tfrac{4\eta}{n}\sum_j(f_j-y_j)(\varepsilon^{app}_j+\varepsilon^{lin}_j"
    r"+\varepsilon^{CoF}_j)+\eta^2\|\nabla\widehat{\mathcal L}_n\|^2",
    sides=_drift,
    naive=_drift_naively,
    forms={
        "printed": "an equality while no projection acts",
        "sharp": "with |phi' - Proj phi'|^2 added on the left: the projection onto a convex set "
        "makes an obtuse angle with every point of it",
    },
)


def realised_terms(trace: RunTrace, variant: str) -> dict[str, Any]:
    """The summands of the realised right side of (44)."""
    start = trace.distance[0] / (4 * trace.eta * trace.tau)
    if variant == "sup":
        errors = trace.e_app + jnp.max(trace.e_lin) + jnp.max(trace.e_cof)
        return {
            "V0/(4 eta tau)": start,
            "max|f-y| (e_app+e_lin+e_CoF)": jnp.max(trace.residual) * errors,
            "(eta/4) max|grad|^2": trace.eta / 4 * jnp.max(trace.gradient),
        }
    return {
        "V0/(4 eta tau)": start,
        "mean (f-y)(e_app+e_lin+e_CoF)": jnp.mean(trace.cross),
        "(eta/4) mean|grad|^2": trace.eta / 4 * jnp.mean(trace.gradient),
    }


def _realised(instance: Any, variant: str) -> Sides:
    trace = as_trace(instance)
    terms = realised_terms(trace, variant)
    extra = {
        "e_app": trace.e_app,
        "e_lin": jnp.max(trace.e_lin),
        "e_CoF": jnp.max(trace.e_cof),
        "min loss": jnp.min(trace.loss),
    }
    return Sides(jnp.mean(trace.loss), sum(terms.values()), {**terms, **extra})


def _realised_naively(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    done = run(num, data)
    steps, eta, tau = done.steps, data["eta"], len(done.steps)
    lhs = sum(s.loss for s in steps) / tau
    start = steps[0].distance / (4 * eta * tau)
    if variant == "sup":
        e_lin, e_cof = num.largest(s.e_lin for s in steps), num.largest(s.e_cof for s in steps)
        gradient = num.largest(s.gradient for s in steps)
        residual = num.largest(s.residual for s in steps)
        return lhs, start + residual * (done.e_app + e_lin + e_cof) + eta / 4 * gradient
    mean = sum(s.cross for s in steps) / tau
    return lhs, start + mean + eta / 4 * sum(s.gradient for s in steps) / tau


declare(
    "mean-loss",
    "Mean loss of a run, realised",
    "(44) before its constants",
    "The mean of L_0..L_{tau-1} is at most V(0)/(4 eta tau) + mean_s mean_j[(f_j - y_j)"
    "(e_app + e_lin + e_CoF)_j] + (eta/4) mean_s |grad L_s|^2, all of the run itself.",
    r"\frac1\tau\sum_{s<\tau}\widehat{\mathcal L}_n(\varphi^{(s)})\le"
    r"\frac{\mathcal V(\varphi^{(0)})}{4\eta\tau}+\frac1\tau\sum_s\frac1n\sum_j"
    r"(f_j-y_j)\varepsilon_j+\frac\eta4\frac1\tau\sum_s\|\nabla\widehat{\mathcal L}_n\|^2",
    sides=_realised,
    naive=_realised_naively,
    forms={
        "measured": "means of the realised terms: the certificate of a run",
        "sup": "suprema over steps and samples in place of the means",
    },
)
