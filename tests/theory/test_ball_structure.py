"""Rules that move, combine, reduce and pick entries, asked one by one."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import numpy as np
import pytest
from ball_rules import apply, balls, counts, ends, floats, interval, middles, truths
from flint import arb

from headcount.theory.balls import FALSE, TRUE, UNKNOWN, Undecided, Value


def table(rows: int, columns: int, nonnegative: bool = False) -> Value:
    """0, 1, 2, ... row by row."""
    return Value(balls(*range(rows * columns)).reshape(rows, columns), nonnegative)


PLAIN = np.arange(6.0).reshape(2, 3)


def test_entries_are_moved_as_numpy_moves_them() -> None:
    moves: list[tuple[str, dict[str, Any], Any]] = [
        ("transpose", {"permutation": (1, 0)}, PLAIN.T),
        ("reshape", {"new_sizes": (3, 2), "dimensions": None}, PLAIN.reshape(3, 2)),
        ("reshape", {"new_sizes": (6,), "dimensions": (1, 0)}, PLAIN.T.ravel()),
        ("rev", {"dimensions": (1,)}, PLAIN[:, ::-1]),
        ("copy", {}, PLAIN),
        (
            "slice",
            {"start_indices": (0, 1), "limit_indices": (2, 3), "strides": None},
            PLAIN[:, 1:],
        ),
        (
            "slice",
            {"start_indices": (0, 0), "limit_indices": (2, 3), "strides": (1, 2)},
            PLAIN[:, ::2],
        ),
        (
            "broadcast_in_dim",
            {"shape": (2, 4, 3), "broadcast_dimensions": (0, 2)},
            np.broadcast_to(PLAIN[:, None], (2, 4, 3)),
        ),
    ]
    for (name, params, expected), sign in itertools.product(moves, (False, True)):
        found = apply(name, table(2, 3, sign), **params)
        assert middles(found) == expected.tolist(), name
        assert found.nonnegative is sign


def test_parts_are_joined_and_split() -> None:
    a, b = table(2, 2, True), table(2, 2)
    joined = apply("concatenate", a, b, dimension=1)
    assert middles(joined) == [[0, 1, 0, 1], [2, 3, 2, 3]]
    assert not joined.nonnegative
    assert apply("stack", a, a, axis=0).nonnegative
    whole = apply("concatenate", counts(1), counts(2), dimension=0)
    assert whole.array.dtype == np.int64
    mixed = apply("concatenate", counts(1), floats((2, 3)), dimension=0, of="ii")
    assert [ends(ball) for ball in mixed.array] == [(1, 1), (2, 3)]
    parts = apply("split", table(1, 6, True), sizes=(1, 3, 2), axis=1)
    assert [middles(part) for part in parts] == [[[0]], [[1, 2, 3]], [[4, 5]]]
    assert all(part.nonnegative for part in parts)


@pytest.mark.parametrize(
    ("name", "over_rows"),
    [
        ("reduce_sum", [3, 5, 7]),
        ("reduce_prod", [0, 4, 10]),
        ("reduce_max", [3, 4, 5]),
        ("reduce_min", [0, 1, 2]),
    ],
)
def test_reductions(name: str, over_rows: list[int]) -> None:
    for sign in (False, True):
        found = apply(name, table(2, 3, sign), axes=(0,))
        assert middles(found) == over_rows
        assert found.nonnegative is sign
    whole = apply(name, counts(3, 1, 2), axes=(0,))
    assert whole.array.dtype == np.int64
    expected = {"reduce_sum": 6, "reduce_prod": 6, "reduce_max": 3, "reduce_min": 1}[name]
    assert whole.array.tolist() == expected
    open_count = apply(name, floats(3, (1, 2)), axes=(0,), of="i")
    assert open_count.array.dtype == object
    with pytest.raises(NotImplementedError, match=f"{name} of booleans"):
        apply(name, truths(TRUE), axes=(0,))


def test_of_nothing_the_sum_is_zero_and_the_product_one() -> None:
    nothing = Value(np.empty((2, 0), dtype=object))
    assert middles(apply("reduce_sum", nothing, axes=(1,))) == [0, 0]
    assert middles(apply("reduce_prod", nothing, axes=(1,))) == [1, 1]


def test_all_and_any() -> None:
    rows = Value(np.array([[TRUE, UNKNOWN], [TRUE, TRUE], [FALSE, UNKNOWN]], dtype=np.int8))
    assert apply("reduce_and", rows, axes=(1,)).array.tolist() == [UNKNOWN, TRUE, FALSE]
    assert apply("reduce_or", rows, axes=(1,)).array.tolist() == [TRUE, TRUE, UNKNOWN]
    nothing = Value(np.empty((1, 0), dtype=np.int8))
    assert apply("reduce_and", nothing, axes=(1,)).array.tolist() == [TRUE]
    assert apply("reduce_or", nothing, axes=(1,)).array.tolist() == [FALSE]
    with pytest.raises(NotImplementedError, match="reduce_and of integers"):
        apply("reduce_and", counts(1), axes=(0,))


@pytest.mark.parametrize("reverse", [False, True])
def test_running_results(reverse: bool) -> None:
    entries = [3, 1, 2]
    ordered = entries[::-1] if reverse else entries
    for name, function in (
        ("cumsum", np.add),
        ("cumprod", np.multiply),
        ("cummax", np.maximum),
        ("cummin", np.minimum),
    ):
        expected = function.accumulate(ordered)
        expected = (expected[::-1] if reverse else expected).tolist()
        found = apply(name, floats(*entries, nonnegative=True), axis=0, reverse=reverse)
        assert middles(found) == expected
        assert found.nonnegative
        assert apply(name, counts(*entries), axis=0, reverse=reverse).array.tolist() == expected


def test_the_place_of_the_leader() -> None:
    rows = Value(balls(1, 5, 2, 7, 0, 7).reshape(2, 3))
    assert apply("argmax", rows, axes=(1,)).array.tolist() == [1, 0]
    assert apply("argmin", rows, axes=(1,)).array.tolist() == [0, 1]
    assert apply("argmax", rows, axes=(0,)).array.tolist() == [1, 0, 1]
    assert apply("argmax", rows, axes=(1,)).nonnegative
    assert apply("argmax", truths(FALSE, TRUE), axes=(0,)).array.tolist() == 1
    open_place = apply("argmax", floats((0, 3), (2, 4), 1, (1, 5)), axes=(0,)).array
    assert ends(open_place[()]) == (0, 3)
    not_last = apply("argmax", floats(1, (2, 4), (3, 5), 0), axes=(0,)).array
    assert ends(not_last[()]) == (1, 2)
    wild = Value(np.array([arb(1), arb.nan(), arb(2)], dtype=object))
    assert ends(apply("argmax", wild, axes=(0,)).array[()]) == (0, 2)


def product(x: Value, y: Value, over: Any, batch: Any = ((), ()), **more: Any) -> Value:
    return apply("dot_general", x, y, dimension_numbers=(over, batch), **more)


def test_contractions() -> None:
    rng = np.random.default_rng(0)
    a, b = (
        rng.integers(-4, 5, (2, 3, 4)).astype(float),
        rng.integers(-4, 5, (4, 2, 5)).astype(float),
    )
    x, y = (Value(balls(*v.ravel()).reshape(v.shape)) for v in (a, b))
    found = product(x, y, ((2,), (0,)), ((0,), (1,)))
    np.testing.assert_array_equal(middles(found), np.einsum("bij,jbk->bik", a, b))
    found = product(x, y, ((2, 0), (0, 1)))
    np.testing.assert_array_equal(middles(found), np.einsum("bij,jbk->ik", a, b))
    one = product(floats(1, 2), floats(3, 4), ((), ()))
    assert middles(one) == [[3, 4], [6, 8]]
    thin = Value(balls(1, 2).reshape(2, 1)), Value(balls(3, 4).reshape(1, 2))
    assert middles(product(*thin, ((1,), (0,)))) == [[3, 4], [6, 8]]
    nothing = Value(np.empty((2, 0), dtype=object)), Value(np.empty((0, 3), dtype=object))
    assert middles(product(*nothing, ((1,), (0,)))) == [[0] * 3] * 2
    whole = product(counts(1, 2), counts(3, 4), ((0,), (0,)), into="i")
    assert whole.array.tolist() == 11
    for batch in (((0,), (0,)), ((0,), ()), ((), (0,))):
        with pytest.raises(NotImplementedError, match="with a batch"):
            product(counts(1, 2), counts(3, 4), ((), ()), batch, into="i")


def test_the_sign_of_a_contraction() -> None:
    x = Value(balls(-1, 2, -3, 4).reshape(2, 2))
    twin = Value(x.array)
    whole = ((0, 1), (0, 1))
    assert product(x, x, whole).nonnegative
    assert not product(x, twin, whole).nonnegative
    assert not product(x, x, ((0,), (0,))).nonnegative
    assert not product(x, x, ((0, 1), (1, 0))).nonnegative
    assert product(x, x, ((1,), (1,)), ((0,), (0,))).nonnegative
    assert not product(x, x, ((0,), (1,)), ((1,), (0,))).nonnegative
    positive = Value(x.array, True)
    assert product(positive, Value(x.array, True), ((0,), (0,))).nonnegative
    assert not product(positive, x, ((0,), (0,))).nonnegative


def sliced(start: Any, size: int = 2, n: int = 5) -> Value:
    place = Value(np.array(start, dtype=object if isinstance(start, arb) else np.int64))
    return apply("dynamic_slice", floats(*range(n)), place, of="fi", slice_sizes=(size,))


def test_slices_at_computed_places() -> None:
    for start, expected in ((1, [1, 2]), (-3, [0, 1]), (9, [3, 4]), (0, [0, 1]), (3, [3, 4])):
        assert middles(sliced(start)) == expected
    assert [ends(ball) for ball in sliced(interval(1, 2)).array] == [(1, 2), (2, 3)]
    assert [ends(ball) for ball in sliced(interval(-7, 1)).array] == [(0, 1), (1, 2)]
    assert [ends(ball) for ball in sliced(interval(2, 50)).array] == [(2, 3), (3, 4)]
    unknown = Value(np.array(arb.nan(), dtype=object))
    found = apply("dynamic_slice", floats(*range(5)), unknown, of="fi", slice_sizes=(2,))
    assert [ends(ball) for ball in found.array] == [(0, 3), (1, 4)]
    most = 256  # as many places as a rule tries
    assert ends(sliced(arb.nan(), 1, most).array[0]) == pytest.approx((0, most - 1), abs=1e-3)
    with pytest.raises(Undecided, match="dynamic_slice: an index is not known"):
        sliced(arb.nan(), 1, most + 1)
    open_place = Value(np.array(interval(0, 1), dtype=object))
    with pytest.raises(Undecided, match="dynamic_slice"):
        apply(
            *("dynamic_slice", truths(TRUE, FALSE), open_place),
            **{"of": "bi", "into": "b", "slice_sizes": (1,)},
        )
    at = Value(np.asarray(1))
    known = apply("dynamic_slice", truths(TRUE, FALSE), at, of="bi", into="b", slice_sizes=(1,))
    assert known.array.tolist() == [FALSE]


def test_updates_at_computed_places() -> None:
    def updated(start: Any) -> Value:
        place = Value(np.array(start, dtype=object if isinstance(start, arb) else np.int64))
        return apply("dynamic_update_slice", floats(0, 1, 2, 3), floats(8, 9), place, of="ffi")

    for start, expected in ((1, [0, 8, 9, 3]), (-1, [8, 9, 2, 3]), (5, [0, 1, 8, 9])):
        assert middles(updated(start)) == expected
    open_place = [ends(ball) for ball in updated(interval(0, 1)).array]
    assert open_place == [(0, 8), (8, 9), (2, 9), (3, 3)]


@pytest.mark.parametrize("filler", [None, 0.5])
def test_gathering_beyond_the_end(filler: float | None) -> None:
    numbers = jax.lax.GatherDimensionNumbers(
        offset_dims=(), collapsed_slice_dims=(0,), start_index_map=(0,)
    )
    params = {
        "dimension_numbers": numbers,
        "slice_sizes": (1,),
        "mode": jax.lax.GatherScatterMode.FILL_OR_DROP,
        "fill_value": filler,
    }
    x, inside = floats(10, 11, 12, nonnegative=True), Value(np.array([[2], [0]]))
    found = apply("gather", x, inside, of="fi", **params)
    assert middles(found) == [12, 10]
    assert found.nonnegative
    outside = Value(np.array([[2], [3]]))
    found = apply("gather", x, outside, of="fi", **params)
    assert middles(found)[0] == 12
    assert found.array[1].is_nan() if filler is None else found.array[1] == 0.5
    assert not found.nonnegative
    whole = apply("gather", counts(1, 2, 3), inside, of="ii", **params)
    assert whole.array.tolist() == [3, 1]
    with pytest.raises(NotImplementedError, match="gather of integers"):
        apply("gather", counts(1, 2, 3), outside, of="ii", **params)


def scattered(name: str, x: Value, places: list[int], updates: Value) -> Value:
    numbers = jax.lax.ScatterDimensionNumbers(
        update_window_dims=(), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,)
    )
    mode = jax.lax.GatherScatterMode.FILL_OR_DROP
    indices = Value(np.array(places)[:, None])
    params = {"dimension_numbers": numbers, "mode": mode, "update_jaxpr": None}
    return apply(name, x, indices, updates, of="fif", **params)


def test_scattering() -> None:
    x, updates = floats(1, 2, 3, nonnegative=True), floats(5, 7, nonnegative=True)
    for name, expected, sign in (
        ("scatter", [1, 7, 5], True),
        ("scatter-add", [1, 9, 8], True),
        ("scatter-sub", [1, -5, -2], False),
        ("scatter-mul", [1, 14, 15], True),
    ):
        found = scattered(name, x, [2, 1], updates)
        assert middles(found) == expected
        assert found.nonnegative is sign
        assert not scattered(name, x, [2, 1], Value(updates.array)).nonnegative
    assert middles(scattered("scatter", x, [0, 9], updates)) == [5, 2, 3]
    assert middles(scattered("scatter-add", x, [0, 0], updates)) == [13, 2, 3]
    with pytest.raises(NotImplementedError, match="two updates meet"):
        scattered("scatter", x, [0, 0], updates)


def ordered(*values: Value, keys: int = 1, of: str = "") -> list[Value]:
    return apply("sort", *values, dimension=0, num_keys=keys, of=of)


def test_sorting() -> None:
    assert middles(ordered(floats(3, 1, 2))[0]) == [1, 2, 3]
    assert [ends(b) for b in ordered(floats((0, 9), 4))[0].array] == [(0, 4), (4, 9)]
    wild = Value(np.array([arb(1), arb("0 +/- inf")], dtype=object))
    assert all(ball.is_nan() for ball in ordered(wild)[0].array)
    beyond = Value(np.array([arb("inf"), arb(1)], dtype=object))
    assert middles(ordered(beyond)[0]) == [1, np.inf]
    whole = ordered(counts(3, 1, 2))[0]
    assert whole.array.tolist() == [1, 2, 3]
    assert whole.array.dtype == np.int64
    keyed = ordered(floats(3, 1, 2, nonnegative=True), floats(30, 10, 20))
    assert [middles(value) for value in keyed] == [[1, 2, 3], [10, 20, 30]]
    assert [value.nonnegative for value in keyed] == [True, False]
    stable = ordered(floats(1, 1, 0), floats(9, 8, 7))
    assert middles(stable[1]) == [7, 9, 8]
    both = ordered(floats(1, 1, 0), floats(9, 8, 7), keys=2)
    assert middles(both[1]) == [7, 8, 9]
    with pytest.raises(Undecided, match="two keys"):
        ordered(floats((0, 2), 1), floats(1, 2))
    with pytest.raises(NotImplementedError, match="sort of booleans"):
        ordered(truths(TRUE, FALSE))
    columns = apply("sort", Value(balls(3, 1, 2, 9).reshape(2, 2)), dimension=0, num_keys=1)
    assert middles(columns[0]) == [[2, 1], [3, 9]]
