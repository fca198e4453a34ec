"""Arrays of balls: NumPy object arrays of `arb`, and the operations on them.

Three kinds of array stand for the three kinds of JAX array:

- floats: object arrays of `arb`;
- integers: NumPy integer arrays where every entry is known, else object arrays of `arb` that hold
  the candidates;
- booleans: int8 arrays of FALSE, UNKNOWN and TRUE.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from flint import arb, arb_mat

from ._balls import FALSE, TRUE, UNKNOWN, Undecided, equal, hull, is_short, less, whole

Balls = Any
"""A NumPy array of one of the three kinds."""


def boxed(array: Any) -> Balls:
    """An object array also where NumPy gives back a bare `arb`."""
    return array if isinstance(array, np.ndarray) else np.array(array, dtype=object)


def mapped(function: Callable[..., Any], count: int = 1) -> Callable[..., Balls]:
    """`function` of `count` balls, entry by entry with broadcasting."""
    ufunc = np.frompyfunc(function, count, 1)
    return lambda *arrays: boxed(ufunc(*arrays))


_exactly = mapped(arb)
_integers = mapped(lambda value: arb(int(value)))
_hulls = mapped(hull, 2)
_truth = mapped(lambda truth: hull(arb(int(truth == TRUE)), arb(int(truth != FALSE))))


def exactly(array: Any) -> Balls:
    """float64 values as exact balls."""
    return _exactly(np.asarray(array, dtype=np.float64).astype(object))


def widened(array: Any, ulps: int) -> Balls:
    """float64 constants of a program: exact where they are short, else `ulps` wide either way."""
    values = np.asarray(array, dtype=np.float64)
    if not ulps or all(map(_means_itself, values.ravel().tolist())):
        return exactly(values)
    return mapped(
        lambda v: arb(v) if _means_itself(v) else arb(v, ulps * math.ulp(v)),
    )(values.astype(object))


def _means_itself(value: float) -> bool:
    return not math.isfinite(value) or is_short(value)


def is_certain(array: Balls) -> bool:
    """Whether an integer array is known entry by entry."""
    return array.dtype != object


def as_balls(array: Balls) -> Balls:
    """An integer array as balls; balls stay as they are."""
    return _integers(array) if is_certain(array) else array


def of_one_kind(parts: Sequence[Balls]) -> list[Balls]:
    """Several arrays as they are, or all as balls where integers stand beside balls."""
    known = {is_certain(part) for part in parts}
    return list(parts) if len(known) < 2 else [as_balls(part) for part in parts]


def truth_as_balls(truth: Balls) -> Balls:
    """0 for FALSE, 1 for TRUE, [0, 1] for UNKNOWN."""
    return _truth(truth)


def settled(array: Balls, dtype: Any) -> Balls:
    """Integer candidates as integers if every entry is a single one, else as they are."""
    try:
        return np.vectorize(whole, otypes=[dtype])(array) if array.size else array.astype(dtype)
    except Undecided:
        return array


def wrapped(array: Balls, dtype: Any) -> Balls:
    """Integers in the range of their type: known ones wrap around, open ones may be anything."""
    if is_certain(array):
        return array.astype(dtype, copy=False)
    inside = mapped(lambda value: _in_range(value, dtype, wraps=True))(array)
    if any(new is not old for new, old in zip(inside.ravel(), array.ravel(), strict=True)):
        array = inside
    return settled(array, dtype)


def truncated(array: Balls, dtype: Any) -> Balls:
    """Balls rounded towards zero; what may be beyond the range of the type may be anything."""
    return mapped(lambda value: _in_range(_towards_zero(value), dtype, wraps=False))(array)


def _towards_zero(value: arb) -> arb:
    """Monotone, so the ends suffice."""
    if not value.is_finite():
        return arb.nan()
    ends = (value.lower(), value.upper())
    return hull(*(end.floor() if end >= 0 else end.ceil() for end in ends))


def _in_range(value: arb, dtype: Any, *, wraps: bool) -> arb:
    """The candidates themselves if none is beyond the range of the type."""
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    if value.lower().ceil() >= low and value.upper().floor() <= high:
        return value
    if wraps and value.is_exact() and value.is_integer():
        return arb((whole(value) - low) % (high - low + 1) + low)
    return hull(arb(low), arb(high))


def counts(array: Balls) -> bool:
    """Whether no integer of the array can be negative."""
    if is_certain(array):
        return bool(np.all(array >= 0))
    return all(value.lower().ceil() >= 0 for value in array.ravel())


def integers(array: Balls, wanted_by: str) -> Balls:
    """The integers of an integer array; open candidates stop the primitive `wanted_by`."""
    if not is_certain(array):
        raise Undecided(f"{wanted_by}: an index is not known")
    return array


def decided(truth: Balls, wanted_by: str) -> Any:
    """The NumPy booleans of a truth array; an open one stops the primitive `wanted_by`."""
    if np.any(truth == UNKNOWN):
        raise Undecided(f"{wanted_by}: the condition is not known")
    return truth == TRUE


def truth_of(array: Any) -> Balls:
    """NumPy booleans as a truth array."""
    return np.where(array, TRUE, FALSE).astype(np.int8)


def compared(relation: Callable[[arb, arb], int]) -> Callable[[Balls, Balls], Balls]:
    """A three-valued relation, entry by entry."""
    ufunc = np.frompyfunc(relation, 2, 1)
    return lambda x, y: np.asarray(ufunc(x, y)).astype(np.int8)


less_than = compared(less)
equals = compared(equal)


def selected(which: Balls, cases: Sequence[Balls]) -> Balls:
    """select_n: case `which` entry by entry; -1 is not known and gets the hull of all cases."""
    open_entries = which == -1
    if np.any(open_entries):
        cases = [as_balls(case) for case in cases]
    shape = np.broadcast_shapes(which.shape, *(case.shape for case in cases))
    result = np.array(np.broadcast_to(cases[0], shape))
    for position, case in enumerate(cases[1:], start=1):
        np.copyto(result, case, where=which == position)
    if np.any(open_entries):
        np.copyto(result, joined(cases), where=open_entries)
    return result


def selected_truth(which: Balls, cases: Sequence[Balls]) -> Balls:
    """select_n of truth arrays: where `which` is not known, what all cases agree on."""
    shape = np.broadcast_shapes(which.shape, *(case.shape for case in cases))
    agreed = np.broadcast_to(cases[0], shape)
    for case in cases[1:]:
        agreed = np.where(agreed == case, agreed, UNKNOWN)
    result = np.where(which == -1, agreed, cases[0])
    for position, case in enumerate(cases[1:], start=1):
        result = np.where(which == position, case, result)
    return result.astype(np.int8)


def joined(cases: Sequence[Balls]) -> Balls:
    """The hull of several float or integer arrays, entry by entry."""
    result = as_balls(cases[0])
    for case in cases[1:]:
        result = _hulls(result, as_balls(case))
    return result


def candidates(value: arb, low: int, high: int) -> range:
    """The integers that `value` can be, clamped to [low, high] as JAX clamps a start index."""
    if not value.is_finite():
        return range(low, high + 1)
    first = min(max(math.ceil(float(value.lower())), low), high)
    last = min(max(math.floor(float(value.upper())), low), high)
    return range(first, last + 1)


def folded(array: Balls, axes: Sequence[int]) -> Balls:
    """The array with `axes` moved to the end and joined into one."""
    kept = [axis for axis in range(array.ndim) if axis not in axes]
    moved = np.transpose(array, [*kept, *axes])
    return moved.reshape(*(array.shape[axis] for axis in kept), -1)


def reduced(function: Callable[[arb, arb], arb], start: int | None = None) -> Callable[..., Balls]:
    """A reduction of balls over `axes`, `start` for none."""
    ufunc = np.frompyfunc(function, 2, 1)

    def reduce(array: Balls, axes: Sequence[int]) -> Balls:
        rows = folded(array, axes)
        if rows.shape[-1] == 0 and start is None:
            raise NotImplementedError("no entries")
        if rows.shape[-1] == 0:
            return np.full(rows.shape[:-1], arb(start), dtype=object)
        return boxed(ufunc.reduce(rows, axis=-1))

    return reduce


def contracted(x: Balls, y: Balls, dimensions: Any) -> Balls:
    """dot_general: batch axes first, then the free axes of x, then those of y."""
    (over_x, over_y), (batch_x, batch_y) = dimensions
    free_x = [k for k in range(x.ndim) if k not in over_x and k not in batch_x]
    free_y = [k for k in range(y.ndim) if k not in over_y and k not in batch_y]
    shape = (
        *(x.shape[k] for k in batch_x),
        *(x.shape[k] for k in free_x),
        *(y.shape[k] for k in free_y),
    )
    batch = math.prod(x.shape[k] for k in batch_x)
    rows = math.prod(x.shape[k] for k in free_x)
    columns = math.prod(y.shape[k] for k in free_y)
    inner = math.prod(x.shape[k] for k in over_x)
    left = np.transpose(x, [*batch_x, *free_x, *over_x]).reshape(batch, rows * inner)
    right = np.transpose(y, [*batch_y, *over_y, *free_y]).reshape(batch, inner * columns)
    result = np.empty((batch, rows * columns), dtype=object)
    for k in range(batch):
        product = _times(left[k].tolist(), right[k].tolist(), rows, inner, columns)
        result[k] = product
    return result.reshape(shape)


def _times(x: list[arb], y: list[arb], rows: int, inner: int, columns: int) -> list[arb]:
    """A matrix product in C: each entry is one dot product with one rounding."""
    if inner == 0:
        return [arb(0)] * (rows * columns)
    if inner == 1:
        return [a * b for a in x for b in y]
    if all(isinstance(a, arb) for a in (*x, *y)):
        return (arb_mat(rows, inner, x) * arb_mat(inner, columns, y)).entries()
    left, right = np.array(x, object), np.array(y, object)
    return list((left.reshape(rows, inner) @ right.reshape(inner, columns)).ravel())


def leading(array: Balls, axis: int) -> Balls:
    """argmax along an axis: integers where one entry leads, else balls around all that may."""
    rows = np.moveaxis(array, axis, -1)
    result = np.empty(rows.shape[:-1], dtype=object)
    for position in np.ndindex(result.shape):
        result[position] = _leader(rows[position].tolist())
    return settled(result, np.int64)


def _leader(row: list[arb]) -> arb:
    if not all(x.is_finite() for x in row):
        return hull(arb(0), arb(len(row) - 1))
    level = row[0]
    for x in row[1:]:
        level = level.max(x)
    level = level.lower()
    able = [k for k, x in enumerate(row) if less(x, level) != TRUE]
    first = row[able[0]]
    if all(equal(first, row[k]) == TRUE for k in able):
        return arb(able[0])
    return hull(arb(able[0]), arb(able[-1]))
