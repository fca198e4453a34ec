"""Rules for primitives that move, combine, pick and reduce entries."""

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
from ._ball_array import Balls, as_balls, is_certain, mapped
from ._ball_value import Equation, Rule, Value, every, kind_of
from ._balls import FALSE, TRUE, UNKNOWN, Undecided, equal, hull, less

MOST_CANDIDATES = 256
"""An index that is not known is tried at every place it can mean, if these are few."""


def _same(equation: Equation, x: Value) -> Value:
    return x


def _moved(move: Callable[[Equation, Balls], Balls]) -> Rule:
    """A primitive that only rearranges the entries of its one operand."""
    return lambda equation, x: Value(move(equation, x.array), x.nonnegative)


def _broadcast(equation: Equation, x: Balls) -> Balls:
    shape = equation.params["shape"]
    placed = [1] * len(shape)
    for axis, target in enumerate(equation.params["broadcast_dimensions"]):
        placed[target] = x.shape[axis]
    return np.broadcast_to(x.reshape(placed), shape)


def _reshape(equation: Equation, x: Balls) -> Balls:
    if equation.params["dimensions"] is not None:
        x = np.transpose(x, equation.params["dimensions"])
    return x.reshape(equation.params["new_sizes"])


def _slice(equation: Equation, x: Balls) -> Balls:
    p = equation.params
    strides = p["strides"] or (1,) * x.ndim
    bounds = zip(p["start_indices"], p["limit_indices"], strides, strict=True)
    return x[tuple(slice(*bound) for bound in bounds)]


def _rev(equation: Equation, x: Balls) -> Balls:
    return np.flip(x, equation.params["dimensions"])


def _joined(together: Callable[[Equation, list[Balls]], Balls]) -> Rule:
    """A primitive that puts several operands of one kind side by side."""

    def rule(equation: Equation, *values: Value) -> Value:
        parts = [value.array for value in values]
        if len({part.dtype == object for part in parts}) > 1:
            parts = [as_balls(part) for part in parts]
        return Value(together(equation, parts), every(values))

    return rule


def _split(equation: Equation, x: Value) -> list[Value]:
    ends = np.cumsum(equation.params["sizes"])[:-1]
    parts = np.split(x.array, ends, axis=equation.params["axis"])
    return [Value(part, x.nonnegative) for part in parts]


def _pad(equation: Equation, x: Value, filler: Value) -> Value:
    """Edges may be negative (they cut), gaps are put between entries."""
    config = equation.params["padding_config"]
    shape = equation.outvars[0].aval.shape
    source, target = [], []
    for size, extent, (low, _, gap) in zip(x.array.shape, shape, config, strict=True):
        places = low + (gap + 1) * np.arange(size)
        inside = (places >= 0) & (places < extent)
        source.append(np.flatnonzero(inside))
        target.append(places[inside])
    parts = [x.array, filler.array]
    if len({part.dtype == object for part in parts}) > 1:
        parts = [as_balls(part) for part in parts]
    result = np.array(np.broadcast_to(parts[1], shape))
    if all(len(places) for places in target):
        result[np.ix_(*target)] = parts[0][np.ix_(*source)]
    return Value(result, every((x, filler)))


def _iota(equation: Equation) -> Value:
    p = equation.params
    shape, axis = p["shape"], p["dimension"]
    places = np.arange(shape[axis]).reshape([-1 if k == axis else 1 for k in range(len(shape))])
    counts = np.broadcast_to(places, shape)
    if np.dtype(p["dtype"]).kind == "f":
        return Value(as_balls(counts), True)
    return Value(counts.astype(p["dtype"]), True)


def _convert(equation: Equation, x: Value) -> Value:
    dtype = np.dtype(equation.params["new_dtype"])
    before, after = kind_of(equation.invars[0]), dtype.kind
    if after == "f":
        if dtype != np.float64:
            raise NotImplementedError(f"convert_element_type to {dtype}: only float64 is enclosed")
        if before == "b":
            return Value(arrays.truth_as_balls(x.array), True)
        if before == "f":
            return x
        return Value(as_balls(x.array), x.nonnegative or _counts(x.array))
    if after == "b":
        if before == "b":
            return x
        zero = np.array(arb(0), dtype=object)
        return Value((TRUE - arrays.equals(as_balls(x.array), zero)).astype(np.int8))
    if before == "b":
        return Value(arrays.settled(arrays.truth_as_balls(x.array), dtype), True)
    if before == "f":
        towards_zero = mapped(lambda v: v.floor() if v >= 0 else v.ceil() if v <= 0 else arb.nan())
        return Value(arrays.settled(towards_zero(x.array), dtype), x.nonnegative)
    return Value(x.array.astype(dtype) if is_certain(x.array) else x.array, x.nonnegative)


def _counts(array: Balls) -> bool:
    return is_certain(array) and bool(np.all(array >= 0))


def _reduction(on_balls: Any, on_integers: Any, sign: Callable[[Value], bool]) -> Rule:
    def rule(equation: Equation, x: Value) -> Value:
        axes = tuple(equation.params["axes"])
        if kind_of(equation.invars[0]) == "b":
            raise NotImplementedError(f"{equation.primitive.name} of booleans")
        if kind_of(equation.invars[0]) != "f" and is_certain(x.array):
            result = np.asarray(on_integers(x.array, axis=axes), dtype=x.array.dtype)
            return Value(result, sign(x))
        return Value(on_balls(as_balls(x.array), axes), sign(x))

    return rule


def _kept_sign(x: Value) -> bool:
    return x.nonnegative


def _truth_reduction(choose: Any) -> Rule:
    def rule(equation: Equation, x: Value) -> Value:
        if kind_of(equation.invars[0]) != "b":
            raise NotImplementedError(f"{equation.primitive.name} of integers")
        axes = tuple(equation.params["axes"])
        start = TRUE if choose is np.min else FALSE
        return Value(np.asarray(choose(x.array, axis=axes, initial=start)).astype(np.int8))

    return rule


def _accumulation(function: Callable[[arb, arb], arb], on_integers: Any) -> Rule:
    ufunc = np.frompyfunc(function, 2, 1)

    def rule(equation: Equation, x: Value) -> Value:
        axis = equation.params["axis"]
        entries = np.flip(x.array, axis) if equation.params["reverse"] else x.array
        accumulate = on_integers.accumulate if is_certain(entries) else ufunc.accumulate
        result = accumulate(entries, axis=axis)
        result = np.flip(result, axis) if equation.params["reverse"] else result
        return Value(result, x.nonnegative)

    return rule


def _leading(sign: int) -> Rule:
    def rule(equation: Equation, x: Value) -> Value:
        (axis,) = equation.params["axes"]
        is_truth = kind_of(equation.invars[0]) == "b"
        balls = arrays.truth_as_balls(x.array) if is_truth else as_balls(x.array)
        found = arrays.leading(balls if sign > 0 else -balls, axis)
        return Value(found, True)

    return rule


def _dot_general(equation: Equation, x: Value, y: Value) -> Value:
    """A contraction; of a quantity with itself over the same axes it is a sum of squares."""
    dimensions = equation.params["dimension_numbers"]
    if kind_of(equation.outvars[0]) != "f":
        pair = [arrays.integers(v.array, "dot_general") for v in (x, y)]
        (over_x, over_y), (batch_x, batch_y) = dimensions
        if batch_x or batch_y:
            raise NotImplementedError("dot_general of integers with a batch")
        return Value(np.tensordot(*pair, axes=(over_x, over_y)))
    (over_x, over_y), (batch_x, batch_y) = dimensions
    alike = x is y and tuple(over_x) == tuple(over_y) and tuple(batch_x) == tuple(batch_y)
    squares = alike and len(over_x) + len(batch_x) == x.array.ndim
    product = arrays.contracted(as_balls(x.array), as_balls(y.array), dimensions)
    return Value(product, squares or every((x, y)))


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
    sizes = update.array.shape
    limits = [extent - size for extent, size in zip(x.array.shape, sizes, strict=True)]
    parts = []
    for start in _starts(equation, starts, limits):
        part = np.array(x.array)
        where = tuple(slice(k, k + size) for k, size in zip(start, sizes, strict=True))
        part[where] = update.array
        parts.append(part)
    return Value(_joined_or_only(equation, parts), every((x, update)))


def _places(shape: Sequence[int], indices: Any, numbers: Any, sizes: Any, mode: Any) -> Any:
    """For every entry that a gather reads, its flat place in the operand; -1 outside."""
    places = np.arange(math.prod(shape), dtype=np.int32).reshape(shape)
    starts = np.asarray(indices, dtype=np.int32)
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
        flat = np.append(flat, arb.nan() if filler is None else arb(float(filler)))
    return Value(flat[found], x.nonnegative and not np.any(found < 0))


def _scatter(combine: Callable[[Any, Any], Any] | None, sign: bool) -> Rule:
    """scatter, scatter-add and their like: updates go where a gather would read.

    `sign` says that the result of nonnegative operands is nonnegative.
    """

    def rule(equation: Equation, x: Value, indices: Value, updates: Value) -> Value:
        p = equation.params
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
        result = np.array(x.array).reshape(-1)
        used = places[places >= 0]
        if combine is None and len(np.unique(used)) != used.size:
            raise NotImplementedError("scatter: two updates meet in one place")
        for place, update in zip(places.ravel(), updates.array.ravel(), strict=True):
            if place >= 0:
                result[place] = update if combine is None else combine(result[place], update)
        return Value(result.reshape(x.array.shape), sign and every((x, updates)))

    return rule


def _sort(equation: Equation, *values: Value) -> list[Value]:
    """Alone, an array is sorted by its ends; with companions its order must be known."""
    axis, keys = equation.params["dimension"], equation.params["num_keys"]
    if any(kind_of(variable) == "b" for variable in equation.invars):
        raise NotImplementedError("sort of booleans")
    rows = [np.moveaxis(as_balls(value.array), axis, -1) for value in values]
    results = [np.empty(row.shape, dtype=object) for row in rows]
    for place in np.ndindex(rows[0].shape[:-1]):
        lanes = [row[place].tolist() for row in rows]
        if len(lanes) == 1:
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
    **dict.fromkeys(("stop_gradient", "copy", "copy_p", "name"), _same),
    "broadcast_in_dim": _moved(_broadcast),
    "reshape": _moved(_reshape),
    "squeeze": _moved(lambda eqn, x: x.reshape(eqn.outvars[0].aval.shape)),
    "expand_dims": _moved(lambda eqn, x: x.reshape(eqn.outvars[0].aval.shape)),
    "transpose": _moved(lambda eqn, x: np.transpose(x, eqn.params["permutation"])),
    "slice": _moved(_slice),
    "rev": _moved(_rev),
    "split": _split,
    "concatenate": _joined(lambda eqn, parts: np.concatenate(parts, eqn.params["dimension"])),
    "stack": _joined(lambda eqn, parts: np.stack(parts, eqn.params["axis"])),
    "pad": _pad,
    "iota": _iota,
    "convert_element_type": _convert,
    "reduce_sum": _reduction(arrays.reduced(arb.__add__, 0), np.sum, _kept_sign),
    "reduce_prod": _reduction(arrays.reduced(arb.__mul__, 1), np.prod, _kept_sign),
    "reduce_max": _reduction(arrays.reduced(arb.max, 0), np.max, _kept_sign),
    "reduce_min": _reduction(arrays.reduced(arb.min, 0), np.min, _kept_sign),
    "reduce_and": _truth_reduction(np.min),
    "reduce_or": _truth_reduction(np.max),
    "cumsum": _accumulation(arb.__add__, np.add),
    "cumprod": _accumulation(arb.__mul__, np.multiply),
    "cummax": _accumulation(arb.max, np.maximum),
    "cummin": _accumulation(arb.min, np.minimum),
    "argmax": _leading(1),
    "argmin": _leading(-1),
    "dot_general": _dot_general,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "gather": _gather,
    "scatter": _scatter(None, True),
    "scatter-add": _scatter(lambda x, y: x + y, True),
    "scatter-sub": _scatter(lambda x, y: x - y, False),
    "scatter-mul": _scatter(lambda x, y: x * y, True),
    "sort": _sort,
}
