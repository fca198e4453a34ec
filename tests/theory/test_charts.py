"""Charts of spaces, and verification in more variables."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from headcount.core import BadArgument, float64
from headcount.theory import Ball, Box, Orthogonal, Reals, Simplex, Sphere, Tokens, lemma, verify
from headcount.theory._charts import chart

WITHIN = {
    "ball": (Ball(3, radius=0.5), (3,), lambda x: max(np.linalg.norm(x) - 0.5, 0)),
    "tokens": (Tokens(2, 1), (2, 1), lambda x: max(np.max(np.abs(x)) - 1, 0)),
    "sphere": (Sphere(4, radius=2.0), (4,), lambda x: np.linalg.norm(x) - 2),
    "simplex": (Simplex(4), (4,), lambda x: abs(np.sum(x) - 1) + max(-np.min(x), 0)),
    "orthogonal": (Orthogonal(2), (2, 2), lambda x: np.abs(x @ x.T - np.eye(2)).max()),
}


@pytest.mark.parametrize("name", WITHIN)
def test_a_chart_gives_points_of_its_space_and_comes_near_all(name: str) -> None:
    space, shape, off = WITHIN[name]
    own, rng = chart(space, shape), np.random.default_rng(0)
    assert own is not None
    with float64():
        seen = []
        for _ in range(600):
            flat = [
                rng.uniform(*interval) if interval is not None else rng.choice(values)
                for interval, values in own.entries
            ]
            seen.append(np.asarray(own.point(jnp.asarray(flat))))
            assert abs(off(seen[-1])) < 1e-12
        wanted = np.asarray(space.value(jnp.asarray(space.draw(rng, 1, {})[""][0])))
    near = min(np.linalg.norm(point - wanted) for point in seen)
    assert near < 0.6 * max(np.linalg.norm(wanted), 0.5)


def test_no_chart_of_what_is_not_bounded() -> None:
    assert chart(Reals(2), (2,)) is None


@pytest.mark.parametrize(
    "own", [Ball(1), Box(1), Orthogonal(2), Simplex(2), Sphere(2), Tokens(2, 1)]
)
def test_a_space_of_somebodys_own_has_no_chart_of_ours(own: Any) -> None:
    """Three times the box is not charted as the box: "x <= 1.5" was proved there."""
    kind = type(own)
    thrice = type("Thrice", (kind,), {"value": lambda self, x: 3 * kind.value(self, x)})
    alike = type("Alike", (kind,), {"says": "the same points"})
    shape = own.draw(np.random.default_rng(0), 1, {})[""][0].shape
    for changed, has_one in ((thrice, False), (alike, True)):
        own.__class__ = changed
        assert (chart(own, shape) is not None) is has_one
        own.__class__ = kind


def test_nothing_is_proved_over_a_space_of_somebodys_own() -> None:
    class Thrice(Box):
        def value(self, x: Any) -> Any:
            return 3 * super().value(x)

    with pytest.raises(BadArgument, match="x in Thrice, which verify cannot cover"):
        verify(lemma(x=Thrice(low=0, high=1))(lambda x: (x, 1.5)))


@lemma(a=Box(3, low=0.2, high=1), b=Box(2))
def five_variables(a: Any, b: Any) -> Any:
    """A geometric mean times a tanh beside a sum."""
    return jnp.prod(a) ** 2 * jnp.tanh(b[0] * b[1]) ** 2, 0.1 + jnp.sum(a) / 3


@lemma(a=Box(6))
def six_variables(a: Any) -> Any:
    """False in a corner alone."""
    return jnp.sum(a**3), 5.9


def test_five_variables_are_proved_and_six_refuted() -> None:
    proved = verify(five_variables)
    assert (proved.answer, proved.touching) == ("proved", False)
    false = verify(six_variables)
    assert false.answer == "false"
    assert np.sum(np.array(false.instance["a"]) ** 3) > 5.9


def test_the_same_lemma_a_little_stronger_is_not_proved() -> None:
    """A bound that is missed by one part in a hundred, at one point of five dimensions."""
    top = 1.0 * math.tanh(1) ** 2
    own = lemma(a=Box(3, low=0.2, high=1), b=Box(2))(
        lambda a, b: (jnp.prod(a) ** 2 * jnp.tanh(b[0] * b[1]) ** 2, 0.99 * top)
    )
    assert verify(own).answer == "false"
