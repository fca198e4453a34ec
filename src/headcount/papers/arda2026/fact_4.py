"""Fact 4 and Definition 1 of arda2026: Gaussian norms and the event E_U, with exact probabilities.

The probability of each statement is known in closed form (chi distribution), so the falsifier
maximises P / (what is allowed) itself; Definition 1 is also tested by frequency over seeds.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.special import gammainc, gammaincc, gammaln
from jaxtyping import Float

from ...core import Array
from ...theory import Bound, Check, Experiment, Family, Kind, Sides, instance_class
from ...theory.domain import MOST_ENTRIES, Domain, case_problem
from ...theory.families import log_uniform
from ...theory.slow import Arithmetic
from .constants import event_radius
from .declare import claim, false
from .naive import Data
from .setting import Setting

_LARGEST_D, _LARGEST_M = 10**4, 10**5


@instance_class
@dataclass(frozen=True)
class GaussianInstance(Domain):
    """m Gaussian vectors in dimension d, a deviation t and a probability delta."""

    d: Float[Array, ""]
    m: Float[Array, ""]
    t: Float[Array, ""]
    log_delta: Float[Array, ""]

    positive = ("d", "m", "t")

    def outside(self) -> str | None:
        """d and m/2 are whole, delta is below 1."""
        if self.d % 1 or self.m % 2 or self.d > _LARGEST_D or self.m > _LARGEST_M:
            return f"d = {self.d} is not whole or m = {self.m} is not even, or one is too large"
        return None if self.log_delta < 0 else f"log_delta = {self.log_delta} is not below 0"


def _draw(rng: np.random.Generator, count: int) -> GaussianInstance:
    return GaussianInstance(
        d=log_uniform(rng, 1, 600, count),
        m=log_uniform(rng, 2, 5000, count),
        t=log_uniform(rng, 0.05, 6, count),
        log_delta=np.log(rng.uniform(0, 1, count)) * 3,
    )


def _project(instance: GaussianInstance) -> GaussianInstance:
    return replace(
        instance,
        d=lax.stop_gradient(jnp.clip(jnp.round(instance.d), 1, 600)),
        m=lax.stop_gradient(2 * jnp.clip(jnp.round(instance.m / 2), 1, 2500)),
        t=jnp.clip(instance.t, 1e-3, 8.0),
        log_delta=jnp.clip(instance.log_delta, -16.0, -1e-3),
    )


FAMILY = (Family("dimensions, widths, probabilities", _draw, _project),)
gaussian = functools.partial(
    claim,
    families=FAMILY,
    where="App. A.1",
    also=("Boucheron, Lugosi, Massart 2013, Thm. 5.6",),
)


def _mean(d: Any) -> Any:
    """E|G| = sqrt(2) Gamma((d+1)/2) / Gamma(d/2)."""
    return math.sqrt(2) * jnp.exp(gammaln((d + 1) / 2) - gammaln(d / 2))


def _upper(d: Any, r: Any) -> Any:
    """P(|G| >= r)."""
    return gammaincc(d / 2, jnp.maximum(r, 0.0) ** 2 / 2)


def _upper_naively(num: Arithmetic, d: int, r: Any) -> Any:
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


def _mean_naively(num: Arithmetic, d: int) -> Any:
    """E|G| by E|G_{d+2}| = E|G_d| (d+1)/d from d = 1 or 2."""
    mean = num.sqrt(2 / num.pi) if d % 2 else num.sqrt(num.pi / 2)
    for k in range(1 if d % 2 else 2, d, 2):
        mean = mean * (k + 1) / k
    return mean


def _tail(i: GaussianInstance, variant: str) -> Sides:
    mean = _mean(i.d)
    above = _upper(i.d, mean + i.t)
    if variant == "one-sided":
        return Sides(above, jnp.exp(-(i.t**2) / 2), {"mean": mean})
    below = gammainc(i.d / 2, jnp.maximum(mean - i.t, 0.0) ** 2 / 2)
    return Sides(above + below, 2 * jnp.exp(-(i.t**2) / 2), {"mean": mean}, trivial=1.0)


def _tail_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    d, t = num.whole(data["d"]), data["t"]
    mean = _mean_naively(num, d)
    allowed = num.exp(-t * t / 2)
    above = _upper_naively(num, d, mean + t)
    if variant == "one-sided":
        return above, allowed
    return above + 1 - _upper_naively(num, d, mean - t), 2 * allowed


gaussian(
    "fact-4",
    "Concentration of a Gaussian norm",
    "Fact 4",
    "P(||G| - E|G|| >= t) <= 2 exp(-t^2/2) for G ~ N(0, I_d) and t > 0.",
    r"\mathbb{P}(|\|G\|_2-\mathbb{E}\|G\|_2|\ge t)\le 2e^{-t^2/2}",
    kind=Kind.HIGH_PROBABILITY,
    sides=_tail,
    naive=_tail_naive,
    forms={
        "printed": "two-sided, factor 2",
        "one-sided": ("P(|G| >= E|G| + t) <= exp(-t^2/2), what the maximum uses", "E3"),
    },
)

gaussian(
    "fact-4-mean",
    "Mean of a Gaussian norm",
    "Fact 4",
    "E|G| <= sqrt(d) for G ~ N(0, I_d).",
    r"\mathbb{E}\|G\|_2\le\sqrt d",
    sides=lambda i, variant: Sides(_mean(i.d), jnp.sqrt(i.d)),
    naive=lambda num, data, variant: (
        _mean_naively(num, num.whole(data["d"])),
        num.sqrt(data["d"]),
    ),
    forms="tight as d grows",
)


def _some_exceeds(d: Any, copies: Any, radius: Any) -> Any:
    """P(max over independent copies of |G| > radius)."""
    return -jnp.expm1(copies * jnp.log1p(-_upper(d, radius)))


def _some_exceeds_naively(num: Arithmetic, d: int, copies: int, radius: Any) -> Any:
    """1 - (1-p)^copies, as p sum_k (1-p)^k: no cancellation for small p."""
    p = _upper_naively(num, d, radius)
    total, power = num.number(0), num.number(1)
    for _ in range(copies):
        total = total + power
        power = power * (1 - p)
    return p * total


def _maximum(i: GaussianInstance, variant: str) -> Sides:
    radius = jnp.sqrt(i.d) + jnp.sqrt(2 * (jnp.log(i.m) - i.log_delta))
    return Sides(_some_exceeds(i.d, i.m, radius), jnp.exp(i.log_delta), {"radius": radius})


def _maximum_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    d, m = num.whole(data["d"]), num.whole(data["m"])
    radius = num.sqrt(data["d"]) + num.sqrt(2 * (num.log(data["m"]) - data["log_delta"]))
    return _some_exceeds_naively(num, d, m, radius), num.exp(data["log_delta"])


gaussian(
    "fact-4-max",
    "Largest of m Gaussian norms",
    "Fact 4",
    "With probability at least 1 - delta, max_i |G_i| <= sqrt(d) + sqrt(2 ln(m/delta)).",
    r"\mathbb{P}(\max_i\|G_i\|_2\le\sqrt d+\sqrt{2\log(m/\delta)})\ge 1-\delta",
    kind=Kind.HIGH_PROBABILITY,
    sides=_maximum,
    naive=_maximum_naive,
    forms="the union bound over the one-sided tail",
    errata=("E3",),
)


def _event_argument(log_m: Any, log_delta: Any, variant: str) -> Any:
    """ln(m / (2 delta')), or ln((m/2) delta') as it can be misread."""
    return log_m - math.log(2) + (log_delta if variant == "misread" else -log_delta)


def _event(i: GaussianInstance, variant: str) -> Sides:
    argument = _event_argument(jnp.log(i.m), i.log_delta, variant)
    radius = jnp.sqrt(i.d) + jnp.sqrt(2 * jnp.maximum(argument, 1e-300))  # has a slope at 0
    return Sides(_some_exceeds(i.d, i.m / 2, radius), jnp.exp(i.log_delta), {"radius": radius})


def _event_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    d, half = num.whole(data["d"]), num.whole(data["m"] / 2)
    delta = num.exp(data["log_delta"])
    inside = half * delta if variant == "misread" else half / delta
    radius = num.sqrt(data["d"]) + num.root(2 * num.positive_part(num.log(inside)))
    return _some_exceeds_naively(num, d, half, radius), delta


@instance_class
@dataclass(frozen=True)
class EventInstance(Domain):
    """The U-blocks of one paired initialisation: m/2 independent vectors."""

    U: Float[Array, "half d"]
    delta: Float[Array, ""]

    fractions = ("delta",)


def _draw_event(case: Mapping[str, Any], rng: np.random.Generator, count: int) -> EventInstance:
    U = rng.normal(size=(count, case["m"] // 2, case["d"]))
    return EventInstance(U, np.full(count, float(case["delta"])))


def _event_of_draw(i: EventInstance, variant: str) -> Sides:
    half, d = i.U.shape
    argument = _event_argument(math.log(2 * half), jnp.log(i.delta), variant)
    radius = math.sqrt(d) + jnp.sqrt(2 * jnp.maximum(argument, 0.0))
    return Sides(jnp.max(jnp.linalg.norm(i.U, axis=-1)), radius)


def _count_events(case: Mapping[str, Any], variant: str, seed: int, repetitions: int) -> int:
    """Squared norms from the chi-square law itself: no vectors are drawn."""
    rng = np.random.default_rng(seed)
    d, half, delta = case["d"], case["m"] // 2, case["delta"]
    inside = half * delta if variant == "misread" else half / delta
    radius = math.sqrt(d) + math.sqrt(2 * max(math.log(inside), 0.0))
    return sum(max(rng.chisquare(d, half)) > radius * radius for _ in range(repetitions))


def _case_problem(case: Mapping[str, Any]) -> str | None:
    reason = case_problem(case, whole={"d": _LARGEST_D, "m": _LARGEST_M})
    if reason is None and case["d"] * case["m"] > MOST_ENTRIES:
        return f"d m = {case['d'] * case['m']} exceeds {MOST_ENTRIES}"
    return reason


def _event_bound(setting: Setting, variant: str) -> Bound:
    radius = event_radius(setting.d, setting.m, setting.delta_prime)
    return Bound(radius, {"radius": radius})


claim(
    "definition-1",
    "The event E_U",
    "Definition 1",
    "With probability at least 1 - delta' over the paired initialisation, every |U_i| is at most "
    "sqrt(d) + sqrt(2 ln(m / (2 delta'))).",
    r"\mathbb{P}(\max_i\|U_i^{(0)}\|_2\le\sqrt d+\sqrt{2\log(m/(2\delta'))})\ge1-\delta'",
    kind=Kind.HIGH_PROBABILITY,
    sides=_event,
    naive=_event_naive,
    families=FAMILY,
    targets=lambda: (
        GaussianInstance(*(np.array(v) for v in (1.0, 1000.0, 1.0, math.log(0.002)))),
    ),
    forms={
        "printed": ("log(m/2 delta') read as ln(m / (2 delta'))", "E2"),
        "misread": false("log(m/2 delta') read from left to right as ln((m/2) delta')", "E2"),
    },
    bound=_event_bound,
    measured=lambda subject: np.max(np.linalg.norm(subject.instances(EventInstance)[0].U, axis=-1)),
    conditions=lambda subject, variant: (
        Check("paired initialisation with |c| = 1", float(subject.trace.pairing), 0.0),
    ),
    experiment=Experiment(
        cases=({"d": 1, "m": 2, "delta": 0.5}, {"d": 2, "m": 64, "delta": 0.1}),
        draw=_draw_event,
        sides=_event_of_draw,
        exceeds_naively=_count_events,
        case_problem=_case_problem,
    ),
    where="Sec. 5.2",
)
