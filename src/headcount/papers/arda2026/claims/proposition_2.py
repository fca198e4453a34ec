"""Proposition 2 of arda2026: why the constants of an IndRNN can grow with T.

The proposition hides its constants; what makes them grow is the derivative of the last state in
the recurrent weight, which can be bounded explicitly: with |sigma| <= s0, |sigma'| <= s1,

    |dh_T/dw| <= mu_T := s0 s1 sum_{k=0}^{T-2} (s1 |w|)^k,

bounded in T when s1 |w| < 1, linear when s1 |w| = 1, exponential beyond: the regimes of the cutoff
gamma + rho_w/sqrt(m) <= 1/s1, which the proposition counts as bounded with its boundary.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from ....theory import Box, Choice, Reals, Record, Tokens, false, given
from ....theory.domain import activation_problem
from ....theory.slow import activation, dot
from ..constants import state
from ..records import TOKENS

SLACK = 20.0
"""The constant that stands for O(1): twenty times what two tokens need."""
NO_RIVAL = "nothing simpler bounds the slope of a recurrent unit"


class Unit(Record):
    """One recurrent unit h_t = sigma(U . X_t + w h_{t-1}), h_0 = 0, on one sample."""

    X = Tokens("T", "d", says=TOKENS)
    U = Reals("d")
    w = Box(low=-3.0, high=3.0)
    activation = Choice("tanh", others=activation_problem)

    shapes = (
        {"T": 3, "d": 2},
        {"T": 2, "d": 2, "activation": "sin"},
        {"T": 6, "d": 1, "activation": "logistic"},
    )

    @property
    def x(self):
        """s1 |w|."""
        return self.sigma.sigma1 * jnp.abs(self.w)


def below(unit):
    """At or below the cutoff: s1 |w| <= 1."""
    most = 1 / unit.sigma.sigma1
    return unit.changed(w=jnp.clip(unit.w, -most, most))


def slope(i):
    """|dh_T/dw| [arda2026, App. B.1]."""

    def last_state(w):
        def step(h, token):
            return i.sigma(i.U @ token + w * h), None

        return jax.lax.scan(step, jnp.zeros_like(w), i.X)[0]

    return jnp.abs(jax.grad(last_state)(i.w))


def slope_slowly(num, i):
    """The same, with the derivative carried along."""
    sigma = activation(num, i["activation"])
    w, h, slope = i["w"], num.number(0), num.number(0)
    for token in i["X"]:
        pre = dot(i["U"], token) + w * h
        h, slope = sigma.value(pre), sigma.slope(pre) * (h + w * slope)
    return abs(slope)


def top_of_the_wave():
    """A sine unit: h_1 = 1 at the top of the wave, and the next step at its steepest point."""
    w, U = np.asarray(0.5), np.array([np.pi / 2, -0.5])
    return Unit(X=np.array([[1.0, 0.0], [0.0, 1.0]]), U=U, w=w, activation="sin")


@state.claim(
    "proposition-2",
    "Recurrent gradients and the length of the input",
    where="Proposition 2 (its mu_T made explicit)",
    proved="App. B.1",
    on=Unit,
    asks=("X",),
    says=r"|\partial h_T/\partial w|\le\sigma_0\sigma_1\sum_{k=0}^{T-2}(\sigma_1|w|)^k",
    tight=lambda: (top_of_the_wave(),),
    no_rival=NO_RIVAL,
    forms={
        "explicit": (
            "the proposition itself prints no constants (O(1) or exp(Omega(T))) and the "
            "exponential branch is an upper bound, not a prediction",
            "E22",
        )
    },
)
def proposition_2(i):
    """For an IndRNN unit, |dh_T/dw| <= mu_T = s0 s1 sum_{k<=T-2} (s1 |w|)^k: bounded in T below the
    cutoff s1 |w| < 1, exponential in T above it."""
    powers = i.x ** jnp.arange(len(i.X) - 1, dtype=i.x.dtype)
    return slope(i), i.sigma.sigma0 * i.sigma.sigma1 * jnp.sum(powers)


@proposition_2.twin
def _(num, i, k):
    s0, s1, _ = k.bounds
    total = num.number(0)
    for _ in range(len(i["X"]) - 1):
        total = 1 + s1 * abs(i["w"]) * total
    return slope_slowly(num, i), s0 * s1 * total


def at_the_boundary(T):
    """A logistic unit with w = 4 = 1/s1 that stays at its steepest point, h = 1/2."""
    tokens = np.concatenate([np.zeros((1, 1)), -np.ones((T - 1, 1))])
    return Unit(X=tokens, U=np.array([2.0]), w=np.array(4.0), activation="logistic")


@state.claim(
    "proposition-2-cutoff",
    "Bounded gradients up to the cutoff",
    where="Proposition 2",
    proved="App. B.1",
    on=Unit,
    shapes=(
        {"T": 3, "d": 2, "within": below},
        {"T": 12, "d": 1, "activation": "logistic", "within": below},
    ),
    asks=("X",),
    says=r"\mu_T=\mathcal O(1)\ \text{if}\ \gamma+\rho_w/\sqrt m\le1/\sigma_1",
    tight=lambda: (at_the_boundary(100), top_of_the_wave()),
    no_rival=NO_RIVAL,
    forms={
        "bounded": false(
            "one number for every T, the boundary with it: here 20 s0 s1, where two tokens need "
            "s0 s1; any number fails at some T, since the derivative there is (T - 1)/8",
            "E23",
        ),
        "corrected": ("T - 1 at the boundary", "E23"),
    },
    given=(given("at or below the cutoff: s1 |w|", lambda x: x, 1.0),),
)
def proposition_2_cutoff(i, form):
    """|dh_T/dw| = O(1) wherever s1 |w| <= 1 (bounded: by 20 s0 s1, twenty times what two tokens
    need). Corrected: s0 s1 min(T - 1, 1/(1 - s1 |w|)), bounded strictly below the cutoff,
    linear in T at it."""
    size, terms = i.sigma.sigma0 * i.sigma.sigma1, len(i.X) - 1
    if form == "bounded":
        return slope(i), SLACK * size
    return slope(i), size * terms / jnp.maximum(terms * (1 - i.x), 1.0)


@proposition_2_cutoff.twin
def _(num, i, k, form):
    s0, s1, _ = k.bounds
    if form == "bounded":
        return slope_slowly(num, i), SLACK * s0 * s1
    terms = len(i["X"]) - 1
    below = num.largest([terms * (1 - s1 * abs(i["w"])), num.number(1)])
    return slope_slowly(num, i), s0 * s1 * terms / below
