"""Spaces: every point is in its space, whatever the raw numbers; counterexamples can be pasted."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from headcount.core import BadArgument
from headcount.theory import (
    Ball,
    Box,
    Budget,
    Integers,
    Orthogonal,
    Parameters,
    PositiveSemidefinite,
    Product,
    Reals,
    Signs,
    Simplex,
    Size,
    Space,
    Sphere,
    Tokens,
    falsify,
    lemma,
)

T, d = Size("T", 1, 4), Size("d", 2, 3)
SIZES = {"T": 4, "d": 3}

INSIDE: dict[str, tuple[Space, Any]] = {
    "reals": (Reals(T, d), lambda x: np.isfinite(x).all()),
    "ball": (Ball(T, d, radius=0.5), lambda x: np.linalg.norm(x) <= 0.5 + 1e-12),
    "number": (Ball(radius=2.0), lambda x: abs(x) <= 2),
    "sphere": (Sphere(T, radius=3.0), lambda x: abs(np.linalg.norm(x) - 3) < 1e-12),
    "tokens": (Tokens(T, d), lambda x: (np.linalg.norm(x, axis=1) <= 1 + 1e-12).all()),
    "simplex": (Simplex(T), lambda x: (x >= 0).all() and abs(x.sum() - 1) < 1e-12),
    "box": (Box(T, low=1, high=2), lambda x: ((x >= 1) & (x <= 2)).all()),
    "orthogonal": (Orthogonal(d), lambda x: np.abs(x @ x.T - np.eye(3)).max() < 1e-12),
    "psd": (
        PositiveSemidefinite(d),
        lambda x: np.linalg.eigvalsh(x).min() >= -1e-12 * np.abs(x).max(),
    ),
    "signs": (Signs(T), lambda x: (np.abs(x) == 1).all()),
    "integers": (Integers(T, low=-1, high=3), lambda x: np.isin(x, [-1, 0, 1, 2, 3]).all()),
}


@pytest.mark.parametrize("name", INSIDE)
@pytest.mark.parametrize("size", [0.0, 1e-3, 1.0, 1e3])
def test_points_lie_in_their_space_and_stay_the_same_from_inside(name, size):
    space, holds = INSIDE[name]
    rng = np.random.default_rng(0)
    (drawn,) = space.draw(rng, 5, SIZES).values()
    raw = {"": jnp.asarray(size * drawn[0])}
    point = space.point(raw, SIZES)
    assert holds(np.asarray(point))
    kept = space.inside(raw, SIZES)
    again = np.asarray(space.point(kept, SIZES))
    if name != "reals" and name != "psd":  # those keep the search at sizes that show no rounding
        np.testing.assert_allclose(again, point, atol=1e-12)


@pytest.mark.parametrize("name", INSIDE)
def test_the_python_of_a_point_gives_the_point(name):
    space, _ = INSIDE[name]
    (drawn,) = space.draw(np.random.default_rng(1), 3, SIZES).values()
    names: dict[str, Any] = {"np": np, "functools": functools}
    exec("\n".join(space.python("x", {"": 3 * drawn[0]})), names)
    point = np.asarray(space.point({"": jnp.asarray(3 * drawn[0])}, SIZES))
    np.testing.assert_allclose(names["x"], point, rtol=1e-12, atol=1e-12)
    assert space.latex("x", {"": drawn[0]})[0].startswith("x=")


def test_reflections_reach_both_parts_of_the_orthogonal_group():
    space = Orthogonal(d)
    (drawn,) = space.draw(np.random.default_rng(0), 40, SIZES).values()
    found = {round(float(np.linalg.det(space.value(jnp.asarray(x))))) for x in drawn}
    assert found == {-1, 1}


@lemma(pair=Product(Simplex(2), Signs(2)), r=Box(low=0, high=1))
def mean_of_signs(pair, r):
    """r |p.s| <= 0.9: false at equal signs."""
    p, s = pair
    return r * jnp.abs(p @ s), 0.9


def test_products_are_one_variable():
    found = falsify(mean_of_signs, budget=Budget(random=96, restarts=4, steps=20))
    assert found.proved
    p, s = found.points["pair"]
    assert abs(np.dot(p, s)) > 0.9
    names: dict[str, Any] = {"mean_of_signs": mean_of_signs}
    with jax.enable_x64(True):
        source = found.shown.python.replace('jax.config.update("jax_enable_x64", True)', "")
        lines = [line for line in source.splitlines() if not line.startswith("from test_")]
        exec("\n".join(lines), names)
    assert names["lhs"] > names["rhs"]


m = Size("m", 2, 2)


@lemma(start=Parameters("arda2026", 2, 2, m, radius=0.5), X=Tokens(2, 2))
def output_near_the_start(start, X):
    """|f(X)| <= 0.1 within 1/2 of the paired start: false, since f = 0 only at the start."""
    return jnp.abs(start.model(start.params, X)), 0.1


def test_parameters_of_a_registered_model():
    found = falsify(output_near_the_start, budget=Budget(random=64, restarts=4, steps=30))
    assert found.proved
    assert found.sizes == {"m": 2}
    space = output_near_the_start.variables["start"]
    _, initial = space.start({"m": 2})
    for name, leaf in found.points["start"].items():
        moved = np.asarray(leaf) - getattr(initial, name)
        assert np.linalg.norm(moved) <= 0.5 + 1e-12
    assert set(found.points["start"]) == set(initial._fields)
    with pytest.raises(BadArgument, match="arda2026"):
        Parameters("arda2062", 2, 2, 2)


def test_bad_declarations_are_told():
    for make in (
        lambda: Size("2", 1, 3),
        lambda: Size("T", 3, 1),
        lambda: Reals(0),
        lambda: Ball(2, radius=-1.0),
        lambda: Box(low=1, high=1),
        lambda: Integers(low=2, high=1),
        lambda: Product(3),
        lambda: lemma()(lambda: (0, 0)),
        lambda: lemma(x=3)(lambda x: (0, 0)),
    ):
        with pytest.raises(BadArgument):
            make()
