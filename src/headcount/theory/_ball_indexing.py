"""Rules for primitives that pick entries by index, and for sorting."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import cmp_to_key
from typing import Any

import jax
import numpy as np
from flint import arb

from . import _ball_array as arrays
from ._ball_array import Balls, as_balls, is_certain
from ._ball_value import Equation, Rule, Value, every, kind_of
from ._balls import FALSE, TRUE, UNKNOWN, Undecided, equal, hull, less

MOST_CANDIDATES = 256
"""An index that is not known is tried at every place it can mean, if these are few."""


def _starts(equation: Equation, values: Sequence[Value], limits: Sequence[int]) -> Any:
    """Every vector of start indices that may be meant, each clamped into its axis."""
    choices = []
    for value, limit in zip(values, limits, strict=True):
        array = value.array
        if is_certain(array):
            choices.append(
                range(min(max(int(array), 0), limit), min(max(int(array), 0), limit) + 1)
            )
        else:
            choices.append(arrays.candidates(array[()], 0, limit))
    if math.prod(len(choice) for choice in choices) > MOST_CANDIDATES:
        raise Undecided(f"{equation.primitive.name}: an index is not known")
    return itertools.product(*choices)


def _joined_or_only(equation: Equation, parts: list[Balls]) -> Balls:
    if len(parts) > 1 and kind_of(equation.outvars[0]) == "b":
        raise Undecided(f"{equation.primitive.name}: an index is not known")
    return parts[0] if len(parts) == 1 else arrays.joined(parts)


def _dynamic_slice(equation: Equation, x: Value, *starts: Value) -> Value:
    sizes = equation.params["slice_sizes"]
    limits = [extent - size for extent, size in zip(x.array.shape, sizes, strict=True)]
    parts = [
        x.array[tuple(slice(k, k + size) for k, size in zip(start, sizes, strict=True))]
        for start in _starts(equation, starts, limits)
    ]
    return Value(_joined_or_only(equation, parts), x.nonnegative)


def _dynamic_update_slice(equation: Equation, x: Value, update: Value, *starts: Value) -> Value:
    operand, piece = arrays.of_one_kind([x.array, update.array])
    sizes = piece.shape
    limits = [extent - size for extent, size in zip(operand.shape, sizes, strict=True)]
    parts = []
    for start in _starts(equation, starts, limits):
        part = np.array(operand)
        where = tuple(slice(k, k + size) for k, size in zip(start, sizes, strict=True))
        part[where] = piece
        parts.append(part)
    return Value(_joined_or_only(equation, parts), every((x, update)))


def _places(shape: Sequence[int], indices: Any, numbers: Any, sizes: Any, mode: Any) -> Any:
    """For every entry that a gather reads, its flat place in the operand; -1 outside."""
    places = np.arange(math.prod(shape), dtype=np.int32).reshape(shape)
    starts = np.asarray(indices, dtype=np.int32)
    if np.any(starts != indices):
        raise NotImplementedError("an index beyond 32 bits")
    found = jax.lax.gather(places, starts, numbers, tuple(sizes), mode=mode, fill_value=-1)
    return np.asarray(found)


def _gather(equation: Equation, x: Value, indices: Value) -> Value:
    """JAX itself gathers the places; the balls are then picked by place."""
    p = equation.params
    found = _places(
        x.array.shape,
        arrays.integers(indices.array, "gather"),
        p["dimension_numbers"],
        p["slice_sizes"],
        p["mode"],
    )
    flat = x.array.reshape(-1)
    if np.any(found < 0):
        if kind_of(equation.invars[0]) != "f":
            raise NotImplementedError("gather of integers beyond the end of an axis")
        filler = p["fill_value"]
        last = arb.nan() if filler is None else arb(float(filler))
        flat = np.concatenate([flat, np.array([last], dtype=object)])
    return Value(flat[found], x.nonnegative and not np.any(found < 0))


def _scatter(combine: Callable[[Any, Any], Any] | None, sign: bool) -> Rule:
    """scatter, scatter-add and their like: updates go where a gather would read.

    `sign` says that the result of nonnegative operands is nonnegative.
    """

    def rule(equation: Equation, x: Value, indices: Value, updates: Value) -> Value:
        p = equation.params
        if combine is None and not _takes_the_update(p["update_jaxpr"]):
            raise NotImplementedError("scatter of a function")
        numbers = p["dimension_numbers"]
        outside = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
        window = iter(numbers.update_window_dims)
        sizes = [
            1 if axis in outside else updates.array.shape[next(window)]
            for axis in range(x.array.ndim)
        ]
        as_gather = jax.lax.GatherDimensionNumbers(
            offset_dims=numbers.update_window_dims,
            collapsed_slice_dims=numbers.inserted_window_dims,
            start_index_map=numbers.scatter_dims_to_operand_dims,
            operand_batching_dims=numbers.operand_batching_dims,
            start_indices_batching_dims=numbers.scatter_indices_batching_dims,
        )
        known = arrays.integers(indices.array, equation.primitive.name)
        places = _places(x.array.shape, known, as_gather, sizes, p["mode"])
        operand, news = arrays.of_one_kind([x.array, updates.array])
        result = np.array(operand).reshape(-1)
        used = places[places >= 0]
        if combine is None and len(np.unique(used)) != used.size:
            raise NotImplementedError("scatter: two updates meet in one place")
        for place, update in zip(places.ravel(), news.ravel(), strict=True):
            if place >= 0:
                result[place] = update if combine is None else combine(result[place], update)
        return Value(result.reshape(x.array.shape), sign and every((x, updates)))

    return rule


def _takes_the_update(combination: Any) -> bool:
    """Whether a scatter puts the update in place of the entry, which `x.at[k].apply` does not."""
    jaxpr = getattr(combination, "jaxpr", combination)
    return jaxpr is None or (not jaxpr.eqns and jaxpr.outvars[0] is jaxpr.invars[1])


def _sort(equation: Equation, *values: Value) -> list[Value]:
    """Alone, an array is sorted by its ends; with companions its order must be known."""
    axis, keys = equation.params["dimension"], equation.params["num_keys"]
    if any(kind_of(variable) == "b" for variable in equation.invars):
        raise NotImplementedError("sort of booleans")
    rows = [np.moveaxis(as_balls(value.array), axis, -1) for value in values]
    results = [np.empty(row.shape, dtype=object) for row in rows]
    for place in np.ndindex(rows[0].shape[:-1]):
        lanes = [row[place].tolist() for row in rows]
        if len(lanes) == 1 and isinstance(lanes[0][0], arb):
            results[0][place] = _sorted_ends(lanes[0])
            continue
        order = sorted(range(len(lanes[0])), key=cmp_to_key(_order_by(lanes[:keys])))
        for result, lane in zip(results, lanes, strict=True):
            result[place] = [lane[k] for k in order]
    moved = [np.moveaxis(result, -1, axis) for result in results]
    return [
        Value(
            part if v.array.dtype == object else arrays.settled(part, v.array.dtype), v.nonnegative
        )
        for part, v in zip(moved, values, strict=True)
    ]


def _sorted_ends(lane: list[arb]) -> list[arb]:
    """The k-th smallest value is monotone in every entry: sort lower and upper ends apart."""
    if all(x.is_exact() and not x.is_nan() for x in lane):
        return sorted(lane)
    if not all(x.is_finite() for x in lane):
        return [arb.nan()] * len(lane)
    ends = (sorted(x.lower() for x in lane), sorted(x.upper() for x in lane))
    return [hull(low, high) for low, high in zip(*ends, strict=True)]


def _order_by(keys: list[list[arb]]) -> Callable[[int, int], int]:
    def order(i: int, j: int) -> int:
        for key in keys:
            smaller, same = less(key[i], key[j]), equal(key[i], key[j])
            if UNKNOWN in (smaller, same):
                raise Undecided("sort: the order of two keys is not known")
            if same == FALSE:
                return -1 if smaller == TRUE else 1
        return 0

    return order


RULES: dict[str, Rule] = {
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "gather": _gather,
    "scatter": _scatter(None, True),
    "scatter-add": _scatter(lambda x, y: x + y, True),
    "scatter-sub": _scatter(lambda x, y: x - y, False),
    "scatter-mul": _scatter(lambda x, y: x * y, True),
    "sort": _sort,
}
