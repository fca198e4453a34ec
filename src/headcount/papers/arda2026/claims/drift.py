"""What holds for every gradient descent of arda2026 without any event: drift and mean loss."""

import functools

import jax.numpy as jnp

from ....theory import Sides, given
from ..constants import state
from ..runs import Run
from ..twins_runs import run

on_runs = functools.partial(
    state.claim,
    on=Run,
    asks=(),
    given=(
        given("phi~ in Omega_rho", lambda trace: trace.reach, 1.0),
        given("every step is one of gradient descent on L", lambda trace: trace.astray, 0.0),
    ),
    proved="App. A.7",
)


@on_runs(
    "drift",
    "Lyapunov drift of one ProjGD step, realised",
    where="(24)-(27), with the errors of the run in place of their bounds",
    says=r"\mathcal V(\varphi^{(s+1)})-\mathcal V(\varphi^{(s)})\le-4\eta\widehat{\mathcal L}_n"
    r"+\tfrac{4\eta}{n}\sum_j(f_j-y_j)(\varepsilon^{app}_j+\varepsilon^{lin}_j"
    r"+\varepsilon^{CoF}_j)+\eta^2\|\nabla\widehat{\mathcal L}_n\|^2",
    no_rival="both sides are measured on the run",
    forms={
        "printed": "an equality while no projection acts",
        "sharp": "with |phi' - Proj phi'|^2 added on the left: the projection onto a convex set "
        "makes an obtuse angle with every point of it",
    },
)
def drift(trace, form):
    """With V(phi) = |phi - phi~|^2 and the errors of the run itself, every step satisfies
    V(s+1) - V(s) <= -4 eta L_s + 4 eta mean_j[(f_j - y_j)(e_app + e_lin + e_CoF)_j]
    + eta^2 |grad L_s|^2."""
    # Both sides for every step, each with nothing to subtract.
    cut_off = trace.excess if form == "sharp" else 0.0
    lhs = trace.distance[1:] + 4 * trace.eta * trace.loss + cut_off
    rhs = trace.distance[:-1] + 4 * trace.eta * trace.cross + trace.eta**2 * trace.gradient
    worst = jnp.argmax(lhs / jnp.maximum(rhs, 1e-300))  # its terms are shown
    shown = {name: getattr(trace, name)[worst] for name in ("loss", "cross", "gradient")}
    cuts = {"cut off": trace.excess[worst], "projected steps": jnp.sum(trace.excess > 0)}
    return Sides(lhs, rhs, {"step": worst, **shown, **cuts})


@drift.twin
def _(num, i, form):
    eta = i["eta"]
    pairs = []
    for s in run(num, i).steps:
        lhs = s.distance_after + 4 * eta * s.loss + (s.excess if form == "sharp" else 0)
        pairs.append((lhs, s.distance + 4 * eta * s.cross + eta * eta * s.gradient))
    return [list(side) for side in zip(*pairs, strict=True)]


@on_runs(
    "mean-loss",
    "Mean loss of a run, realised",
    where="(44) before its constants",
    says=r"\frac1\tau\sum_{s<\tau}\widehat{\mathcal L}_n(\varphi^{(s)})\le"
    r"\frac{\mathcal V(\varphi^{(0)})}{4\eta\tau}+\frac1\tau\sum_s\frac1n\sum_j"
    r"(f_j-y_j)\varepsilon_j+\frac\eta4\frac1\tau\sum_s\|\nabla\widehat{\mathcal L}_n\|^2",
    no_rival="both sides are measured on the run",
    forms={
        "measured": "means of the realised terms: the certificate of a run",
        "sup": "suprema over steps and samples in place of the means",
    },
)
def mean_loss(trace, form):
    """The mean of L_0..L_{tau-1} is at most V(0)/(4 eta tau) + mean_s mean_j[(f_j - y_j)(e_app +
    e_lin + e_CoF)_j] + (eta/4) mean_s |grad L_s|^2, all of the run itself."""
    worst = {"e_app": trace.e_app, "e_lin": jnp.max(trace.e_lin), "e_CoF": jnp.max(trace.e_cof)}
    terms = {"V0/(4 eta tau)": trace.V0 / (4 * trace.eta * trace.tau)}
    if form == "sup":
        terms["max|f-y| (e_app+e_lin+e_CoF)"] = jnp.max(trace.residual) * sum(worst.values())
        terms["(eta/4) max|grad|^2"] = trace.eta / 4 * jnp.max(trace.gradient)
    else:
        terms["mean (f-y)(e_app+e_lin+e_CoF)"] = jnp.mean(trace.cross)
        terms["(eta/4) mean|grad|^2"] = trace.eta / 4 * jnp.mean(trace.gradient)
    shown = {**terms, **worst, "min loss": jnp.min(trace.loss)}
    return Sides(jnp.mean(trace.loss), sum(terms.values()), shown)


@mean_loss.twin
def _(num, i, form):
    done, eta = run(num, i), i["eta"]
    steps, tau = done.steps, len(done.steps)
    lhs = sum(s.loss for s in steps) / tau
    start = steps[0].distance / (4 * eta * tau)
    if form == "sup":
        e_lin, e_cof = num.largest(s.e_lin for s in steps), num.largest(s.e_cof for s in steps)
        gradient = num.largest(s.gradient for s in steps)
        residual = num.largest(s.residual for s in steps)
        return lhs, start + residual * (done.e_app + e_lin + e_cof) + eta / 4 * gradient
    mean = sum(s.cross for s in steps) / tau
    return lhs, start + mean + eta / 4 * sum(s.gradient for s in steps) / tau
