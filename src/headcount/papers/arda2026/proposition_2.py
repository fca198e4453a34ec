"""Proposition 2 of arda2026: why the constants of an IndRNN can grow with T.

The proposition hides its constants; what makes them grow is the derivative of the last state in
the recurrent weight, which can be bounded explicitly: with |sigma| <= s0, |sigma'| <= s1,

    |dh_T/dw| <= mu_T := s0 s1 sum_{k=0}^{T-2} (s1 |w|)^k,

bounded in T when s1 |w| < 1, linear when s1 |w| = 1, exponential beyond: the regimes of the cutoff
gamma + rho_w/sqrt(m) <= 1/s1, which the proposition counts as bounded with its boundary.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ...core import Array
from ...theory import Family, Hypothesis, Sides, instance_class
from ...theory.domain import Domain
from ...theory.families import into_ball, log_uniform, shaped
from ...theory.slow import Arithmetic, activation, dot
from .declare import claim, false
from .hypotheses import TOKENS
from .naive import Data

SLACK = 20.0
"""The constant that stands for O(1): twenty times what two tokens need."""


@instance_class
@dataclass(frozen=True)
class UnitInstance(Domain):
    """One recurrent unit h_t = sigma(U . X_t + w h_{t-1}), h_0 = 0, on one sample."""

    X: Float[Array, "T d"]
    U: Float[Array, "d"]
    w: Float[Array, ""]
    activation: str = "tanh"


def last_state(i: UnitInstance, w: Float[Array, ""]) -> Float[Array, ""]:
    """h_T as a function of the recurrent weight [arda2026, App. B.1]."""

    def step(h: Array, token: Array) -> tuple[Array, None]:
        return i.sigma(i.U @ token + w * h), None

    return jax.lax.scan(step, jnp.zeros_like(w), i.X)[0]


def _slope(i: UnitInstance) -> Any:
    return jnp.abs(jax.grad(lambda w: last_state(i, w))(i.w))


def _explicit(i: UnitInstance, variant: str) -> Sides:
    x, T = i.sigma.sigma1 * jnp.abs(i.w), i.X.shape[0]
    mu = i.sigma.sigma0 * i.sigma.sigma1 * jnp.sum(x ** jnp.arange(T - 1, dtype=x.dtype))
    return Sides(_slope(i), mu, {"s1 |w|": x, "T": jnp.asarray(T)})


def _slope_naively(num: Arithmetic, data: Data) -> Any:
    sigma = activation(num, data["activation"])
    w, h, slope = data["w"], num.number(0), num.number(0)
    for token in data["X"]:
        pre = dot(data["U"], token) + w * h
        h, slope = sigma.value(pre), sigma.slope(pre) * (h + w * slope)
    return abs(slope)


def _explicit_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    s0, s1, _ = activation(num, data["activation"]).bounds
    total = num.number(0)
    for _ in range(len(data["X"]) - 1):
        total = 1 + s1 * abs(data["w"]) * total
    return _slope_naively(num, data), s0 * s1 * total


def _draw(rng: np.random.Generator, count: int, *, T: int, d: int, activation: str) -> UnitInstance:
    return UnitInstance(
        X=rng.normal(size=(count, T, d)) * log_uniform(rng, 0.2, 5.0, count, T, 1),
        U=rng.normal(size=(count, d)) * log_uniform(rng, 1e-3, 1e2, count, 1),
        w=rng.normal(size=count) * log_uniform(rng, 0.2, 3.0, count),
        activation=activation,
    )


def _project(i: UnitInstance) -> UnitInstance:
    return replace(i, X=into_ball(i.X), w=jnp.clip(i.w, -3.0, 3.0))


def _project_below(i: UnitInstance) -> UnitInstance:
    """At or below the cutoff."""
    most = 1 / i.sigma.sigma1
    return replace(_project(i), w=jnp.clip(i.w, -most, most))


def _families(project: Any, *shapes: tuple[int, int, str]) -> tuple[Family, ...]:
    return tuple(shaped("unit", _draw, project, T=T, d=d, activation=name) for T, d, name in shapes)


def _top_of_the_wave() -> tuple[UnitInstance, ...]:
    """A sine unit: h_1 = 1 at the top of the wave, and the next step at its steepest point."""
    X = np.array([[1.0, 0.0], [0.0, 1.0]])
    w = 0.5
    return (UnitInstance(X, np.array([np.pi / 2, -w]), np.asarray(w), "sin"),)


claim(
    "proposition-2",
    "Recurrent gradients and the length of the input",
    "Proposition 2 (its mu_T made explicit)",
    "For an IndRNN unit, |dh_T/dw| <= mu_T = s0 s1 sum_{k<=T-2} (s1 |w|)^k: bounded in T below the "
    "cutoff s1 |w| < 1, exponential in T above it.",
    r"|\partial h_T/\partial w|\le\sigma_0\sigma_1\sum_{k=0}^{T-2}(\sigma_1|w|)^k",
    sides=_explicit,
    naive=_explicit_naive,
    families=_families(_project, (3, 2, "tanh"), (2, 2, "sin"), (6, 1, "logistic")),
    targets=_top_of_the_wave,
    forms={
        "explicit": (
            "the proposition itself prints no constants (O(1) or exp(Omega(T))) and the "
            "exponential branch is an upper bound, not a prediction",
            "E22",
        )
    },
    hypotheses=(TOKENS,),
    where="App. B.1",
)


def _cutoff(i: UnitInstance, variant: str) -> Sides:
    size, x = i.sigma.sigma0 * i.sigma.sigma1, i.sigma.sigma1 * jnp.abs(i.w)
    if variant == "printed":
        return Sides(_slope(i), SLACK * size)
    terms = i.X.shape[0] - 1
    return Sides(_slope(i), size * terms / jnp.maximum(terms * (1 - x), 1.0))


def _cutoff_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    s0, s1, _ = activation(num, data["activation"]).bounds
    if variant == "printed":
        return _slope_naively(num, data), SLACK * s0 * s1
    terms = len(data["X"]) - 1
    below = num.largest([terms * (1 - s1 * abs(data["w"])), num.number(1)])
    return _slope_naively(num, data), s0 * s1 * terms / below


BELOW = Hypothesis(
    "at or below the cutoff: s1 |w|",
    lambda i: i.sigma.sigma1 * jnp.abs(i.w),
    lambda num, data: activation(num, data["activation"]).bounds[1] * abs(data["w"]),
)


def _at_the_boundary(T: int) -> UnitInstance:
    """A logistic unit with w = 4 = 1/s1 that stays at its steepest point, h = 1/2."""
    tokens = np.concatenate([np.zeros((1, 1)), -np.ones((T - 1, 1))])
    return UnitInstance(tokens, np.array([2.0]), np.array(4.0), "logistic")


claim(
    "proposition-2-cutoff",
    "Bounded gradients up to the cutoff",
    "Proposition 2",
    "mu_T = O(1) wherever s1 |w| <= 1 (printed; here: |dh_T/dw| <= 20 s0 s1, twenty times what two "
    "tokens need). Corrected: s0 s1 min(T - 1, 1/(1 - s1 |w|)), bounded strictly below the cutoff, "
    "linear in T at it.",
    r"\mu_T=\mathcal O(1)\ \text{if}\ \gamma+\rho_w/\sqrt m\le1/\sigma_1",
    sides=_cutoff,
    naive=_cutoff_naive,
    families=_families(_project_below, (3, 2, "tanh"), (12, 1, "logistic")),
    targets=lambda: (_at_the_boundary(100), *_top_of_the_wave()),
    forms={
        "printed": false("with the boundary, where the sum has T - 1 equal terms", "E23"),
        "corrected": ("T - 1 at the boundary", "E23"),
    },
    hypotheses=(TOKENS, BELOW),
    where="App. B.1",
)
