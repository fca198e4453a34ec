"""The search finds what is false: from a cold start, on claims and on landscapes with a trap."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Float

from headcount.core import Array
from headcount.theory import (
    Budget,
    Claim,
    Family,
    Form,
    Kind,
    Sides,
    claims,
    falsify,
    instance_class,
)
from headcount.theory.slow import Arithmetic, dot

TIGHTNESS = {"arda2026/fact-1": 0.5, "arda2026/fact-2": 1.0, "arda2026/psi-2": 1.0}
"""Claims whose best constant is known on paper: the supremum of left/right."""


@pytest.mark.parametrize("name", TIGHTNESS)
def test_a_cold_search_finds_a_bound_ten_percent_too_small(name: str) -> None:
    tightness = TIGHTNESS[name]
    broken = claims[name].with_bound_scaled(0.9 * tightness)
    found = falsify(broken, budget="small", cold=True)
    assert found.violated, found.message
    assert found.proof is not None
    assert found.proof.proved
    assert found.worst_ratio <= (1 + 1e-9) / 0.9


@pytest.mark.parametrize("name", TIGHTNESS)
def test_a_cold_search_does_not_refute_the_best_constant(name: str) -> None:
    exact = claims[name].with_bound_scaled(TIGHTNESS[name])
    found = falsify(exact, budget="small", cold=True)
    assert not found.violated, found.message
    assert 0.99 < found.worst_ratio <= 1 + 1e-9


@instance_class
@dataclass(frozen=True)
class Point:
    """A point of the cube [-1, 1]^3."""

    x: Float[Array, "3"]


PEAK = (0.61, -0.37, 0.53)
"""Where the landscape reaches 1: of no special shape, so that only climbing gets there."""
NARROW = 20.0


def _landscape(point: Point, variant: str) -> Sides:
    """A broad hill of height 1/2 at the origin and a narrow one of height 1 at PEAK."""
    away = point.x - jnp.asarray(PEAK)
    broad = 0.5 * jnp.exp(-jnp.sum(point.x**2))
    return Sides(jnp.maximum(broad, jnp.exp(-NARROW * jnp.sum(away**2))), 1.0)


def _landscape_naive(num: Arithmetic, data: Any, variant: str) -> tuple[Any, Any]:
    x = data["x"]
    away = [entry - num.number(peak) for entry, peak in zip(x, PEAK, strict=True)]
    narrow = num.exp(-num.number(NARROW) * dot(away, away))
    broad = num.exp(-dot(x, x)) / num.number(2)
    return num.largest([broad, narrow]), num.number(1)


def _draw(rng: np.random.Generator, count: int) -> Point:
    return Point(rng.uniform(-1, 1, (count, 3)))


def _project(point: Point) -> Point:
    return Point(jnp.clip(point.x, -1.0, 1.0))


@functools.cache
def trap(differentiable: bool) -> Claim:
    """The landscape is at most 1: true, and hard to see that it is tight."""
    return Claim(
        id=f"toy/trap-{differentiable}",
        title="A trap",
        kind=Kind.DETERMINISTIC,
        equations="none",
        statement="the landscape is at most 1",
        latex="f(x) \\le 1",
        sides=_landscape,
        naive=_landscape_naive,
        families=(Family("cube", _draw, _project, differentiable=differentiable, plain=True),),
        variants={"printed": Form("attained at PEAK alone")},
        default="printed",
    )


SHORT = {
    True: Budget(random=2000, restarts=4, steps=12),
    False: Budget(random=2000, restarts=4, steps=1500),
}
"""Drawing alone does not arrive, nor do ascents from any but the worst draws, nor a first ascent
without a second around its best; measured with each of these planted: at most 0.99."""


@pytest.mark.parametrize("differentiable", [True, False])
def test_the_search_goes_on_from_its_worst_instances(differentiable: bool) -> None:
    for seed in range(3):
        found = falsify(trap(differentiable), budget=SHORT[differentiable], seed=seed)
        assert 0.995 < found.worst_ratio <= 1, (seed, found.message)
        assert not found.violated


TOP = np.linspace(-0.9, 0.9, 8)
"""Where a hill in eight dimensions is highest: a few draws and their neighbours are not there."""


@instance_class
@dataclass(frozen=True)
class Place:
    """A point of the cube [-1, 1]^8."""

    x: Float[Array, "8"]


def test_the_ascent_ascends() -> None:
    """Planted: with the sign of the step reversed the search stops at 0.3."""
    hill = replace(
        trap(True),
        sides=lambda place, variant: Sides(jnp.exp(-jnp.sum((place.x - TOP) ** 2)), 1.0),
        families=(
            Family(
                "cube",
                lambda rng, count: Place(rng.uniform(-1, 1, (count, 8))),
                lambda place: Place(jnp.clip(place.x, -1.0, 1.0)),
            ),
        ),
    )
    for seed in range(3):
        found = falsify(hill, budget=Budget(random=8, restarts=4, steps=300), seed=seed)
        assert 0.999 < found.worst_ratio <= 1, (seed, found.message)


def test_what_is_found_on_a_landscape_is_proved() -> None:
    found = falsify(trap(True).with_bound_scaled(0.99), budget=SHORT[True])
    assert found.violated
    assert found.proof is not None
    assert found.proof.proved
