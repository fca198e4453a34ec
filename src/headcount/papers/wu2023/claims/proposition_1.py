"""Proposition 1 of wu2023: linear convergence under (2) and (3), and the steps of its proof."""

from __future__ import annotations

import functools

import jax.numpy as jnp
import numpy as np

from ....theory import decided, false, given
from ....theory.slow import norm
from .. import quantities, twins
from ..constants import Constants, Symbols, state
from ..runs import Run, SmoothStep, Step, room_used

HELD = {"corrected": ("with the corrected C", "E9")}


def short(name, ratio):
    """How (2) or (3) fails, in words."""
    if not float(ratio) < float("inf"):
        return f"{name} asks for a left side above 0, as its right side is"
    return f"{name} asks for a left side {float(ratio):.3g} times as large"


def asks_step(gamma, C):
    """How the condition on the step size fails, in words."""
    return f"gamma = {float(gamma):.4g}, the proposition asks gamma <= 1/C = {float(1 / C):.3g}"


condition_2 = given(
    "(2): right over left side", lambda k: k.condition_2, 1.0, lambda k: short("(2)", k.condition_2)
)
condition_3 = given(
    "(3): right over left side", lambda k: k.condition_3, 1.0, lambda k: short("(3)", k.condition_3)
)
# 1/C itself may be below the absolute slack of a check.
step_size = given(
    "gamma <= 1/C",
    lambda: jnp.ones(()),
    lambda k: 1 / k.C / k.gamma,
    lambda k: asks_step(k.gamma, k.C),
)
within_room = given(
    "the step stays within lambda-bar",
    room_used,
    1.0,
    lambda run: f"the step needs {float(room_used(run)):.3g} times the room that lambda-bar has",
)

UNKNOWN = "without the claim a step may do anything"
about_steps = functools.partial(state.claim, proved="Sec. 4.1 and App. C.2")
about_runs = functools.partial(about_steps, on=Run, given=(condition_2, condition_3, step_size))


def required(setting, form):
    """The hypotheses that a setting decides."""
    k, (second, third) = Constants(setting, form), setting.room.ratios
    return decided(
        ("(2): right over left side", second, 1.0, short("(2)", second)),
        ("(3): right over left side", third, 1.0, short("(3)", third)),
        ("gamma C", k.gamma * k.C, 1.0, asks_step(k.gamma, k.C)),
    )


@about_runs(
    "proposition-1",
    "Linear convergence of gradient descent",
    where="Proposition 1, (2)-(4)",
    says=r"\ell(\theta^t)\le(1-\gamma\alpha^2/2)^t\ell(\theta^0)",
    forms={
        "printed": false("C = c1 c2 + 2 c3 l_0: the printed c1 allows steps that diverge", "E8"),
        "corrected": ("C = c1 c2 + c3 sqrt(2 l_0) with the corrected constants", "E9"),
        "quarter": ("the rate 1 - gamma alpha^2/4 that the printed proof reaches", "E10"),
    },
    right=lambda k: k.promised,
    trivial=lambda k: k.l_0,
    requires=required,
    quantity="loss",
    notes=("E1", "E4", "E9", "E11"),
)
def proposition_1(losses):
    """If (2) and (3) hold at theta^0 and gamma <= 1/C, then l_t <= (1 - gamma alpha^2/2)^t l_0 for
    every t, alpha = sigma_min(F_pre) at the start. Tested on whole runs."""
    return losses


@proposition_1.twin
def _(num, run):
    return [twins.half_square(num, r) for r in twins.trajectory(num, run)[1][1:]]


def too_long_a_step():
    """Erratum E8: (2), (3) and gamma <= 1/C hold with the printed C, and the loss grows.

    The residual is below the rounding of f in float64: only slow arithmetic sees this run.
    """
    one = np.ones((1, 1))
    return Run(
        X=np.array([[[0.9856], [-0.1692]]]),
        residual=np.array([1e-13]),
        W_Q=1e3 * one,
        W_K=0.0 * one,
        W_V=one,
        w_O=np.array([1e3]),
        tau=np.ones(2),
        room=np.full(4, 1e-3),
        gamma=np.asarray(4.1e-11),
        steps=1,
    )


@about_runs(
    "proposition-1-norms",
    "The weights stay within lambda-bar",
    where="Proposition 1, (25)-(34)",
    says=r"\|W_*^t\|_2\le\bar\lambda_*",
    no_rival="without the claim weights may grow without end",
    forms=HELD,
)
def proposition_1_norms(run, k):
    """Under the hypotheses of Proposition 1, ||W_*^t|| <= ||W_*^0|| + C_* for every block and t."""
    sizes = run.watched(lambda theta: jnp.stack(list(quantities.norms(theta))))
    return jnp.ravel(sizes), jnp.concatenate([jnp.stack(list(k.lam))] * run.steps)


@proposition_1_norms.twin
def _(num, run, k):
    points, _ = twins.trajectory(num, run)
    return [x for theta in points[1:] for x in theta.norms(num)], k.lam * run["steps"]


@about_runs(
    "proposition-1-alpha",
    "The last hidden layer keeps its smallest singular value",
    lower=True,
    where="Proposition 1, (25)",
    says=r"\sigma_{\min}(F_{\rm pre}^t)\ge\alpha/2",
    no_rival="a singular value is known to be at least zero, and no more",
    forms={
        **HELD,
        "repaired": (
            "7 alpha/8: with alpha/sqrt 2 in the induction the drift of F_pre is at most alpha/8",
            "E10",
        ),
    },
)
def proposition_1_alpha(run, form, k):
    """Under the hypotheses of Proposition 1, sigma_min(F_pre^t) >= alpha/2 for every t."""
    values = run.watched(lambda t: quantities.smallest_singular(quantities.features(run, t)))
    return jnp.full(run.steps, (7 / 8 if form == "repaired" else 1 / 2) * k.alpha), values


@proposition_1_alpha.twin
def _(num, run, form, k):
    points, _ = twins.trajectory(num, run)
    values = [twins.smallest_singular(num, twins.features(num, run, t)) for t in points[1:]]
    least = k.alpha * 7 / 8 if form == "repaired" else k.alpha / 2
    return [least] * run["steps"], values


def descent(run, form, k):
    """l after one step, and what it may be."""
    before, square = run.start_loss, sum(jnp.sum(block**2) for block in run.gradient)
    rhs = before - run.gamma / 2 * square
    if form == "jump":
        rhs = rhs + run.gamma * jnp.sqrt(square) * k.jump(k.lam.O) * jnp.sqrt(2 * before)
    return run.losses[0], rhs


def slow_descent(num, run, form, k):
    """The same in slow arithmetic."""
    r = run["residual"]
    slope = twins.loss_gradient(num, run, twins.theta_of(run), r)
    square = num.total([x**2 for x in slope.flat()])
    rhs = twins.half_square(num, r) - run["gamma"] / 2 * square
    if form == "jump":
        rhs = rhs + run["gamma"] * num.root(square) * k.jump(k.lam[3]) * norm(num, r)
    return twins.half_square(num, twins.trajectory(num, run)[1][1]), rhs


def step_over_a_kink():
    """Erratum E4: one unit just above its kink; the step carries it across."""
    one, zero = np.ones((1, 1)), np.zeros((1, 1))
    return Step(
        X=one[None],
        residual=np.array([1.001]),
        W_Q=zero,
        W_K=zero,
        W_V=1e-3 * one,
        w_O=np.ones(1),
        tau=np.ones(2),
        room=np.full(4, 0.1),
        gamma=np.asarray(0.05),
        steps=1,
    )


@about_steps(
    "descent",
    "One step decreases the loss",
    where="App. C.2, after (37)",
    on=Step,
    no_rival=UNKNOWN,
    says=r"\ell(\theta^{t+1})\le\ell(\theta^t)-\tfrac\gamma2\|\nabla\ell(\theta^t)\|^2",
    given=(step_size, within_room),
    forms={
        "printed": false("the gradient of the loss is not Lipschitz across a kink", "E4"),
        "jump": (
            "plus gamma |grad l| |f - y| rho lamO sqrt(1 + (2 tau0 S lamK lamV)^2 + (...)^2)",
            "E4",
        ),
    },
    tight=lambda: (step_over_a_kink(),),
)
def descent_at_a_kink(run, form, k):
    """With gamma <= 1/C and lambda-bars that cover the step, l(theta - gamma grad l) <= l(theta)
    - (gamma/2)|grad l|^2. The form `jump` adds what the gradient can jump by on the way."""
    return descent(run, form, k)


def lowest(run):
    """Minus the smallest token or value along the way."""
    after = run.watched(lambda theta: theta.W_V)[-1]
    return -jnp.min(jnp.stack([jnp.min(part) for part in (run.X, run.W_V, after)]))


no_kink = given("tokens and values nonnegative: no unit changes sign on the way", lowest, 0.0)


@about_steps(
    "descent-smooth",
    "One step decreases the loss where no unit changes sign",
    where="App. C.2, after (37)",
    on=SmoothStep,
    no_rival=UNKNOWN,
    says=r"\ell(\theta^{t+1})\le\ell(\theta^t)-\tfrac\gamma2\|\nabla\ell(\theta^t)\|^2",
    given=(step_size, within_room, no_kink),
    forms=HELD,
)
def descent_smooth(run, form, k):
    """With gamma <= 1/C, lambda-bars that cover the step, and no unit that changes sign on the way,
    l(theta - gamma grad l) <= l(theta) - (gamma/2)|grad l|^2."""
    return descent(run, form, k)


descent_at_a_kink.twin(slow_descent)
descent_smooth.twin(slow_descent)


@about_steps(
    "remark-step-size",
    "How the step size falls with the number of samples",
    where="Remark after Proposition 1",
    proved="Sec. 4.1",
    on=Step,
    says=r"\gamma\propto N^{-1/2}",
    no_rival="the constant is compared with itself",
    forms={
        "printed": false("c1 c2 alone grows fourfold", "E23"),
        "corrected": ("N^{-3/2}: C grows at most eightfold; attained as c3 l_0 dominates", "E23"),
    },
    tight=lambda: (step_over_a_kink(),),
)
def remark_step_size(sizes, lam, start_loss, form):
    """gamma is of order N^{-1/2}: with four times as many samples of the same kind, and four times
    the loss, C = c1 c2 + 2 c3 l_0 at most doubles."""
    many, few = (
        Constants(Symbols(sizes._replace(N=k * sizes.N), lam, start_loss=k * start_loss), "printed")
        for k in (4, 1)
    )
    return many.C, (2.0 if form == "printed" else 8.0) * few.C


@remark_step_size.twin
def _(num, run, form):
    more = {**run, "X": run["X"] * 4, "residual": run["residual"] * 4}
    many, few = (twins.SlowConstants(data, "printed", num) for data in (more, run))
    return many.C, (2 if form == "printed" else 8) * few.C
