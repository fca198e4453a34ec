"""What the statements of deora2024 ask of a run or of a start, as hypotheses in words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from ...theory import Check, given
from ...theory._arguments import Given
from . import quantities
from .constants import Constants

Number = Callable[[Constants], Any]


def asks_heads(name: str, H: Any, root: Any) -> str:
    """How a condition on the number of heads fails, in words."""
    return f"H = {float(H):.4g}, {name} asks H >= {float(root) ** 2:.3g}"


def asks_step(eta: Any, limit: Any, of: str = "the condition on the step size") -> str:
    """How a condition on the step size fails, in words."""
    return f"eta = {float(eta):.4g} where at most {float(limit):.3g} is allowed: {of}"


def heads_and_step(name: str, k: Any, root: Any, eta: Any, most: Any) -> tuple[Check, ...]:
    """The two conditions that a setting decides: sqrt(H) >= root and eta <= most."""
    H = float(k.H)
    return (
        Check(f"{name}: required sqrt(H) over sqrt(H)", root / H**0.5, 1.0,
              asks_heads(name, H, root)),
        Check("eta over its largest value", eta / most, 1.0, asks_step(eta, most)),
    )  # fmt: skip


DESCENT = given(
    "descent (68): L(theta_{k+1}) + (eta/2)|grad L|^2 <= L(theta_k)",
    lambda trace: jnp.max((trace.loss[1:] + trace.eta / 2 * trace.gradient) / trace.loss[:-1]),
    1.0,
    lambda trace: "the loss does not fall at every step as descent (68) asks",
)
REACHABLE = given(
    "(73): eta max(K L(theta), L(theta_0)) <= D^2",
    lambda eta, K, L_theta, L_0, D: eta * jnp.maximum(K * L_theta, L_0) / D**2,
    1.0,
)


def wide(name: str, factor: int) -> Given:
    """sqrt(H) >= factor beta_3[N -> B] D^2, written as a bound on D^2."""
    return given(
        f"{name}: D^2 <= sqrt(H)/({factor} beta_3(B))",
        lambda D: D**2,
        lambda H, k: jnp.sqrt(H) / (factor * k.tilde_3),
        lambda H, D, k: asks_heads(name, H, factor * k.tilde_3 * D**2),
    )


WIDE = wide("(74)", 18)
WIDER = wide("(84)", 128)
"""The condition of Lemma 11 and Theorem 4."""
WIDE_STRETCHED = given(
    "(74) with g_0 for D, as a bound on D^2",
    lambda D: D**2,
    lambda H, D, k: jnp.sqrt(H) * D**2 / k.stretched_root,
    lambda H, k: asks_heads("(74) with g_0 for D", H, k.stretched_root),
)


def reached(name: str, root: Number) -> Given:
    """sqrt(H) >= root, written as 1 <= sqrt(H)/root."""
    return given(
        f"{name}: 1 <= sqrt(H)/(what it must reach)",
        1.0,
        lambda H, k: jnp.sqrt(H) / root(k),
        lambda H, k: asks_heads(name, H, root(k)),
    )


def short_step(name: str, limit: Number) -> Given:
    """eta <= limit, written as 1 <= limit/eta: limits of 1e-13 would drown in a check's slack."""
    return given(
        f"{name}, as 1 <= limit/eta",
        1.0,
        lambda k, eta: limit(k) / eta,
        lambda k, eta: asks_step(eta, limit(k), name),
    )


SHORT_STEP = short_step(
    "eta <= min(1, 1/rho, D^2/(K L(theta)), D^2/L(theta_0))", lambda k: k.longest_step
)
STRETCHED_STEP = short_step(
    "eta <= min(1, 1/rho(K), g_0^2, g_0^2/L(theta_0))", lambda k: k.stretched_step
)
SURE_STEP = short_step(
    "eta as in Theorem 3, eta beta_1(B)^2 <= 1, for every training set", lambda k: k.sure_step
)
SMOOTH_STEP = given(
    "eta <= 1/rho_k, as 1 <= limit/eta",
    1.0,
    lambda trace, form, eta: 1 / jnp.max(trace.beta_2(form)) / eta,
    lambda trace, form, eta: asks_step(eta, 1 / jnp.max(trace.beta_2(form)), "eta <= 1/rho_k"),
)
NEAR = given(
    "sqrt(H) >= 2 beta_3 |theta - theta_k|^2, as a bound on D^2",
    lambda D: D**2,
    lambda trace, form: jnp.min(
        jnp.sqrt(trace.H) / (2 * trace.beta_3(form) * (trace.away[:-1] / trace.D) ** 2)
    ),
    lambda trace, form: asks_heads(
        "sqrt(H) >= 2 beta_3 |theta - theta_k|^2",
        trace.H,
        jnp.max(2 * trace.beta_3(form) * trace.away[:-1] ** 2),
    ),
)
REALIZED = given("Assumption 2 at 1/K: K L(theta) <= 1", lambda K, L_theta: K * L_theta, 1.0)
SURELY_REALIZED = given(
    "Assumption 2 surely: K max_i l_i(theta) <= 1", lambda K, worst_loss: K * worst_loss, 1.0
)

SEPARABLE = given(
    "P3: a margin above 0, as -gamma",
    lambda gamma: -gamma,
    -1e-6,
    lambda gamma: f"the tangent margin is {float(gamma):.3g}, P3 asks for one above 0",
)
DIRECTION = given(
    "|theta_*|^2 = 2",
    lambda i: jnp.abs(quantities.length(i, i.direction) ** 2 - 2),
    1e-9,
    lambda i: f"|theta_*|^2 = {float(quantities.length(i, i.direction) ** 2):.4g}, P3 asks for 2",
)
AT_HORIZON = given(
    "eps = 1/K",
    lambda eps, K: jnp.abs(eps * K - 1),
    1e-9,
    lambda eps, K: f"eps = {float(eps):.4g}, the corollary takes 1/K = {1 / float(K):.4g}",
)
_GOOD_START = (
    SEPARABLE, DIRECTION, AT_HORIZON, reached("Corollary 5", lambda k: k.start_root)
)  # fmt: skip
TRAINING = (
    *_GOOD_START,
    short_step(
        "eta <= min(1, 1/rho(K), (4 B_Phi^2/gamma^2)/log(1 + e^B_Phi))", lambda k: k.start_step
    ),
)
STABLE_TRAINING = (
    *_GOOD_START,
    short_step(
        "eta <= min(1, 1/rho(K), 1/beta_1(B)^2, (4 B_Phi^2/gamma^2)/log(1 + e^B_Phi))",
        lambda k: k.stable_start_step,
    ),
)
