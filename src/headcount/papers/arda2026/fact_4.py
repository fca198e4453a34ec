"""Fact 4 and Definition 1 of arda2026: Gaussian norms and the event E_U, with exact probabilities.

The probability of each statement is known in closed form (chi distribution), so the falsifier
maximises P / (what is allowed) itself; Definition 1 is also tested by frequency over seeds.
"""

from __future__ import annotations

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
from ...theory import (
    Bound,
    Claim,
    Experiment,
    Family,
    Hypothesis,
    Kind,
    Sides,
    Variant,
    claims,
    instance_class,
)
from ...theory.slow import Arithmetic
from .constants import event_radius
from .instances import safe_root
from .naive import Data
from .setting import Setting

REFERENCE = ("arda2026, App. A.1", "Boucheron, Lugosi, Massart 2013, Thm. 5.6")


@instance_class
@dataclass(frozen=True)
class GaussianInstance:
    """m Gaussian vectors in dimension d, a deviation t and a probability delta."""

    d: Float[Array, ""]
    m: Float[Array, ""]
    t: Float[Array, ""]
    log_delta: Float[Array, ""]


def _draw(rng: np.random.Generator, count: int) -> GaussianInstance:
    return GaussianInstance(
        d=np.exp(rng.uniform(0, math.log(600), count)),
        m=np.exp(rng.uniform(math.log(2), math.log(5000), count)),
        t=np.exp(rng.uniform(math.log(0.05), math.log(6), count)),
        log_delta=np.log(rng.uniform(0, 1, count)) * 3,
    )


def _project(instance: GaussianInstance) -> GaussianInstance:
    whole = lax.stop_gradient(jnp.clip(jnp.round(instance.d), 1, 600))
    even = lax.stop_gradient(2 * jnp.clip(jnp.round(instance.m / 2), 1, 2500))
    return replace(
        instance,
        d=whole,
        m=even,
        t=jnp.clip(instance.t, 1e-3, 8.0),
        log_delta=jnp.clip(instance.log_delta, -16.0, -1e-3),
    )


FAMILY = (Family("dimensions, widths, probabilities", _draw, _project),)
WHOLE = Hypothesis(
    "d whole and m even",
    lambda i: jnp.abs(i.d - jnp.round(i.d)) + jnp.abs(i.m / 2 - jnp.round(i.m / 2)),
    lambda num, data: abs(data["d"] - round(data["d"])) + abs(data["m"] / 2 - round(data["m"] / 2)),
    threshold=0.0,
)
FRACTION = Hypothesis(
    "delta below 1", lambda i: i.log_delta, lambda num, data: data["log_delta"], threshold=0.0
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
    d, t = round(data["d"]), data["t"]
    mean = _mean_naively(num, d)
    allowed = num.exp(-t * t / 2)
    above = _upper_naively(num, d, mean + t)
    if variant == "one-sided":
        return above, allowed
    return above + 1 - _upper_naively(num, d, mean - t), 2 * allowed


fact_4 = claims.add(
    Claim(
        id="arda2026/fact-4",
        title="Concentration of a Gaussian norm",
        kind=Kind.HIGH_PROBABILITY,
        equations="Fact 4",
        statement="P(||G| - E|G|| >= t) <= 2 exp(-t^2/2) for G ~ N(0, I_d) and t > 0.",
        latex=r"\mathbb{P}(|\|G\|_2-\mathbb{E}\|G\|_2|\ge t)\le 2e^{-t^2/2}",
        sides=_tail,
        naive=_tail_naive,
        families=FAMILY,
        variants={
            "printed": Variant("two-sided, factor 2"),
            "one-sided": Variant("P(|G| >= E|G| + t) <= exp(-t^2/2), what the maximum uses", "E3"),
        },
        default="printed",
        hypotheses=(WHOLE,),
        errata=("E3",),
        references=REFERENCE,
    )
)


def _mean_sides(i: GaussianInstance, variant: str) -> Sides:
    return Sides(_mean(i.d), jnp.sqrt(i.d))


def _mean_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    return _mean_naively(num, round(data["d"])), num.sqrt(data["d"])


fact_4_mean = claims.add(
    Claim(
        id="arda2026/fact-4-mean",
        title="Mean of a Gaussian norm",
        kind=Kind.DETERMINISTIC,
        equations="Fact 4",
        statement="E|G| <= sqrt(d) for G ~ N(0, I_d).",
        latex=r"\mathbb{E}\|G\|_2\le\sqrt d",
        sides=_mean_sides,
        naive=_mean_naive,
        families=FAMILY,
        variants={"printed": Variant("tight as d grows")},
        default="printed",
        hypotheses=(WHOLE,),
        references=REFERENCE,
    )
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
    d, m = round(data["d"]), round(data["m"])
    radius = num.sqrt(data["d"]) + num.sqrt(2 * (num.log(data["m"]) - data["log_delta"]))
    return _some_exceeds_naively(num, d, m, radius), num.exp(data["log_delta"])


fact_4_max = claims.add(
    Claim(
        id="arda2026/fact-4-max",
        title="Largest of m Gaussian norms",
        kind=Kind.HIGH_PROBABILITY,
        equations="Fact 4",
        statement="With probability at least 1 - delta, max_i |G_i| <= sqrt(d) + "
        "sqrt(2 ln(m/delta)).",
        latex=r"\mathbb{P}(\max_i\|G_i\|_2\le\sqrt d+\sqrt{2\log(m/\delta)})\ge 1-\delta",
        sides=_maximum,
        naive=_maximum_naive,
        families=FAMILY,
        variants={"printed": Variant("the union bound over the one-sided tail")},
        default="printed",
        hypotheses=(WHOLE, FRACTION),
        errata=("E3",),
        references=REFERENCE,
    )
)


def _log_argument(log_m: Any, log_delta: Any, log_two: Any, variant: str) -> Any:
    sign = 1 if variant == "misread" else -1
    return log_m - log_two + sign * log_delta


def _event(i: GaussianInstance, variant: str) -> Sides:
    argument = _log_argument(jnp.log(i.m), i.log_delta, math.log(2), variant)
    radius = jnp.sqrt(i.d) + safe_root(2 * argument)
    return Sides(_some_exceeds(i.d, i.m / 2, radius), jnp.exp(i.log_delta), {"radius": radius})


def _event_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    d, m = round(data["d"]), round(data["m"])
    two = num.log(num.number(2))
    argument = _log_argument(num.log(data["m"]), data["log_delta"], two, variant)
    radius = num.sqrt(data["d"]) + num.root(2 * num.positive_part(argument))
    return _some_exceeds_naively(num, d, m // 2, radius), num.exp(data["log_delta"])


@instance_class
@dataclass(frozen=True)
class EventInstance:
    """The U-blocks of one paired initialisation: m/2 independent vectors."""

    U: Float[Array, "half d"]
    delta: Float[Array, ""]


def _draw_event(case: Mapping[str, Any], rng: np.random.Generator, count: int) -> EventInstance:
    U = rng.normal(size=(count, case["m"] // 2, case["d"]))
    return EventInstance(U, np.full(count, case["delta"]))


def _event_of_draw(i: EventInstance, variant: str) -> Sides:
    half, d = i.U.shape
    log_m = math.log(2 * half)
    argument = _log_argument(log_m, jnp.log(i.delta), math.log(2), variant)
    radius = math.sqrt(d) + jnp.sqrt(2 * jnp.maximum(argument, 0.0))
    return Sides(jnp.max(jnp.linalg.norm(i.U, axis=-1)), radius)


def _count_events(case: Mapping[str, Any], variant: str, seed: int, repetitions: int) -> int:
    rng = np.random.default_rng(seed)
    d, m = int(case["d"]), int(case["m"])
    inside = m * case["delta"] / 2 if variant == "misread" else m / (2 * case["delta"])
    radius = math.sqrt(d) + math.sqrt(2 * max(math.log(inside), 0.0))
    exceeded = 0
    for _ in range(repetitions):
        norms = [math.sqrt(sum(x * x for x in row)) for row in rng.normal(size=(m // 2, d))]
        exceeded += max(norms) > radius
    return exceeded


def _event_bound(setting: Setting, variant: str) -> Bound:
    radius = event_radius(setting.d, setting.m, setting.delta_prime)
    return Bound(radius, {"radius": radius})


definition_1 = claims.add(
    Claim(
        id="arda2026/definition-1",
        title="The event E_U",
        kind=Kind.HIGH_PROBABILITY,
        equations="Definition 1",
        statement="With probability at least 1 - delta' over the paired initialisation, every "
        "|U_i| is at most sqrt(d) + sqrt(2 ln(m / (2 delta'))).",
        latex=r"\mathbb{P}(\max_i\|U_i^{(0)}\|_2\le\sqrt d+\sqrt{2\log(m/(2\delta'))})\ge1-\delta'",
        sides=_event,
        naive=_event_naive,
        families=FAMILY,
        targets=lambda: (
            GaussianInstance(*(np.array(v) for v in (1.0, 1000.0, 1.0, math.log(0.002)))),
        ),
        variants={
            "printed": Variant("log(m/2 delta') read as ln(m / (2 delta'))", "E2"),
            "misread": Variant(
                "log(m/2 delta') read from left to right as ln((m/2) delta')", "E2", fails=True
            ),
        },
        default="printed",
        hypotheses=(WHOLE, FRACTION),
        bound=_event_bound,
        measured=lambda subject: np.max(np.linalg.norm(subject.event.U, axis=-1)),
        experiment=Experiment(
            cases=({"d": 1, "m": 2, "delta": 0.5}, {"d": 2, "m": 64, "delta": 0.1}),
            draw=_draw_event,
            sides=_event_of_draw,
            delta=lambda case: float(case["delta"]),
            exceeds_naively=_count_events,
        ),
        errata=("E2",),
        references=("arda2026, Sec. 5.2",),
    )
)
