"""The norm of a softmax is at most 1; the printed 0.9 is false."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Float

from headcount.core import Array
from headcount.theory import Bound, Claim, Family, Kind, Sides, Variant, claims, instance_class
from headcount.theory.domain import Domain
from headcount.theory.slow import norm, softmax


@instance_class
@dataclass(frozen=True)
class Logits(Domain):
    """Logits of one softmax."""

    z: Float[Array, "T"]


def _sides(i: Logits, variant: str) -> Sides:
    weights = jax.nn.softmax(i.z)
    return Sides(jnp.sqrt(jnp.sum(weights**2)), 0.9 if variant == "printed" else 1.0)


def _naive(num: Any, data: Any, variant: str) -> tuple[Any, Any]:
    limit = num.number(9) / 10 if variant == "printed" else num.number(1)
    return norm(num, softmax(num, data["z"])), limit


claims.add(
    Claim(
        id="smith2030/softmax-norm",
        title="Norm of a softmax",
        kind=Kind.DETERMINISTIC,
        equations="Lemma 1",
        statement="The norm of a softmax is at most 1.",
        latex=r"\|{\rm softmax}(z)\|\le1",
        sides=_sides,
        naive=_naive,
        families=(Family("T=3", lambda rng, n: Logits(rng.normal(size=(n, 3))), lambda i: i),),
        variants={
            "printed": Variant("0.9", fails=True),
            "corrected": Variant("1, approached by one dominant logit"),
        },
        default="corrected",
    )
)


def _bound(setting: Any, variant: str) -> Bound:
    return Bound(setting.steps**-0.5 + 1 / setting.width)


claims.add(
    Claim(
        id="smith2030/loss",
        title="Loss of the averager",
        kind=Kind.DETERMINISTIC,
        equations="Theorem 1",
        statement="The smallest loss of a run is at most 1/sqrt(steps) + 1/width.",
        latex=r"\min_s L_s\le K^{-1/2}+m^{-1}",
        sides=lambda run, variant: Sides(run.loss, _bound(run.setting, variant).rhs),
        naive=lambda num, data, variant: (data["loss"], data["bound"]),
        families=(),
        variants={"printed": Variant("as printed")},
        default="printed",
        bound=_bound,
        measured=lambda run: run.loss,
        quantity="loss",
    )
)
