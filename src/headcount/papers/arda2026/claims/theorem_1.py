"""Theorem 1 of arda2026 with explicit constants: (43), (44), (45), (46) and the average iterate.

On a run they are conditioned on E_U through the realised B_U, and on E_app as a hypothesis that
is checked; for a setting they use the a priori B_U of Remark 7, and |nu|^2 >= V(phi0).
"""

import functools
import math

import jax.numpy as jnp

from ....theory import Check, Sides, given
from ..constants import label_envelope, state
from ..records import TOKENS_AND_QUERY
from ..runs import Run, of_theorem
from ..twins_runs import run
from .lemma_3 import SAMPLE, START

RADII = "rho >= nu in every block: largest nu - rho"
PROJECTED = "every step is one of ProjGD onto Omega_rho"
STEP = "eta = tau^(-1/2)"
SHARP = "the sharp constants in place of the printed ones"
FORMS = {
    "printed": "|nu|^2 and the paper's constants; B_app with s1 nu_w as the appendix proves it",
    "sharp": SHARP,
    "measured": "V(phi0) of the run in place of |nu|^2, which bounds it",
}
_SAME_STEP = 1e-9


def short_radius(symbols):
    """Which block has a radius below nu, in words."""
    pairs = zip("cuw", symbols.rho, symbols.nu, strict=True)
    short = [f"rho_{b} = {rho:.4g} < nu_{b} = {nu:.4g}" for b, rho, nu in pairs if rho < nu]
    return f"{', '.join(short)}: the theorem asks rho >= nu in every block"


def other_step(symbols):
    """Which step size the theorem asks for, in words."""
    asks = f"the theorem asks tau^(-1/2) = {symbols.tau**-0.5:.4g}"
    return f"eta = {symbols.step:.4g}, {asks}; (44) is for any step size"


def _unprojected(trace):
    off, tau = float(trace.unprojected), len(trace.loss)
    return f"{off:.0f} of {tau} steps are none of ProjGD onto Omega_rho"


def _beyond_event(trace, k):
    return f"e_app = {trace.e_app:.3g}, the event E_app asks at most B_app = {k.B_app:.3g}"


CLOSED = (
    given(RADII, lambda trace: jnp.max(trace.nu - trace.rho), 0.0, short_radius),
    given(PROJECTED, lambda trace: trace.unprojected, 0.0, _unprojected),
    given("event E_app: e_app / B_app", lambda trace, k: trace.e_app / k.B_app, 1.0, _beyond_event),
)
"""What (43), (44) and Theorem 1 ask of a run; the event E_U is replaced by the realised B_U."""
THEOREM = (
    *CLOSED,
    given(
        STEP, lambda trace: jnp.abs(trace.eta * math.sqrt(trace.tau) - 1), _SAME_STEP, other_step
    ),
)
on_runs = functools.partial(
    state.claim,
    on=Run,
    shapes=(
        {"n": 2, "T": 2, "d": 2, "m": 2, "tau": 3, "within": of_theorem},
        {"n": 2, "T": 2, "d": 1, "m": 4, "tau": 4, "within": of_theorem},
    ),
    asks=(*SAMPLE, *START, "vc", "vu", "vw", "labels"),
    given=CLOSED,
    needs_event=True,
    proved="App. A.7",
)


def decided(setting, form, rule="projgd"):
    """The hypotheses of (44) that a setting decides: rho >= nu, labels in F_nu, tokens, rule."""
    gap = max(n - r for n, r in zip(setting.nu, setting.rho, strict=True))
    checks = [Check(RADII, gap, 0.0, short_radius(setting) if gap > 0 else "")]
    if setting.largest_label is not None:
        y_max, y = (
            label_envelope(setting.sigma, setting.nu, setting.d, "sharp"),
            setting.largest_label,
        )
        told = f"max |y| = {y:.4g}: no target in F_nu has labels above {y_max:.4g}"
        checks.append(Check("f* in F_nu: max |y| - y_max*", y - y_max, 0.0, told))
    if (longest := setting.largest_token) is not None:
        told = f"the longest token has norm {longest:.3g}, the theorem asks at most 1"
        checks.append(Check(TOKENS_AND_QUERY, longest, 1.0, f"{told}; {setting.clip}".rstrip("; ")))
    if setting.rule not in ("", rule):
        told = f"the run is one of {setting.rule}, the statement is about {rule}"
        checks.append(Check(f"the rule is {rule}", 1.0, 0.0, told))
    return tuple(checks)


def decided_with_step(setting, form, rule="projgd"):
    """The same and the step size of Theorem 1."""
    off = abs(setting.step * math.sqrt(setting.tau) - 1)
    told = other_step(setting) if off > _SAME_STEP else ""
    return (*decided(setting, form, rule), Check(STEP, off, _SAME_STEP, told))


def errors(k):
    """The summand of (44) that no number of steps makes smaller."""
    return (k.f_max + k.y_max) * (k.B_app + k.B_lin + k.B_CoF)


def mean_from(k, start):
    """The right side of (44) from V(phi0) or |nu|^2."""
    return start / (4 * k.eta * k.tau) + k.eta * k.B_grad / 4 + errors(k)


def closed(k):
    """The right side of (45), for any step size."""
    return mean_from(k, k.start)


def average(k):
    """(45) in (46)."""
    return 4 * closed(k) + 6 * k.B_lin * k.B_lin


@on_runs(
    "eq-43",
    "Lyapunov drift of one step with explicit constants",
    where="(43)",
    says=r"\mathcal V(\varphi^{(s+1)})-\mathcal V(\varphi^{(s)})\le-4\eta\widehat{\mathcal L}_n"
    r"+4\eta(f^{\max}+y^{\max})(B_{app}+B_{lin}+B_{CoF})+\eta^2B_{grad}",
    forms={"printed": "constants of the paper", "sharp": SHARP},
)
def eq_43(trace, k):
    """On E_U and E_app, V(s+1) - V(s) <= -4 eta L_s + 4 eta (f_max + y_max)(B_app + B_lin + B_CoF)
    + eta^2 B_grad for every step."""
    # Both sides for every step, each with nothing to subtract.
    rhs = trace.distance[:-1] + 4 * trace.eta * errors(k) + trace.eta**2 * k.B_grad
    known = k.lengths**2 + 4 * trace.eta * k.known_loss
    return Sides(trace.distance[1:] + 4 * trace.eta * trace.loss, rhs, trivial=known)


@eq_43.twin
def _(num, i, k):
    rest = 4 * k.eta * errors(k) + k.eta * k.eta * k.B_grad
    steps = run(num, i).steps
    left = [s.distance_after + 4 * k.eta * s.loss for s in steps]
    return left, [s.distance + rest for s in steps]


@on_runs(
    "eq-44",
    "Mean loss of a run with explicit constants",
    where="(44)",
    says=r"\frac1\tau\sum_{s<\tau}\widehat{\mathcal L}_n(\varphi^{(s)})\le\frac{\mathcal V"
    r"(\varphi^{(0)})}{4\eta\tau}+(f^{\max}+y^{\max})(B_{app}+B_{lin}+B_{CoF})"
    r"+\frac\eta4B_{grad}",
    forms={"printed": "constants of the paper; V(phi0) as printed", "sharp": SHARP},
    right=lambda k: mean_from(k, k.V0),
    trivial=lambda k: k.known_loss,
    requires=decided,
    quantity="loss",
)
def eq_44(trace):
    """On E_U and E_app, the mean of L_0..L_{tau-1} is at most V(0)/(4 eta tau)
    + (f_max + y_max)(B_app + B_lin + B_CoF) + eta B_grad/4, for any step size."""
    return jnp.mean(trace.loss)


@eq_44.twin
def _(num, i):
    return num.total([s.loss for s in run(num, i).steps]) / i["tau"]


@on_runs(
    "theorem-1",
    "ProjGD, best iterate",
    where="Theorem 1, (45)",
    says=r"\min_{s<\tau}\widehat{\mathcal L}_n(\varphi^{(s)})\le\frac{\|\bar\nu\|^2+B_{grad}}"
    r"{4\sqrt\tau}+(f^{\max}+y^{\max})(B_{app}+B_{lin}+B_{CoF})",
    forms=FORMS,
    right=closed,
    trivial=lambda k: k.loss_at_start,
    given=THEOREM,
    requires=decided_with_step,
    quantity="loss",
    notes=("E7", "E11", "E16"),
)
def theorem_1(trace):
    """With eta = tau^{-1/2}, rho >= nu and a target in F_nu, on E_U and E_app: min over s < tau of
    L_s <= (|nu|^2 + B_grad)/(4 sqrt tau) + (f_max + y_max)(B_app + B_lin + B_CoF)."""
    return jnp.min(trace.loss)


@theorem_1.twin
def _(num, i):
    return num.smallest(s.loss for s in run(num, i).steps)


@on_runs(
    "eq-46",
    "Loss of the average iterate against the mean loss",
    where="(46)",
    asks=(*SAMPLE, *START),
    says=r"\widehat{\mathcal L}_n(\bar\varphi^{(\tau)})\le\frac4\tau\sum_{s<\tau}"
    r"\widehat{\mathcal L}_n(\varphi^{(s)})+6B_{lin}^2",
    forms={
        "printed": "B_lin of Lemma 3",
        "sharp": "sharp B_lin",
        "measured": "the largest linearisation error of the run in place of B_lin",
    },
    given=(given("every iterate in Omega_rho", lambda trace: trace.moved, 1.0),),
)
def eq_46(trace, k, form):
    """On E_U, L(average iterate) <= (4/tau) sum_s L_s + 6 B_lin^2."""
    measured = jnp.maximum(jnp.max(trace.e_lin), trace.average_e_lin)
    error = measured if form == "measured" else k.B_lin
    rhs = 4 * jnp.mean(trace.loss) + 6 * error**2
    return Sides(trace.average_loss, rhs, trivial=k.known_loss)


@eq_46.twin
def _(num, i, k, form):
    done = run(num, i)
    error = k.B_lin
    if form == "measured":
        error = num.largest([done.average_e_lin, *(s.e_lin for s in done.steps)])
    mean = num.total([s.loss for s in done.steps]) / len(done.steps)
    return done.average_loss, 4 * mean + 6 * error * error


@on_runs(
    "theorem-1-average",
    "ProjGD, average iterate",
    where="Theorem 1, (44) in (46)",
    says=r"\widehat{\mathcal L}_n(\bar\varphi^{(\tau)})\le\frac{\|\bar\nu\|^2+B_{grad}}"
    r"{\sqrt\tau}+4(f^{\max}+y^{\max})(B_{app}+B_{lin}+B_{CoF})+6B_{lin}^2",
    forms=FORMS,
    right=average,
    trivial=lambda k: k.known_loss,
    given=THEOREM,
    requires=decided_with_step,
    quantity="loss",
    notes=("E16",),
)
def theorem_1_average(trace):
    """Under the conditions of Theorem 1, L(average iterate) <= (|nu|^2 + B_grad)/sqrt tau
    + 4 (f_max + y_max)(B_app + B_lin + B_CoF) + 6 B_lin^2."""
    return trace.average_loss


@theorem_1_average.twin
def _(num, i):
    return run(num, i).average_loss
