"""Arrays of balls, three-valued relations and linear algebra on balls, each part by itself."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import flint
import numpy as np
import pytest
from ball_rules import apply, balls, ends, interval
from flint import arb

from headcount.core import BadArgument
from headcount.theory import _ball_array as arrays
from headcount.theory import _ball_linalg as linalg
from headcount.theory import _balls
from headcount.theory.balls import (
    FALSE,
    TRUE,
    UNKNOWN,
    Ball,
    BallProgram,
    Undecided,
    Value,
    at_precision,
)
from headcount.theory.slow import balls as with_balls
from headcount.theory.slow_spectrum import (
    extreme_eigenvalues,
    gram,
    operator_norm,
    smallest_eigenvalue,
)


def test_constants_are_widened_by_units_in_their_last_place() -> None:
    half, tenth, endless = arrays.widened(np.array([0.5, 0.1, np.inf]), 3)
    assert half.is_exact()
    assert half == 0.5
    assert not endless.is_finite()
    assert float(tenth.mid()) == 0.1
    assert float(tenth.rad()) == pytest.approx(3 * math.ulp(0.1), rel=1e-6)
    for exact in (arrays.widened(0.1, 0), arrays.widened(np.array([0.25, 3.0]), 3)):
        assert all(ball.is_exact() for ball in exact.ravel())
    assert arrays.widened(np.array([0.5, np.inf]), 3)[0] == 0.5


def test_short_numbers() -> None:
    top = 2**20
    assert _balls.is_short(0.0)
    assert _balls.is_short(float(top - 1))
    assert _balls.is_short(float(top))
    assert not _balls.is_short(float(top + 1))
    assert _balls.is_short(-(top - 1) * 2.0**-40)
    assert not _balls.is_short(-(top + 1) * 2.0**-40)


def test_integers_and_truths_as_balls() -> None:
    known, open_entries = np.array([1, 2]), balls(1, (1, 2))
    assert arrays.is_certain(known)
    assert not arrays.is_certain(open_entries)
    assert arrays.settled(balls(1, 2), np.int64).dtype == np.int64
    assert arrays.settled(open_entries, np.int64) is open_entries
    assert arrays.settled(np.empty((0,), dtype=object), np.int32).dtype == np.int32
    assert [part.dtype for part in arrays.of_one_kind([known, known])] == [np.int64] * 2
    assert [part.dtype for part in arrays.of_one_kind([known, open_entries])] == [object] * 2
    assert arrays.integers(known, "x") is known
    with pytest.raises(Undecided, match="x: an index is not known"):
        arrays.integers(open_entries, "x")
    assert arrays.decided(np.array([TRUE, FALSE]), "x").tolist() == [True, False]
    with pytest.raises(Undecided, match="x: the condition is not known"):
        arrays.decided(np.array([TRUE, UNKNOWN]), "x")
    assert arrays.truth_of(np.array([True, False])).tolist() == [TRUE, FALSE]
    assert arrays.truth_of(np.array([True])).dtype == np.int8


def test_entries_are_selected_by_number() -> None:
    which = np.array([0, 1, 2, -1])
    cases = [balls(*(10 * k + np.arange(4.0))) for k in range(3)]
    found = arrays.selected(which, cases)
    assert [ends(ball) for ball in found] == [(0, 0), (11, 11), (22, 22), (3, 23)]
    whole = arrays.selected(np.array([0, 1]), [np.array([1, 2]), np.array([3, 4])])
    assert whole.dtype == np.int64
    assert whole.tolist() == [1, 4]
    one = arrays.selected(np.array(1), [balls(1, 2), balls(3, 4)])
    assert [float(ball) for ball in one] == [3, 4]
    truth = [np.array([TRUE, TRUE, TRUE]), np.array([TRUE, FALSE, UNKNOWN])]
    assert arrays.selected_truth(np.full(3, -1), truth).tolist() == [TRUE, UNKNOWN, UNKNOWN]
    assert arrays.selected_truth(np.full(3, 1), truth).tolist() == truth[1].tolist()
    assert arrays.selected_truth(np.zeros(3), truth).tolist() == truth[0].tolist()
    third = [*truth, np.array([FALSE] * 3)]
    assert arrays.selected_truth(np.full(3, 2), third).tolist() == [FALSE] * 3
    assert arrays.selected_truth(np.full(3, -1), third).tolist() == [UNKNOWN] * 3


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (interval(1.5, 3.5), [2, 3]),
        (interval(-9, 1.5), [0, 1]),
        (interval(3.5, 99), [4]),
        (interval(2.5, 99), [3, 4]),
        (interval(-9, -5), [0]),
        (interval(9, 15), [4]),
        (arb.nan(), [0, 1, 2, 3, 4]),
        (arb(3), [3]),
    ],
)
def test_the_places_that_an_index_can_mean(value: arb, expected: list[int]) -> None:
    assert list(arrays.candidates(value, 0, 4)) == expected


def test_the_leader_of_a_row() -> None:
    assert arrays._leader([arb(1), arb(3), arb(2)]) == 1
    assert arrays._leader([arb(3), arb(3), arb(2)]) == 0
    assert ends(arrays._leader([interval(0, 3), arb(1), interval(2, 4), arb(0)])) == (0, 2)
    assert arrays._leader([arb(0), interval(2, 4), arb(1)]) == 1
    assert ends(arrays._leader([arb(1), arb.nan(), arb(2), arb(0)])) == (0, 3)


def test_axes_are_folded_in_their_order() -> None:
    array = np.arange(24).reshape(2, 3, 4)
    assert np.array_equal(arrays.folded(array, (1,)), np.moveaxis(array, 1, 2))
    assert np.array_equal(arrays.folded(array, (0, 2)), array.transpose(1, 0, 2).reshape(3, 8))
    total = arrays.reduced(arb.__add__, 0)
    assert float(total(balls(1, 2, 3), (0,))[()]) == 6


def test_three_valued_relations() -> None:
    cases = [(arb(1), arb(2)), (arb(2), arb(2)), (arb(3), arb(2)), (interval(1, 3), arb(2))]
    assert [_balls.less(x, y) for x, y in cases] == [TRUE, FALSE, FALSE, UNKNOWN]
    assert [_balls.equal(x, y) for x, y in cases] == [FALSE, TRUE, FALSE, UNKNOWN]
    assert _balls.less(interval(1, 3), interval(-2, 0)) == FALSE


def test_what_cannot_be_negative_is_cut_at_zero() -> None:
    around = interval(-1, 4)
    assert ends(_balls.nonnegative(around))[0] == 0
    for kept in (interval(0.25, 0.75), interval(-2, -1), arb(0)):
        assert _balls.nonnegative(kept) is kept
    assert ends(_balls.root(around)) == (0, 2)
    assert ends(_balls.absolute(interval(-3, 1)))[1] == 3
    assert float(_balls.absolute(interval(-3, 1)).lower()) >= 0
    assert _balls.hull(arb(2), arb(2)).is_exact()
    assert ends(_balls.hull(arb(1), arb(2))) == (1, 2)
    wide = interval(1, 2)
    assert ends(_balls.hull(wide, wide)) == (1, 2)


def test_numbers_with_the_operators_of_balls() -> None:
    x, wide = Ball(arb(3)), Ball(interval(-1, 1))
    assert float((x - 1).arb) == 2
    assert float((1 - x).arb) == -2
    assert float((6 / x).arb) == 2
    assert float((x / 2).arb) == 1.5
    assert float((2 * x).arb) == 6
    assert float((2 + x).arb) == 5
    assert x != 2
    assert (x != 3) is False
    assert bool(x)
    assert not bool(Ball(arb(0)))
    assert +x is x
    assert (x <= 3, x >= 3, x < 3, x > 3) == (True, True, False, False)
    assert (x <= 2, x >= 4, x < 4, x > 2) == (False, False, True, True)
    assert float((wide * wide).arb.lower()) >= 0 > float((wide * Ball(wide.arb)).arb.lower())
    assert float((x * 2).arb) == 6
    third = Ball(arb(1) / 3)
    for relation, compare in (("<", third.__lt__), (">", third.__gt__), ("==", third.__eq__)):
        with pytest.raises(Undecided) as undecided:
            compare(Ball(third.arb))
        shown = third.arb.str(10)
        assert str(undecided.value) == f"whether {shown} {relation} {shown}"
        assert "0.3333333333 " in shown
    assert Ball(arb(0.1)).__repr__() == f"Ball({arb(0.1).str(20)})"


def test_rounding_at_the_ends_and_whole_numbers() -> None:
    assert ends(_balls.nearest(interval(0.4, 2.6))) == (0, 3)
    assert _balls.nearest(arb("inf")) == arb("inf")
    assert _balls.nearest(arb("0 +/- inf")).is_nan()
    assert _balls.fraction(arb(-0.375)) == -0.375
    assert _balls.whole(arb(-7)) == -7
    for unknown in (interval(1, 2), arb(0.5), arb.nan(), arb(1, 1e-9)):
        with pytest.raises(Undecided, match="whole number"):
            _balls.whole(unknown)
    assert _balls.roughly(interval(1, 2)) == 1.5
    with pytest.raises(Undecided, match="no middle"):
        _balls.roughly(arb("inf"))


def test_precision_rises_by_factors_of_two_to_the_highest() -> None:
    tried: list[int] = []

    def never(bits: int) -> tuple[Any, Any]:
        tried.append(bits)
        return interval(0, 1), arb(0.5)

    found = _balls.separate(never, lowest=16, highest=100)
    assert tried == [16, 32, 64, 100]
    assert (found.order, found.bits, found.reason) == ("undecided", 100, "the enclosures overlap")
    assert _balls.separate(lambda bits: (arb(2), arb(1)), 16).order == "above"
    assert _balls.separate(lambda bits: (Ball(arb(1)), arb(2)), 16).order == "below"
    assert _balls.separate(lambda bits: (arb(1), arb(1)), 16).order == "equal"
    wild = _balls.separate(lambda bits: (arb.nan(), arb(1)), 16, 16)
    assert wild.reason == "left not finite"
    for bad in ((15, 64), (64, 63)):
        with pytest.raises(BadArgument):
            _balls.separate(never, *bad)
    with pytest.raises(BadArgument), at_precision(15):
        pass


V = np.array([1, 2, -1, 3])
"""I - 2 v v^T / 15 is orthogonal and rational."""


def known_spectrum(values: list[int]) -> Any:
    """A symmetric matrix with these eigenvalues, in balls at the working precision."""
    size = len(values)
    v = [arb(int(x)) for x in V[:size]]
    length = sum((x * x for x in v), arb(0))
    Q = [[arb(int(i == j)) - 2 * v[i] * v[j] / length for j in range(size)] for i in range(size)]
    rows = [
        [sum((Q[i][k] * values[k] * Q[j][k] for k in range(size)), arb(0)) for j in range(size)]
        for i in range(size)
    ]
    return np.array(rows, dtype=object)


@pytest.mark.parametrize("values", [[-3, 1, 2, 7], [5, 5, 5, -1], [4], [-2, 6], [0, 0, 3]])
def test_eigenvalues_are_enclosed_narrowly(values: list[int]) -> None:
    with at_precision(160):
        matrix = known_spectrum(values)
        found = linalg.eigenvalues(matrix)
        for ball, value in zip(found, sorted(values), strict=True):
            assert ball.contains(value)
            assert float(ball.rad()) < 1e-35
    with with_balls(160) as num:
        rows = [[Ball(entry) for entry in row] for row in matrix]
        low, high = extreme_eigenvalues(num, rows)
        for ball, value in ((low, min(values)), (high, max(values))):
            assert ball.arb.contains(value)
            assert float(ball.arb.rad()) < 1e-30
        assert smallest_eigenvalue(num, rows).arb.contains(min(values))
        assert operator_norm(num, rows).arb.contains(max(map(abs, values)))
        assert float(operator_norm(num, rows).arb.rad()) < 1e-15


@pytest.mark.parametrize("size", [2, 3, 4, 6])
def test_eigenvalues_of_a_wide_matrix_hold_those_of_every_matrix_in_it(size: int) -> None:
    """All off-diagonal entries may be 1, or all -1: eigenvalues +-(n - 1), far from the diagonal.

    Every entry off the diagonal counts, above and below it: half of them reach sqrt(n (n-1)/2).
    """
    matrix = np.full((size, size), arb(0, 1), dtype=object)
    for k in range(size):
        matrix[k, k] = arb(0)
    found = linalg.eigenvalues(matrix)
    for sign in (1, -1):
        inside = np.linalg.eigvalsh(sign * (np.ones((size, size)) - np.eye(size)))
        for ball, value in zip(found, np.round(inside), strict=True):
            assert ball.contains(value)


def test_small_gram_matrices() -> None:
    assert gram([[1, 2, 3], [4, 5, 6]]) == [[14, 32], [32, 77]]
    assert gram([[1, 4], [2, 5], [3, 6]]) == [[14, 32], [32, 77]]
    assert gram([[1, 2], [3, 4]]) == [[5, 11], [11, 25]]


def test_matrices_without_eigenvalues() -> None:
    assert linalg.eigenvalues(np.empty((0, 0), dtype=object)) == []
    wild = np.array([[arb.nan(), arb(0)], [arb(0), arb(1)]], dtype=object)
    assert all(ball.is_nan() for ball in linalg.eigenvalues(wild))
    assert len(linalg.eigenvalues(wild)) == 2
    zero = np.array([[arb(0)] * 2] * 2, dtype=object)
    assert [ends(ball) for ball in linalg.eigenvalues(zero)] == [(0, 0)] * 2
    huge = np.array([[arb(2) ** 3000, arb(0)], [arb(0), arb(1)]], dtype=object)
    assert linalg.eigenvalues(huge)[1].overlaps(arb(2) ** 3000)


def test_vectors_that_are_not_independent_decide_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """V = s I gives |V^T V - I| = (s^2 - 1) sqrt 2: below 1 it widens, above there is no answer."""
    matrix = balls(2, 0, 0, 3).reshape(2, 2)
    basis = lambda s: lambda A: flint.arb_mat(2, 2, [arb(s), arb(0), arb(0), arb(s)])  # noqa: E731
    monkeypatch.setattr(linalg, "_basis", basis(1.25))
    low, high = linalg.eigenvalues(matrix)
    skew = (1.25**2 - 1) * math.sqrt(2)
    wide = (2 * 1.25**2 / (1 + skew), 2 * 1.25**2 / (1 - skew))
    assert ends(low) == pytest.approx(wide, rel=1e-3)
    assert high.contains(3)
    monkeypatch.setattr(linalg, "_basis", basis(1.5))
    with pytest.raises(Undecided, match="not independent"):
        linalg.eigenvalues(matrix)


def test_singular_values_are_those_of_the_smaller_gram_matrix() -> None:
    tall = balls(3, 0, 0, 4, 0, 0).reshape(3, 2)
    for matrix in (tall, tall.T):
        assert [ends(ball) for ball in linalg.singular_values(matrix)] == [(4, 4), (3, 3)]
    square = balls(0, 2, 1, 0).reshape(2, 2)
    assert [ends(ball) for ball in linalg.singular_values(square)] == [(2, 2), (1, 1)]


def test_cholesky_factors_and_triangles() -> None:
    L = np.array([[2, 0, 0], [-1, 3, 0], [4, 5, 1]])
    matrix = balls(*(L @ L.T).ravel()).reshape(3, 3)
    found = linalg.cholesky(matrix)
    assert [[float(x) for x in row] for row in found] == L.tolist()
    a = balls(*(L + np.triu(np.full((3, 3), 9), 1)).ravel()).reshape(3, 3)
    b = balls(*range(1, 7)).reshape(3, 2)
    lower = np.array(linalg.triangular_solve(a, b, True, False), dtype=float)
    np.testing.assert_allclose(L @ lower, np.arange(1.0, 7).reshape(3, 2), atol=1e-12)
    U = np.triu(np.array([[float(x) for x in row] for row in a]))
    upper = np.array(linalg.triangular_solve(a, b, False, False), dtype=float)
    np.testing.assert_allclose(U @ upper, np.arange(1.0, 7).reshape(3, 2), atol=1e-12)
    unit = np.array(linalg.triangular_solve(a, b, True, True), dtype=float)
    ones = L - np.diag(np.diag(L)) + np.eye(3)
    np.testing.assert_allclose(ones @ unit, np.arange(1.0, 7).reshape(3, 2), atol=1e-12)


def test_one_triangle_of_a_matrix_is_read() -> None:
    """eigh and its like: the upper or the lower triangle, mirrored."""
    matrix = Value(balls(1, 5, 0, 2).reshape(1, 2, 2))
    outvars = [SimpleNamespace(aval=SimpleNamespace(shape=shape)) for shape in ((1, 2, 2), (1, 2))]
    for lower, expected in ((True, [1, 2]), (False, [-3.524938, 6.524938])):
        equation = SimpleNamespace(params={"lower": lower}, outvars=outvars)
        vectors, values = linalg._eigh(equation, matrix)
        assert [ends(ball)[0] for ball in values.array[0]] == expected
        assert all(ball.is_nan() for ball in vectors.array.ravel())
    for params in ({"subset_by_index": (0, 1)}, {"sort_eigenvalues": False}):
        with pytest.raises(NotImplementedError, match="all eigenvalues"):
            linalg._eigh(SimpleNamespace(params={"lower": True, **params}), matrix)
    singular = apply("svd", Value(balls(3, 4).reshape(1, 2)), compute_uv=False, shape=(1,))[0]
    assert singular.nonnegative
    assert ends(singular.array[0]) == (5, 5)


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("left_side", [False, True])
def test_triangular_systems_of_every_kind(lower: bool, transpose: bool, left_side: bool) -> None:
    dense = np.array([[2.0, 1, 3], [5, 4, 1], [1, 2, 8]])
    triangle = np.tril(dense) if lower else np.triu(dense)
    system = triangle.T if transpose else triangle
    b = np.arange(1.0, 10).reshape(3, 3)
    found = apply(
        *("triangular_solve", Value(balls(*dense.ravel()).reshape(3, 3))),
        Value(balls(*b.ravel()).reshape(3, 3)),
        **{"lower": lower, "transpose_a": transpose, "left_side": left_side},
        unit_diagonal=False,
    )
    x = np.array(found.array, dtype=float)
    np.testing.assert_allclose(system @ x if left_side else x @ system, b, atol=1e-12)


def test_constants_and_arguments_of_a_program() -> None:
    """Arguments are exact, constants stand for numbers that were rounded."""
    function = lambda x: x * 0.1  # noqa: E731
    argument = np.float64(0.3)
    wide, narrow, exact = (BallProgram(function, argument, ulps=u)(200) for u in (8, 4, 0))
    assert float(wide.rad()) == pytest.approx(2 * float(narrow.rad()), rel=1e-6)
    assert float(narrow.rad()) == pytest.approx(0.3 * 4 * math.ulp(0.1), rel=1e-6)
    assert float(exact.rad()) == 0
    with pytest.raises(BadArgument, match="ulps"):
        BallProgram(function, argument, ulps=-1)
    boxed = BallProgram(lambda x: x + 1.0, argument)(200, [np.array(interval(0, 1), dtype=object)])
    assert ends(boxed) == (1, 2)
