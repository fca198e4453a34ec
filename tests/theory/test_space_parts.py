"""Spaces part by part: where draws lie, what projections keep, what is printed at a boundary."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from headcount.core import BadArgument
from headcount.theory import (
    Ball,
    Box,
    Constants,
    Integers,
    Orthogonal,
    Parameters,
    PositiveSemidefinite,
    Product,
    Reals,
    Signs,
    Simplex,
    Size,
    Sphere,
    Tokens,
)
from headcount.theory import _spaces as spaces
from headcount.theory._spaces_joint import below
from headcount.theory._spaces_text import latex_array, latex_name, latex_number

RNG = np.random.default_rng


def drawn(space: Any, count: int, **sizes: int) -> Any:
    (found,) = space.draw(RNG(0), count, sizes).values()
    assert found.dtype == np.float64
    return found


def rms(x: Any) -> Any:
    return np.sqrt(np.mean(np.asarray(x) ** 2))


def test_sizes_and_axes() -> None:
    T = Size("T", 3, 3)
    assert spaces.length(T, {"T": 3}) == 3
    assert spaces.length(7, {}) == 7
    assert Reals(T, 2).sizes == {"T": T}
    assert Reals(T, 2).blocks == {"": (T, 2)}
    assert drawn(Reals(T, 2), 5, T=3).shape == (5, 3, 2)
    for bad in (("T", 0, 3), ("T", 3, 2), ("1T", 1, 2)):
        with pytest.raises(BadArgument):
            Size(*bad)
    with pytest.raises(BadArgument, match="shape"):
        Reals(0)


def test_a_quarter_of_the_matrices_has_rank_one() -> None:
    matrices = spaces.normal_entries(RNG(0), 40, (3, 4))
    assert sum(np.linalg.matrix_rank(matrix) == 1 for matrix in matrices) == 10
    assert sum(np.linalg.matrix_rank(matrix) == 3 for matrix in matrices) == 30
    assert {np.linalg.matrix_rank(m) for m in matrices[:10]} == {1, 3}  # in no order
    np.testing.assert_array_equal(
        spaces.normal_entries(RNG(1), 8, (5,)), RNG(1).normal(size=(8, 5))
    )
    assert spaces.normal_entries(RNG(0), 8, (2, 2, 3)).shape == (8, 2, 2, 3)


def test_reals_of_many_sizes_are_drawn_and_kept_in_a_range() -> None:
    sizes = np.array([rms(x) for x in drawn(Reals(200), 300)])
    assert 0.9e-2 < sizes.min() < 0.02 < 50 < sizes.max() < 110
    assert np.mean(np.log(sizes)) == pytest.approx(0, abs=0.5)
    space = Reals(4, smallest=1e-2, largest=1e3)
    x = jnp.array([3.0, -4.0, 0.0, 0.0])  # of root mean square 2.5
    np.testing.assert_array_equal(space.kept(x), x)
    np.testing.assert_array_equal(space.kept(0 * x), 0 * x)
    np.testing.assert_allclose(space.kept(1e-6 * x), x * (1e-2 / 2.5), rtol=1e-12)
    np.testing.assert_allclose(space.kept(1e6 * x), x * (1e3 / 2.5), rtol=1e-12)
    np.testing.assert_allclose(rms(Reals(4).kept(1e-9 * x)), 1e-4, rtol=1e-12)
    np.testing.assert_allclose(rms(Reals(4).kept(1e9 * x)), 1e6, rtol=1e-12)
    np.testing.assert_array_equal(space.value(x), x)
    for bad in ({"smallest": 0.0}, {"largest": -1.0}):
        with pytest.raises(BadArgument):
            Reals(2, **bad)


def test_balls() -> None:
    space = Ball(3, 2, radius=2.5)
    norms = np.linalg.norm(drawn(space, 400).reshape(400, -1), axis=1)
    on_the_sphere = np.isclose(norms, 2.5)
    assert 0.4 < on_the_sphere.mean() < 0.6
    inner = norms[~on_the_sphere]
    assert inner.max() < 2.5
    assert 0.4 < np.mean(inner < 1.25) < 0.6
    x = jnp.array([[3.0, 0.0], [0.0, 4.0], [0.0, 0.0]])
    np.testing.assert_allclose(space.value(x), x / 2, rtol=1e-12)
    np.testing.assert_array_equal(space.value(x / 4), x / 4)
    number = Ball(radius=2.0)
    assert [float(number.value(jnp.asarray(v))) for v in (-5.0, 0.5, 5.0)] == [-2, 0.5, 2]
    assert set(np.abs(drawn(number, 50)) <= 2) == {True}
    assert np.any(drawn(number, 50) < 0)
    np.testing.assert_array_equal(spaces.into_ball_of(np.array([3.0, -4.0, 0.0]), 0), [1, -1, 0])
    with pytest.raises(BadArgument, match="radius"):
        Ball(2, radius=0.0)


def test_a_point_inside_a_ball_is_printed_as_it_is() -> None:
    space = Ball(2, radius=2.0)
    assert space.formula(np.array([1.0, 1.0])) is None
    formula = space.formula(np.array([2.0, 0.0]))
    assert formula == ("2 * {x} / np.linalg.norm({x})", r"2\,{x}/\|{x}\|")
    assert space.python("y", {"": np.array([1.0, 1.0])}) == ["y = np.array([1.0, 1.0])"]
    assert space.python("y", {"": np.array([3.0, 4.0])}) == [
        "y = np.array([3.0, 4.0])",
        "y = 2 * y / np.linalg.norm(y)",
    ]
    assert space.latex("y", {"": np.array([3.0, 4.0])}) == [r"y=2\,A/\|A\|,\ A=(3,4)^\top"]
    assert space.latex("y", {"": np.array([1.0, 1.0])}) == [r"y=(1,1)^\top"]


def test_spheres() -> None:
    space = Sphere(3, radius=2.0)
    np.testing.assert_allclose(np.linalg.norm(drawn(space, 20), axis=1), 2.0)
    np.testing.assert_allclose(space.value(jnp.array([3.0, 0.0, -4.0])), [1.2, 0, -1.6])
    np.testing.assert_array_equal(space.value(jnp.zeros(3)), [2.0, 0.0, 0.0])
    assert space.formula(np.zeros(3)) is None
    assert space.formula(np.ones(3)) is not None
    assert space.python("y", {"": np.zeros(3)}) == ["y = np.array([2.0, 0.0, 0.0])"]


def test_tokens() -> None:
    space = Tokens(40, 2, radius=3.0)
    norms = np.linalg.norm(drawn(space, 20), axis=-1).ravel()
    longest = np.isclose(norms, 3.0)
    assert 0.5 < longest.mean() < 0.7
    assert norms[~longest].max() < 3
    assert 0.4 < np.mean(norms[~longest] < 1.5) < 0.6
    x = jnp.array([[6.0, 0.0], [0.0, 1.0]])
    np.testing.assert_allclose(space.value(x), [[3, 0], [0, 1]], rtol=1e-12)
    assert space.formula(np.array([[1.0, 1.0], [0.0, 2.0]])) is None
    for outside in (np.array([[1.0, 1.0], [0.0, 3.0]]), np.asarray(x)):
        python, latex = space.formula(outside)  # type: ignore[misc]
        point = eval(python.replace("{x}", "v"), {"np": np, "v": outside})
        np.testing.assert_allclose(point, space.value(jnp.asarray(outside)), rtol=1e-12)
        assert "longer than 3" in latex


def test_simplices() -> None:
    space = Simplex(4)
    sizes = drawn(space, 600)
    assert (sizes > 0).all()
    spread = np.std(np.log(sizes), axis=1)
    assert spread.min() < 0.3 < 3 < spread.max()  # entries to the powers 0.3, 1 and 4
    np.testing.assert_allclose(
        space.value(jnp.array([1.0, -3.0, 0.0, 4.0])), [1 / 8, 3 / 8, 0, 0.5]
    )
    np.testing.assert_array_equal(space.value(jnp.zeros(4)), [0.25] * 4)
    rows = Simplex(2, 3).value(jnp.array([[1.0, 1.0, 2.0], [0.0, 0.0, 0.0]]))
    np.testing.assert_allclose(rows, [[0.25, 0.25, 0.5], [1 / 3] * 3])
    assert space.formula(np.zeros(4)) is None
    assert space.formula(np.array([0.0, 1.0, 0.0, 0.0])) is not None
    assert space.formula(np.array([[0.0, 1.0], [0.0, 0.0]])) is None


def test_boxes() -> None:
    x = drawn(Box(100, low=-2, high=5), 40)
    assert np.mean(x == 5) == pytest.approx(0.15, abs=0.03)
    assert np.mean(x == -2) == pytest.approx(0.15 * 0.85, abs=0.03)
    between = x[(x > -2) & (x < 5)]
    assert np.mean(between) == pytest.approx(1.5, abs=0.2)
    np.testing.assert_array_equal(Box(3).value(jnp.array([-3.0, 0.5, 3.0])), [-1, 0.5, 1])
    for bad in ((1, 1), (2, 1), (-math.inf, 1), (0, math.nan), (math.nan, 1)):
        with pytest.raises(BadArgument, match="low < high"):
            Box(2, low=bad[0], high=bad[1])


def test_orthogonal_matrices() -> None:
    rows = drawn(Orthogonal(4), 200)
    zero = ~np.any(rows, axis=2)
    assert zero.mean() == pytest.approx(0.25, abs=0.05)
    space = Orthogonal(2)
    x = jnp.array([[3.0, 4.0], [0.0, 0.0]])
    np.testing.assert_allclose(space.kept(x), [[0.6, 0.8], [0, 0]], rtol=1e-12)
    expected = np.eye(2) - 2 * np.outer([0.6, 0.8], [0.6, 0.8])
    np.testing.assert_allclose(space.value(x), expected, rtol=1e-12)
    two = np.array([[1.0, 2.0], [-3.0, 1.0]])
    mirrors = [np.eye(2) - 2 * np.outer(v, v) / (v @ v) for v in two]
    np.testing.assert_allclose(space.value(jnp.asarray(two)), mirrors[0] @ mirrors[1], rtol=1e-12)


def test_semidefinite_matrices() -> None:
    space = PositiveSemidefinite(6)
    x = drawn(space, 200)
    zero = ~np.any(x, axis=1)
    assert zero.mean() == pytest.approx(0.25, abs=0.06)
    sizes = np.array([rms(m[:, np.any(m, axis=0)]) for m in x if m.any()])
    assert 0.06 < sizes.min() < 0.2 < 5 < sizes.max() < 16
    B = jnp.array([[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_array_equal(PositiveSemidefinite(2).value(B), [[5, 11], [11, 25]])
    for factor, least in ((1e-9, 1e-3), (1e9, 1e3)):
        assert rms(PositiveSemidefinite(2).kept(factor * B)) == pytest.approx(least)


def test_signs_and_integers() -> None:
    signs = Signs(4)
    x = jnp.array([-0.5, 0.0, 0.5, 3.0])
    np.testing.assert_array_equal(signs.value(x), [-1, 1, 1, 1])
    np.testing.assert_array_equal(signs.kept(-x), [0.5, 0, -0.5, -1])
    assert signs.discrete
    assert not Reals(2).discrete
    space = Integers(200, low=-1, high=2)
    assert set(drawn(space, 3).ravel()) == {-1, 0, 1, 2}
    np.testing.assert_array_equal(space.value(jnp.array([-9.0, -0.6, 1.4, 9.0])), [-1, -1, 1, 2])
    assert set(drawn(Integers(400), 2).ravel()) == set(range(11))
    for bad in ((1, 1), (2, 1), (0.0, 3), (0, 3.0)):
        with pytest.raises(BadArgument, match="whole low < high"):
            Integers(2, low=bad[0], high=bad[1])  # type: ignore[arg-type]


def test_products_of_spaces() -> None:
    T = Size("T", 2, 4)
    space = Product(Ball(T), Signs(), Product(Box(2)))
    assert space.blocks == {"0": (T,), "1": (), "2_0": (2,)}
    assert space.sizes == {"T": T}
    assert not space.discrete
    assert Product(Signs(), Integers()).discrete
    raw = space.draw(RNG(0), 3, {"T": 2})
    assert {name: x.shape for name, x in raw.items()} == {"0": (3, 2), "1": (3,), "2_0": (3, 2)}
    one = {"0": jnp.array([3.0, 4.0]), "1": jnp.asarray(-0.2), "2_0": jnp.array([5.0, 0.0])}
    ball, sign, (box,) = space.point(one, {"T": 2})
    np.testing.assert_allclose(ball, [0.6, 0.8])
    assert float(sign) == -1
    np.testing.assert_array_equal(box, [1, 0])
    kept = space.inside(one, {"T": 2})
    assert float(kept["1"]) == -0.2
    np.testing.assert_allclose(kept["0"], [0.6, 0.8])
    lines = space.python("v", {name: np.asarray(x) for name, x in one.items()})
    assert lines[-1] == "v = (v_0, v_1, v_2,)"
    assert len(space.latex("v", {name: np.asarray(x) for name, x in one.items()})) == 3
    assert (below("v", ""), below("v", "0")) == ("v", "v_0")
    with pytest.raises(BadArgument, match="is no space"):
        Product(Ball(2), 3)  # type: ignore[arg-type]


def test_parameters_lie_near_their_start() -> None:
    space = Parameters("arda2026", 2, 2, 4, radius=0.5)
    raw = space.draw(RNG(0), 200, {})
    for x in raw.values():
        norms = np.linalg.norm(x.reshape(200, -1), axis=1)
        on_the_sphere = np.isclose(norms, 0.5)
        assert 0.4 < on_the_sphere.mean() < 0.6
        assert norms[~on_the_sphere].max() < 0.5
    one = {name: jnp.asarray(10 * x[0]) for name, x in raw.items()}
    point = space.point(one, {})
    for name, start in point.initial._asdict().items():
        moved = np.asarray(getattr(point.params, name)) - start
        assert np.linalg.norm(moved) == pytest.approx(0.5)
        assert np.sum(moved * np.asarray(one[name])) > 0
    assert space.blocks == {name: (0,) * (x.ndim - 1) for name, x in raw.items()}
    wrong = {**one, "c": jnp.zeros(5)}
    with pytest.raises(ValueError, match="block c has shape"):
        space.point(wrong, {})
    sized = Parameters("arda2026", 2, 2, Size("m", 2, 6))
    assert sized.sizes == {"m": Size("m", 2, 6)}
    assert sized.draw(RNG(0), 1, {"m": 6})["c"].shape == (1, 6)
    with pytest.raises(BadArgument, match="radius"):
        Parameters("arda2026", 2, 2, 2, radius=-1.0)


def test_constants_by_name() -> None:
    assert Constants(a=1.0, b=2.0) == {"a": 1.0, "b": 2.0}
    with pytest.raises(BadArgument, match="are none"):
        Constants()


def test_names_and_arrays_in_latex() -> None:
    assert latex_name("z") == "z"
    assert latex_name("long_0") == r"\mathrm{long}_{0}"
    assert latex_name("x_a_b") == r"x_{a\_b}"
    assert latex_array(np.array([2.0])) == latex_array(np.array(2.0)) == "2"
    assert latex_array(np.array([2.0, 1e-9])) == r"(2,10^{-9})^\top"
    assert latex_number("-1.5e+20") == r"-1.5\cdot 10^{20}"
    assert latex_number("inf") == r"\infty"
    assert latex_array(np.array([1.0, -0.5])) == r"(1,-0.5)^\top"
    assert latex_array(np.ones((2, 1, 1))).startswith(r"\left(")
    assert latex_array(np.ones((2, 2))).count("&") == 2
