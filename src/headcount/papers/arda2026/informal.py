"""The informal theorem of arda2026, Sec. 4: do its rates follow from Theorem 1?

A rate hides a constant. Here radii and activation are those of Sec. 6, and the constant is twenty
times what the paper's own setting (d = 8, m = 256, n = 5000, tau = 4000) needs: any true rate
survives that for all sizes, a wrong exponent does not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ...core import Array
from ...theory import Claim, Family, Hypothesis, Kind, Sides, Variant, claims, instance_class
from ...theory.slow import FLOATS, Arithmetic
from .naive import Data, Number, smoothness_constants

RADIUS, DELTA, SLACK = 3.0, 0.05, 20.0
PAPER = {"d": 8.0, "m": 256.0, "n": 5000.0, "tau": 4000.0}
SIGMA2 = 4 / (3 * 3**0.5)
"""sigma2 of tanh; sigma0 = sigma1 = 1."""


@instance_class
@dataclass(frozen=True)
class RateInstance:
    """Sizes d, m, n, tau as real numbers."""

    d: Float[Array, ""]
    m: Float[Array, ""]
    n: Float[Array, ""]
    tau: Float[Array, ""]


def formal(d: Any, m: Any, n: Any, tau: Any) -> Any:
    """The right side for the average iterate [arda2026, (44) in (46)], tanh, radii 3."""
    r, log_n = jnp.sqrt(m), jnp.log(2 * n / DELTA)
    B_U = jnp.sqrt(d) + jnp.sqrt(2 * jnp.log(m / (2 * DELTA))) + RADIUS / r
    L1 = jnp.sqrt(1 + B_U**2)
    L2 = SIGMA2 * L1**2 + 8 * L1
    k, length = RADIUS * 2**0.5, RADIUS * 3**0.5
    B_app = 2 * 3 * RADIUS * jnp.sqrt(2 * log_n / m)
    B_lin = (L1 * RADIUS * k + L2 * k**2) / r
    B_CoF = ((L1 + L2) * k + RADIUS * L1) * 2 * length / r
    envelope = L1 * k + RADIUS + 2 * RADIUS + jnp.sqrt(d) * RADIUS
    B_grad = 4 * envelope**2 * (1 + (1 + RADIUS / r) * L1) ** 2
    errors = 4 * envelope * (B_app + B_lin + B_CoF) + 6 * B_lin**2
    return (length**2 + B_grad) / jnp.sqrt(tau) + errors


def rate(d: Any, m: Any, n: Any, tau: Any, variant: str) -> Any:
    """The rate without its constant, as printed in Sec. 4 or as Theorem 1 gives it."""
    D, log_n = d + jnp.log(m / DELTA), jnp.log(n / DELTA)
    optimisation = D**2 / jnp.sqrt(tau)
    if variant == "printed":
        return optimisation + jnp.sqrt(log_n / m) + D / jnp.sqrt(m)
    return optimisation + jnp.sqrt(D * log_n / m) + D**1.5 / jnp.sqrt(m) + D**2 / m


def _sides(i: RateInstance, variant: str) -> Sides:
    at_paper = formal(**PAPER) / rate(**PAPER, variant=variant)
    sizes = (i.d, i.m, i.n, i.tau)
    rhs = SLACK * at_paper * rate(*sizes, variant)
    return Sides(formal(*sizes), rhs, {"constant": SLACK * at_paper})


def _naive_formal(num: Arithmetic, sizes: list[Number]) -> Number:
    d, m, n, tau = sizes
    R, r = num.number(RADIUS), num.sqrt(m)
    delta = num.number("0.05")
    B_U = num.sqrt(d) + num.sqrt(2 * num.log(m / (2 * delta))) + R / r
    one = num.number(1)
    L1, L2 = smoothness_constants(num, one, 4 / (3 * num.sqrt(num.number(3))), B_U, "printed")
    k, length = R * num.sqrt(num.number(2)), R * num.sqrt(num.number(3))
    B_app = 6 * R * num.sqrt(2 * num.log(2 * n / delta) / m)
    B_lin = (L1 * R * k + L2 * k * k) / r
    B_CoF = ((L1 + L2) * k + R * L1) * (length + length) / r
    f_max, y_max = L1 * k + R, 2 * R + num.sqrt(d) * R
    A = one + (one + R / r) * L1
    mean = 4 * (f_max + y_max) * (B_app + B_lin + B_CoF)
    return (length**2 + 4 * (f_max + y_max) ** 2 * A**2) / num.sqrt(tau) + mean + 6 * B_lin**2


def _naive_rate(num: Arithmetic, sizes: list[Number], variant: str) -> Number:
    d, m, n, tau = sizes
    delta = num.number("0.05")
    D, log_n = d + num.log(m / delta), num.log(n / delta)
    first = D * D / num.sqrt(tau)
    if variant == "printed":
        return first + num.sqrt(log_n / m) + D / num.sqrt(m)
    return first + num.sqrt(D * log_n / m) + D * num.sqrt(D) / num.sqrt(m) + D * D / m


def _naive_sides(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    paper = [num.number(value) for value in PAPER.values()]
    sizes = [data[name] for name in PAPER]
    constant = SLACK * _naive_formal(num, paper) / _naive_rate(num, paper, variant)
    return _naive_formal(num, sizes), constant * _naive_rate(num, sizes, variant)


def _draw(rng: np.random.Generator, count: int) -> RateInstance:
    logs = rng.uniform(0, [[18.0], [27.0], [20.0], [40.0]], (4, count))
    return RateInstance(*np.exp(logs))


def _project(i: RateInstance) -> RateInstance:
    return replace(
        i,
        d=jnp.clip(i.d, 1.0, 1e9),
        m=jnp.clip(i.m, 2.0, 1e15),
        n=jnp.clip(i.n, 1.0, 1e12),
        tau=jnp.clip(i.tau, 1.0, 1e30),
    )


SIZES = Hypothesis(
    "sizes of at least 1 (m of at least 2)",
    lambda i: jnp.max(jnp.stack([1 / i.d, 2 / i.m, 1 / i.n, 1 / i.tau])),
    lambda num, data: num.largest([1 / data["d"], 2 / data["m"], 1 / data["n"], 1 / data["tau"]]),
)


def _targets() -> tuple[RateInstance, ...]:
    """Many features, few heads, endlessly many steps: the linearisation terms alone."""
    sizes = (1e8, 100.0, 1000.0, 1e30)
    return (RateInstance(*(np.asarray(FLOATS.number(size)) for size in sizes)),)


informal_theorem = claims.add(
    Claim(
        id="arda2026/informal-theorem",
        title="The rates of the informal theorem",
        kind=Kind.RATE,
        equations="(Informal) Theorem 1, Sec. 4",
        statement=(
            "L(average iterate) is of order (d + ln(m/delta'))^2/sqrt tau + sqrt(ln(n/delta)/m) "
            "+ (d + ln(m/delta'))/sqrt m. Tested: whether Theorem 1's right side stays below a "
            "fixed multiple of the rate for all sizes."
        ),
        latex=(
            r"\widehat{\mathcal L}_n(\bar\varphi^{(\tau)})\lesssim\frac{(d+\log(m/\delta'))^2}"
            r"{\sqrt\tau}+\sqrt{\frac{\log(n/\delta)}m}+\frac{d+\log(m/\delta')}{\sqrt m}"
        ),
        sides=_sides,
        naive=_naive_sides,
        families=(Family("sizes", _draw, _project, differentiable=False),),
        targets=_targets,
        variants={
            "printed": Variant("exponents 2, 0 and 1 of d + ln(m/delta')", "E7", fails=True),
            "corrected": Variant(
                "what Theorem 1 gives: sqrt(D ln(n/delta)/m) + D^{3/2}/sqrt m + D^2/m with "
                "D = d + ln(m/delta')",
                "E7",
            ),
        },
        default="corrected",
        hypotheses=(SIZES,),
        errata=("E7",),
        references=("arda2026, Sec. 4",),
    )
)
