"""Proposition 2 of arda2026: why the constants of an IndRNN can grow with T.

The proposition hides its constants; what makes them grow is the derivative of the last state in
the recurrent weight, which can be bounded explicitly: with |sigma| <= s0, |sigma'| <= s1,

    |dh_T/dw| <= mu_T := s0 s1 sum_{k=0}^{T-2} (s1 |w|)^k,

bounded in T when s1 |w| < 1, linear when s1 |w| = 1, exponential beyond: the two regimes of the
cutoff gamma + rho_w/sqrt(m) <= 1/s1.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ...core import Array, activation_named
from ...theory import Claim, Family, Kind, Sides, Variant, claims, instance_class
from ...theory.slow import Arithmetic, activation, dot
from .hypotheses import TOKENS
from .instances import into_ball
from .naive import Data


@instance_class
@dataclass(frozen=True)
class UnitInstance:
    """One recurrent unit h_t = sigma(U . X_t + w h_{t-1}), h_0 = 0, on one sample."""

    X: Float[Array, "T d"]
    U: Float[Array, "d"]
    w: Float[Array, ""]
    activation: str = "tanh"


def last_state(i: UnitInstance, w: Float[Array, ""]) -> Float[Array, ""]:
    """h_T as a function of the recurrent weight [arda2026, App. B.1]."""
    sigma = activation_named(i.activation)
    h = jnp.zeros_like(w)
    for t in range(i.X.shape[0]):
        h = sigma(i.U @ i.X[t] + w * h)
    return h


def growth(s0: Any, s1: Any, w: Any, T: int) -> Any:
    """mu_T = s0 s1 sum_{k=0}^{T-2} (s1 |w|)^k."""
    return s0 * s1 * sum((s1 * abs(w)) ** k for k in range(T - 1)) if T > 1 else 0 * abs(w)


def _sides(i: UnitInstance, variant: str) -> Sides:
    sigma = activation_named(i.activation)
    T = i.X.shape[0]
    slope = jax.grad(lambda w: last_state(i, w))(i.w)
    rhs = growth(sigma.sigma0, sigma.sigma1, i.w, T)
    return Sides(jnp.abs(slope), rhs, {"s1 |w|": sigma.sigma1 * jnp.abs(i.w), "T": jnp.asarray(T)})


def _naive_sides(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    sigma = activation(num, data["activation"])
    w, h, slope = data["w"], num.number(0), num.number(0)
    for token in data["X"]:
        pre = dot(data["U"], token) + w * h
        h, slope = sigma.value(pre), sigma.slope(pre) * (h + w * slope)
    s0, s1, _ = sigma.bounds
    return abs(slope), growth(s0, s1, w, len(data["X"]))


def _draw(rng: np.random.Generator, count: int, *, T: int, d: int, activation: str) -> UnitInstance:
    return UnitInstance(
        X=rng.normal(size=(count, T, d)) * np.exp(rng.uniform(-1.5, 1.5, (count, T, 1))),
        U=rng.normal(size=(count, d)) * np.exp(rng.uniform(-2, 2, (count, 1))),
        w=rng.normal(size=count) * np.exp(rng.uniform(-1.5, 1.0, count)),
        activation=activation,
    )


def _project(i: UnitInstance) -> UnitInstance:
    return replace(i, X=into_ball(i.X), w=jnp.clip(i.w, -3.0, 3.0))


def _family(T: int, activation: str) -> Family:
    draw = functools.partial(_draw, T=T, d=2, activation=activation)
    return Family(f"unit T={T} {activation}", draw, _project)


def _targets() -> tuple[UnitInstance, ...]:
    """A sine unit: h_1 = 1 at the top of the wave, and the next step at its steepest point."""
    X = np.array([[1.0, 0.0], [0.0, 1.0]])
    w = 0.5
    U = np.array([np.pi / 2, -w])
    return (UnitInstance(X, U, np.asarray(w), "sin"),)


proposition_2 = claims.add(
    Claim(
        id="arda2026/proposition-2",
        title="Recurrent gradients and the length of the input",
        kind=Kind.DETERMINISTIC,
        equations="Proposition 2 (its mu_T made explicit)",
        statement=(
            "For an IndRNN unit, |dh_T/dw| <= mu_T = s0 s1 sum_{k<=T-2} (s1 |w|)^k: bounded in T "
            "below the cutoff s1 |w| < 1, exponential in T above it."
        ),
        latex=r"|\partial h_T/\partial w|\le\sigma_0\sigma_1\sum_{k=0}^{T-2}(\sigma_1|w|)^k",
        sides=_sides,
        naive=_naive_sides,
        families=(_family(3, "tanh"), _family(2, "sin")),
        targets=_targets,
        variants={
            "explicit": Variant(
                "the proposition itself prints no constants (O(1) or exp(Omega(T))) and the "
                "exponential branch is an upper bound, not a prediction",
                "E22",
            )
        },
        default="explicit",
        hypotheses=(TOKENS,),
        errata=("E22",),
        references=("arda2026, App. B.1",),
    )
)
