"""Proposition 1 of wu2023: linear convergence under (2) and (3), and the steps of its proof."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...theory import Bound, Check, Sides
from ...theory.slow import Arithmetic, norm
from . import constants, naive, naive_constants, runs
from . import quantities as model
from .declare import claim, false
from .naive import Data
from .runs import RunInstance, trajectory_naively, watched
from .setting import Setting

WHERE = "Sec. 4.1 and App. C.2"
HYPOTHESES = (runs.CONDITION_2, runs.CONDITION_3, runs.STEP_SIZE)


def _shares(variant: str) -> int:
    """The rate is 1 - gamma alpha^2 over this."""
    return 4 if variant == "quarter" else 2


def _rate(i: RunInstance, variant: str) -> Sides:
    losses = watched(i, lambda t: jnp.sum(runs.residual_at(i, t) ** 2) / 2)
    factor = 1 - i.gamma * i.alpha**2 / _shares(variant)
    decay = jax.lax.pow(jnp.full(i.steps, factor), jnp.arange(1, i.steps + 1))
    return Sides(losses, decay * i.start_loss, {"alpha": i.alpha, "factor": factor})


def _rate_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    _, residuals = trajectory_naively(num, data)
    losses = [naive.half_square(num, r) for r in residuals]
    alpha = runs.alpha_naively(num, data)
    factor = 1 - data["gamma"] * alpha * alpha / (4 if variant == "quarter" else 2)
    promised = [factor**t * losses[0] for t in range(1, len(losses))]
    return losses[1:], promised


def _promise(setting: Setting, variant: str) -> Bound:
    """(1 - gamma alpha^2/2)^t l_0 for the initialisation that is drawn at this width."""
    start = setting.start
    gamma = setting.step(runs.form_of(variant))
    decay = math.log1p(-min(gamma * start.alpha**2 / _shares(variant), 1 - 1e-16))
    scale, numbers = setting.loss_scale, {"alpha": start.alpha, "gamma": gamma}
    first = scale * start.loss
    return Bound(first * math.exp(setting.steps * decay), {**numbers, "l_0": first}, first)


def _required(setting: Setting, variant: str) -> tuple[Check, ...]:
    second, third = setting.room.ratios
    form = runs.form_of(variant)
    return (
        Check("(2): right over left side", second, 1.0),
        Check("(3): right over left side", third, 1.0),
        Check("gamma C", setting.step(form) * setting.smoothness(form), 1.0),
    )


def too_long_a_step() -> RunInstance:
    """Erratum E8: (2), (3) and gamma <= 1/C hold with the printed C, and the loss grows.

    The residual is below the rounding of f in float64: only slow arithmetic sees this run.
    """
    one = np.ones((1, 1))
    return RunInstance(
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


claim(
    "proposition-1",
    "Linear convergence of gradient descent",
    "Proposition 1, (2)-(4)",
    "If (2) and (3) hold at theta^0 and gamma <= 1/C, then l_t <= (1 - gamma alpha^2/2)^t l_0 for "
    "every t, alpha = sigma_min(F_pre) at the start. Tested on whole runs.",
    r"\ell(\theta^t)\le(1-\gamma\alpha^2/2)^t\ell(\theta^0)",
    sides=_rate,
    naive=_rate_naive,
    families=runs.RUNS,
    hypotheses=HYPOTHESES,
    bound=_promise,
    requires=_required,
    quantity="loss",
    forms={
        "printed": false("C = c1 c2 + 2 c3 l_0: the printed c1 allows steps that diverge", "E8"),
        "corrected": ("C = c1 c2 + c3 sqrt(2 l_0) with the corrected constants", "E9"),
        "quarter": ("the rate 1 - gamma alpha^2/4 that the printed proof reaches", "E10"),
    },
    errata=("E1", "E4", "E9", "E11"),
    where=WHERE,
)


def _norms(i: RunInstance, variant: str) -> Sides:
    sizes = watched(i, lambda t: jnp.stack(list(model.norms(t))))
    return Sides(jnp.ravel(sizes), jnp.concatenate([jnp.stack(list(i.lam))] * i.steps))


def _norms_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    points, _ = trajectory_naively(num, data)
    lam = runs.lam_naively(num, data)
    return [x for theta in points[1:] for x in theta.norms(num)], lam * data["steps"]


_C = {"corrected": ("with the corrected C", "E9")}

claim(
    "proposition-1-norms",
    "The weights stay within lambda-bar",
    "Proposition 1, (25)-(34)",
    "Under the hypotheses of Proposition 1, ||W_*^t|| <= ||W_*^0|| + C_* for every block and t.",
    r"\|W_*^t\|_2\le\bar\lambda_*",
    sides=_norms,
    naive=_norms_naive,
    families=runs.RUNS,
    hypotheses=HYPOTHESES,
    forms=_C,
    where=WHERE,
)


def _alpha(i: RunInstance, variant: str) -> Sides:
    values = watched(i, lambda t: model.smallest_singular(model.features(i, t)))
    share = 7 / 8 if variant == "repaired" else 1 / 2
    return Sides(jnp.full(i.steps, share * i.alpha), values)


def _alpha_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    points, _ = trajectory_naively(num, data)
    share = num.number(7) / 8 if variant == "repaired" else num.number(1) / 2
    features = [naive.features(num, data, theta) for theta in points]
    values = [naive.smallest_singular(num, F) for F in features]
    return [share * values[0]] * data["steps"], values[1:]


claim(
    "proposition-1-alpha",
    "The last hidden layer keeps its smallest singular value",
    "Proposition 1, (25)",
    "Under the hypotheses of Proposition 1, sigma_min(F_pre^t) >= alpha/2 for every t.",
    r"\sigma_{\min}(F_{\rm pre}^t)\ge\alpha/2",
    sides=_alpha,
    naive=_alpha_naive,
    families=runs.RUNS,
    hypotheses=HYPOTHESES,
    forms={
        **_C,
        "repaired": (
            "7 alpha/8: with alpha/sqrt 2 in the induction the drift of F_pre is at most alpha/8",
            "E10",
        ),
    },
    where=WHERE,
)


def _pieces(i: RunInstance) -> tuple[Any, Any, Any]:
    """l(theta), |grad l|^2 and l after one step."""

    def value(t: Any) -> Any:
        return jnp.sum(runs.residual_at(i, t) ** 2) / 2

    slope = jax.grad(value)(i.theta)
    square = sum(jnp.sum(block**2) for block in slope)
    return i.start_loss, square, watched(i, value)[0]


def _descent(i: RunInstance, variant: str) -> Sides:
    before, square, after = _pieces(i)
    rhs = before - i.gamma / 2 * square
    if variant == "jump":
        s, lam = model.sizes(i), i.lam
        jump = constants.jump(s, lam, lam.O) * jnp.sqrt(2 * before)
        rhs = rhs + i.gamma * jnp.sqrt(square) * jump
    return Sides(after, rhs)


def _descent_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    theta, r = naive.theta_of(data), data["residual"]
    _, residuals = trajectory_naively(num, data)
    slope = naive.loss_gradient(num, data, theta, r)
    square = num.total([x**2 for x in slope.flat()])
    rhs = naive.half_square(num, r) - data["gamma"] / 2 * square
    if variant == "jump":
        lam = runs.lam_naively(num, data)
        k = naive_constants.constants(num, data, lam, "corrected")
        flow = 2 * data["tau"][0] * k.S * lam[2]
        size = norm(num, [num.number(1), flow * lam[0], flow * lam[1]])
        rhs = rhs + data["gamma"] * num.root(square) * k.rho * lam[3] * size * norm(num, r)
    return naive.half_square(num, residuals[1]), rhs


def step_over_a_kink() -> RunInstance:
    """Erratum E4: one unit just above its kink; the step carries it across."""
    one, zero = np.ones((1, 1)), np.zeros((1, 1))
    return RunInstance(
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


claim(
    "descent",
    "One step decreases the loss",
    "App. C.2, after (37)",
    "With gamma <= 1/C and lambda-bars that cover the step, l(theta - gamma grad l) <= l(theta) "
    "- (gamma/2)|grad l|^2. The form `jump` adds what the gradient can jump by on the way.",
    r"\ell(\theta^{t+1})\le\ell(\theta^t)-\tfrac\gamma2\|\nabla\ell(\theta^t)\|^2",
    sides=_descent,
    naive=_descent_naive,
    families=runs.STEPS,
    hypotheses=(runs.STEP_SIZE, runs.ROOM),
    forms={
        "printed": false("the gradient of the loss is not Lipschitz across a kink", "E4"),
        "jump": (
            "plus gamma |grad l| |f - y| rho lamO sqrt(1 + (2 tau0 S lamK lamV)^2 + (...)^2)",
            "E4",
        ),
    },
    targets=lambda: (step_over_a_kink(),),
    where=WHERE,
)

claim(
    "descent-smooth",
    "One step decreases the loss where no unit changes sign",
    "App. C.2, after (37)",
    "With gamma <= 1/C, lambda-bars that cover the step, and no unit that changes sign on the way, "
    "l(theta - gamma grad l) <= l(theta) - (gamma/2)|grad l|^2.",
    r"\ell(\theta^{t+1})\le\ell(\theta^t)-\tfrac\gamma2\|\nabla\ell(\theta^t)\|^2",
    sides=_descent,
    naive=_descent_naive,
    families=runs.SMOOTH_STEPS,
    hypotheses=(runs.STEP_SIZE, runs.ROOM, runs.NO_KINK),
    forms={"corrected": ("with the corrected C", "E9")},
    where=WHERE,
)


def _more_samples(i: RunInstance, variant: str) -> Sides:
    """C at 4 N samples of the same kind (four times the loss) against a multiple of C at N."""
    s, lam = model.sizes(i), i.lam
    many = s._replace(N=4 * s.N)
    growth = 2.0 if variant == "printed" else 8.0
    now = constants.smoothness(s, lam, i.start_loss, "printed")
    return Sides(constants.smoothness(many, lam, 4 * i.start_loss, "printed"), growth * now)


def _more_samples_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    X, (tau0, tau1), loss = data["X"], data["tau"], naive.half_square(num, data["residual"])
    lam, C_x = runs.lam_naively(num, data), naive_constants.C_x_of(num, X)
    few, many = (
        naive_constants.constants_at(
            num, times * len(X), len(X[0]), C_x, tau0, tau1, lam, "printed"
        ).C(num, times * loss, "printed")
        for times in (1, 4)
    )
    return many, (2 if variant == "printed" else 8) * few


claim(
    "remark-step-size",
    "How the step size falls with the number of samples",
    "Remark after Proposition 1",
    "gamma is of order N^{-1/2}: with four times as many samples of the same kind, and four times "
    "the loss, C = c1 c2 + 2 c3 l_0 at most doubles.",
    r"\gamma\propto N^{-1/2}",
    sides=_more_samples,
    naive=_more_samples_naive,
    families=runs.STEPS,
    targets=lambda: (step_over_a_kink(),),
    forms={
        "printed": false("c1 c2 alone grows fourfold", "E23"),
        "corrected": ("N^{-3/2}: C grows at most eightfold; attained as c3 l_0 dominates", "E23"),
    },
    where="Sec. 4.1",
)
