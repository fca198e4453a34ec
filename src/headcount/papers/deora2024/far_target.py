"""Sec. 5.3 of deora2024: targets with the margin of Proposition 3 ask for more heads than they have.

From a zero start, the target has |W_h| = w/S^2 in every head, w >= 1, which saturating the softmax
takes, and |U~| = log(n)/S, which brings the loss down. With l = log n the two squares add up to
|theta~|^2 = (w^2 H + l^2 S^2)/S^4, and (1 + q)^3 >= (27/4) q gives S^5 |theta~|^3 >= (3 sqrt(3)/2) H l.
"""  # noqa: E501

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ...core import Array
from ...theory import Family, Hypothesis, Sides, instance_class
from ...theory.domain import Domain
from ...theory.families import log_uniform
from ...theory.slow import Arithmetic
from . import constants, naive_constants
from .declare import claim
from .naive import Data


@instance_class
@dataclass(frozen=True)
class FarTargetInstance(Domain):
    """Pattern norm S, heads H, samples n, |W_h| S^2 = w, and tokens T."""

    S: Float[Array, ""]
    H: Float[Array, ""]
    n: Float[Array, ""]
    w: Float[Array, ""]
    T: Float[Array, ""]

    positive = ("S", "H", "n", "w", "T")

    def outside(self) -> str | None:
        """H, n and T count something."""
        whole = all(value % 1 == 0 for value in (self.H, self.n, self.T))
        return None if whole else "H, n and T must be whole numbers"


def _length(i: FarTargetInstance, readout: Any) -> Any:
    """|theta~|: H heads with |W_h| = w/S^2, and |U~| = log(n)/`readout`."""
    return jnp.sqrt(i.H * (i.w / i.S**2) ** 2 + (jnp.log(i.n) / readout) ** 2)


def _demand(i: FarTargetInstance, variant: str) -> Sides:
    if variant == "corrected":
        D, R = _length(i, i.S * jnp.sqrt(i.T / 2)), jnp.maximum(i.S, 1.0)
        # All heads are equal, so that one of them has length D/sqrt(H).
        wanted = constants.required_root(D, D / jnp.sqrt(i.H), R, i.T, 1, "sharp")
        return Sides(jnp.sqrt(i.H), wanted, {"D": D})
    D = _length(i, i.S)
    least = 1.5 * 3**0.5 * i.H * jnp.log(i.n) if variant == "sharp" else jnp.sqrt(i.H)
    return Sides(least, i.S**5 * D**3, {"|theta|": D})


def _demand_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    S, H, w, T = (data[name] for name in ("S", "H", "w", "T"))
    ell, root_H = num.log(data["n"]), num.sqrt(H)
    heads = H * w * w
    if variant == "corrected":
        D = num.sqrt(heads + 2 * ell * ell * S * S / T) / (S * S)
        R = num.largest([num.number(1), S])
        beta = naive_constants.beta_3(num, 3 * D + D / root_H, R, T, 1, "sharp")
        return root_H, 18 * beta * D * D
    cube = heads + ell * ell * S * S
    demanded = cube * num.sqrt(cube) / S
    if variant == "sharp":
        return 3 * num.sqrt(num.number(3)) / 2 * H * ell, demanded
    return root_H, demanded


def _draw(rng: np.random.Generator, count: int) -> FarTargetInstance:
    return FarTargetInstance(
        S=log_uniform(rng, 0.1, 1e3, count),
        H=np.round(log_uniform(rng, 1.0, 1e6, count)),
        n=np.round(log_uniform(rng, 2.0, 1e6, count)),
        w=log_uniform(rng, 1.0, 10.0, count),
        T=np.round(log_uniform(rng, 1.0, 1e3, count)),
    )


def _project(i: FarTargetInstance) -> FarTargetInstance:
    return replace(
        i,
        S=jnp.clip(i.S, 1e-2, 1e6),
        H=jnp.clip(jnp.round(i.H), 1.0, 1e12),
        n=jnp.clip(jnp.round(i.n), 2.0, 1e12),
        w=jnp.clip(i.w, 1.0, 1e3),
        T=jnp.clip(jnp.round(i.T), 1.0, 1e6),
    )


def _lowest() -> tuple[FarTargetInstance, ...]:
    """One head and two samples; S near sqrt(H/2)/log n, where the demand is lowest."""
    one = np.asarray(1.0)
    return (FarTargetInstance(np.asarray(1.0201), one, np.asarray(2.0), one, one),)


claim(
    "eq-12",
    "Targets that saturate are out of reach",
    "Eq. (12)",
    "From a zero start, the condition on the heads fails at every target of Proposition 3 with "
    "|W_h| >= 1/S^2 and |U~| = log(n)/S: S^5 |theta~|^3 exceeds sqrt(H), for all S, H and n >= 2. "
    "The text argues so by orders of magnitude.",
    r"\sqrt H<S^5\|\widetilde\theta\|^3",
    sides=_demand,
    naive=_demand_naive,
    families=(Family("targets", _draw, _project),),
    hypotheses=(
        Hypothesis("n >= 2, as 2/n", lambda i: 2 / i.n, lambda num, data: 2 / data["n"]),
        Hypothesis("|W_h| >= 1/S^2, as 1/w", lambda i: 1 / i.w, lambda num, data: 1 / data["w"]),
    ),
    targets=_lowest,
    forms={
        "printed": "every hidden constant taken to be one",
        "corrected": "(74) itself, with the smallest beta_3 known and gamma_attn = S sqrt(T/2)",
        "sharp": "(3 sqrt(3)/2) H log(n) for sqrt(H), the best possible",
    },
    where="Sec. 5.3",
)
