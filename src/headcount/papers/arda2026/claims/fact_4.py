"""Fact 4 and Definition 1 of arda2026: Gaussian norms and the event E_U, with exact probabilities.

The probability of each statement is known in closed form (chi distribution), so the falsifier
maximises P / (what is allowed) itself.
"""

from __future__ import annotations

import functools
import math

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.special import gammainc, gammaincc, gammaln

from ....theory import (
    Bound,
    Box,
    Check,
    Kind,
    Positive,
    Record,
    false,
)
from ..constants import event_radius, state
from ..records import PAIRED, Near

LARGEST_D, LARGEST_M = 10**4, 10**5


class Gaussian(Record):
    """m Gaussian vectors in dimension d, a deviation t and a probability delta."""

    d = Positive(low=1.0, high=600.0)
    m = Positive(low=2.0, high=5000.0)
    t = Positive(low=1e-3, high=8.0)
    log_delta = Box(low=-16.0, high=-1e-3)

    shapes = ({},)

    def outside(self) -> str | None:
        """d and m/2 are whole, delta is below 1."""
        if self.d % 1 or self.m % 2 or self.d > LARGEST_D or self.m > LARGEST_M:
            return f"d = {self.d} is not whole or m = {self.m} is not even, or one is too large"
        return None if self.log_delta < 0 else f"log_delta = {self.log_delta} is not below 0"

    def within(self):
        """Whole d and m/2."""
        d = lax.stop_gradient(jnp.round(self.d))
        return self.changed(d=d, m=lax.stop_gradient(2 * jnp.round(self.m / 2)))


gaussian = functools.partial(
    state.claim,
    on=Gaussian,
    asks=(),
    proved="App. A.1",
    also=("Boucheron, Lugosi, Massart 2013, Thm. 5.6",),
)
a_probability = functools.partial(gaussian, kind=Kind.HIGH_PROBABILITY, trivial=lambda k: 1.0)


def mean_norm(d):
    """E|G| = sqrt(2) Gamma((d+1)/2) / Gamma(d/2)."""
    return math.sqrt(2) * jnp.exp(gammaln((d + 1) / 2) - gammaln(d / 2))


def upper(d, r):
    """P(|G| >= r)."""
    return gammaincc(d / 2, jnp.maximum(r, 0.0) ** 2 / 2)


def upper_slowly(num, d, r):
    """P(|G| >= r) by the upward recursion of Q(a, x) from Q(1/2, x) or Q(1, x)."""
    if r <= 0:
        return num.number(1)
    x = r * r / 2
    if d % 2:
        total, a, gamma = num.erfc(num.sqrt(x)), num.number("0.5"), num.sqrt(num.pi) / 2
    else:
        total, a, gamma = num.exp(-x), num.number(1), num.number(1)
    power = num.exp(a * num.log(x) - x) / gamma
    while 2 * a < d:
        total = total + power
        a = a + 1
        power = power * x / a
    return total


def mean_slowly(num, d):
    """E|G| by E|G_{d+2}| = E|G_d| (d+1)/d from d = 1 or 2."""
    mean = num.sqrt(2 / num.pi) if d % 2 else num.sqrt(num.pi / 2)
    for k in range(1 if d % 2 else 2, d, 2):
        mean = mean * (k + 1) / k
    return mean


@a_probability(
    "fact-4",
    "Concentration of a Gaussian norm",
    where="Fact 4",
    says=r"\mathbb{P}(|\|G\|_2-\mathbb{E}\|G\|_2|\ge t)\le 2e^{-t^2/2}",
    forms={
        "printed": "two-sided, factor 2",
        "one-sided": ("P(|G| >= E|G| + t) <= exp(-t^2/2), what the maximum uses", "E3"),
    },
)
def fact_4(d, t, form):
    """P(||G| - E|G|| >= t) <= 2 exp(-t^2/2) for G ~ N(0, I_d) and t > 0."""
    mean = mean_norm(d)
    above = upper(d, mean + t)
    if form == "one-sided":
        return above, jnp.exp(-(t**2) / 2)
    below = gammainc(d / 2, jnp.maximum(mean - t, 0.0) ** 2 / 2)
    return above + below, 2 * jnp.exp(-(t**2) / 2)


@fact_4.twin
def _(num, d, t, form):
    d, allowed = num.whole(d), num.exp(-t * t / 2)
    mean = mean_slowly(num, d)
    above = upper_slowly(num, d, mean + t)
    if form == "one-sided":
        return above, allowed
    return above + 1 - upper_slowly(num, d, mean - t), 2 * allowed


@gaussian(
    "fact-4-mean",
    "Mean of a Gaussian norm",
    where="Fact 4",
    says=r"\mathbb{E}\|G\|_2\le\sqrt d",
    forms="tight as d grows",
    no_rival="a mean that is known exactly",
)
def fact_4_mean(d):
    """E|G| <= sqrt(d) for G ~ N(0, I_d)."""
    return mean_norm(d), jnp.sqrt(d)


@fact_4_mean.twin
def _(num, d):
    return mean_slowly(num, num.whole(d)), num.sqrt(d)


def some_exceeds(d, copies, radius):
    """P(max over independent copies of |G| > radius)."""
    return -jnp.expm1(copies * jnp.log1p(-upper(d, radius)))


def some_exceeds_slowly(num, d, copies, radius):
    """1 - (1-p)^copies, as p sum_k (1-p)^k: no cancellation for small p."""
    p = upper_slowly(num, d, radius)
    total, power = num.number(0), num.number(1)
    for _ in range(copies):
        total = total + power
        power = power * (1 - p)
    return p * total


@a_probability(
    "fact-4-max",
    "Largest of m Gaussian norms",
    where="Fact 4",
    says=r"\mathbb{P}(\max_i\|G_i\|_2\le\sqrt d+\sqrt{2\log(m/\delta)})\ge 1-\delta",
    forms="the union bound over the one-sided tail",
    notes=("E3",),
)
def fact_4_max(d, m, log_delta):
    """With probability at least 1 - delta, max_i |G_i| <= sqrt(d) + sqrt(2 ln(m/delta))."""
    radius = jnp.sqrt(d) + jnp.sqrt(2 * (jnp.log(m) - log_delta))
    return some_exceeds(d, m, radius), jnp.exp(log_delta)


@fact_4_max.twin
def _(num, d, m, log_delta):
    radius = num.sqrt(d) + num.sqrt(2 * (num.log(m) - log_delta))
    return some_exceeds_slowly(num, num.whole(d), num.whole(m), radius), num.exp(log_delta)


def argument(log_m, log_delta, form):
    """ln(m / (2 delta')), or ln((m/2) delta') as it can be misread."""
    return log_m - math.log(2) + (log_delta if form == "misread" else -log_delta)


@state.claim(
    "definition-1",
    "The event E_U",
    where="Definition 1",
    proved="Sec. 5.2",
    on=Gaussian,
    asks=(),
    says=r"\mathbb{P}(\max_i\|U_i^{(0)}\|_2\le\sqrt d+\sqrt{2\log(m/(2\delta'))})\ge1-\delta'",
    kind=Kind.HIGH_PROBABILITY,
    trivial=lambda k: 1.0,
    tight=lambda: (
        Gaussian(
            **dict(zip("dmt", map(np.array, (1.0, 1000.0, 1.0)), strict=True)),
            log_delta=np.array(math.log(0.002)),
        ),
    ),
    forms={
        "printed": ("log(m/2 delta') read as ln(m / (2 delta'))", "E2"),
        "misread": false("log(m/2 delta') read from left to right as ln((m/2) delta')", "E2"),
    },
    bound=lambda setting, form: Bound(event_radius(setting.d, setting.m, setting.delta_prime)),
    measured=lambda subject: np.max(np.linalg.norm(subject.instances(Near)[0].U0, axis=-1)),
    conditions=lambda subject, form: (Check(PAIRED, subject.measured[PAIRED], 0.0),),
)
def definition_1(d, m, log_delta, form):
    """With probability at least 1 - delta' over the paired initialisation, every |U_i| is at most
    sqrt(d) + sqrt(2 ln(m / (2 delta')))."""
    logarithm = argument(jnp.log(m), log_delta, form)
    radius = jnp.sqrt(d) + jnp.sqrt(2 * jnp.maximum(logarithm, 1e-300))  # has a slope at 0
    return some_exceeds(d, m / 2, radius), jnp.exp(log_delta)


@definition_1.twin
def _(num, d, m, log_delta, form):
    half, delta = num.whole(m / 2), num.exp(log_delta)
    inside = half * delta if form == "misread" else half / delta
    radius = num.sqrt(d) + num.root(2 * num.positive_part(num.log(inside)))
    return some_exceeds_slowly(num, num.whole(d), half, radius), delta
