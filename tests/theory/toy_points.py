"""A toy claim about points, u_0 <= u_1 where u_2 <= 1, that the tests of the search share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from headcount.core import Array
from headcount.theory import Claim, Family, Form, Hypothesis, Kind, Sides, instance_class
from headcount.theory.domain import Domain


@instance_class
@dataclass(frozen=True)
class Point(Domain):
    """A vector and a table over it."""

    u: Float[Array, "k"]
    A: Float[Array, "k T"]


def draw(rng: np.random.Generator, count: int) -> Point:
    return Point(rng.normal(size=(count, 4)), rng.normal(size=(count, 4, 2)))


def point(*u: float) -> Point:
    return Point(np.array(u, dtype=np.float64), np.zeros((len(u), 2)))


def _sides(p: Point, variant: str) -> Sides:
    return Sides(p.u[0], p.u[1] * (2.0 if variant == "wide" else 1.0))


def _naive(num: Any, data: Any, variant: str) -> tuple[Any, Any]:
    return data["u"][0], data["u"][1] * (2 if variant == "wide" else 1)


PLAIN = Family("points", draw, lambda p: p, plain=True)


def toy(**changes: Any) -> Claim:
    values: dict[str, Any] = {
        "id": "toy/order",
        "title": "An order",
        "kind": Kind.DETERMINISTIC,
        "equations": "none",
        "statement": "u_0 <= u_1",
        "latex": "u_0\\le u_1",
        "sides": _sides,
        "naive": _naive,
        "families": (PLAIN,),
        "variants": {"printed": Form("as printed"), "wide": Form("doubled")},
        "default": "printed",
        "hypotheses": (Hypothesis("third", lambda p: p.u[2], lambda num, data: data["u"][2]),),
    }
    return Claim(**{**values, **changes})
