"""Rules for primitives that move, combine and reduce entries."""

from __future__ import annotations

from collections.abc import Callable
from operator import add, mul
from typing import Any

import numpy as np
from flint import arb

from . import _ball_array as arrays
from ._ball_array import Balls, as_balls, is_certain
from ._ball_value import Equation, Rule, Value, every, kind_of
from ._balls import FALSE, TRUE, larger, smaller


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
        parts = arrays.of_one_kind([value.array for value in values])
        return Value(together(equation, parts), every(values))

    return rule


def _split(equation: Equation, x: Value) -> list[Value]:
    ends = np.cumsum(equation.params["sizes"])[:-1]
    parts = np.split(x.array, ends, axis=equation.params["axis"])
    return [Value(part, x.nonnegative) for part in parts]


def _unstack(equation: Equation, x: Value) -> list[Value]:
    rows = np.moveaxis(x.array, equation.params["axis"], 0)
    return [Value(np.array(rows[k], dtype=rows.dtype), x.nonnegative) for k in range(len(rows))]


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
    inner, outer = arrays.of_one_kind([x.array, filler.array])
    result = np.array(np.broadcast_to(outer, shape))
    if all(len(places) for places in target):
        result[np.ix_(*target)] = inner[np.ix_(*source)]
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
        if before == "b":
            return Value(arrays.truth_as_balls(x.array), True)
        return x if before == "f" else Value(as_balls(x.array), arrays.counts(x.array))
    if after == "b":
        if before == "b":
            return x
        zero = np.array(arb(0), dtype=object)
        return Value((TRUE - arrays.equals(as_balls(x.array), zero)).astype(np.int8))
    if after not in "iu":
        raise NotImplementedError(f"to {dtype}: only float64 and integers are enclosed")
    if before == "b":
        return Value(arrays.truth_as_balls(x.array))
    return Value(arrays.truncated(x.array, dtype)) if before == "f" else x


def _reduction(on_balls: Any, on_integers: Any) -> Rule:
    def rule(equation: Equation, x: Value) -> Value:
        axes = tuple(equation.params["axes"])
        if kind_of(equation.invars[0]) == "b":
            raise NotImplementedError(f"{equation.primitive.name} of booleans")
        if kind_of(equation.invars[0]) != "f" and is_certain(x.array):
            return Value(np.asarray(on_integers(x.array, axis=axes)))
        return Value(on_balls(as_balls(x.array), axes), x.nonnegative)

    return rule


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


def _leading(*, largest: bool) -> Rule:
    def rule(equation: Equation, x: Value) -> Value:
        (axis,) = equation.params["axes"]
        is_truth = kind_of(equation.invars[0]) == "b"
        balls = arrays.truth_as_balls(x.array) if is_truth else as_balls(x.array)
        found = arrays.leading(balls if largest else -balls, axis)
        return Value(found, True)

    return rule


def _dot_general(equation: Equation, x: Value, y: Value) -> Value:
    """A contraction; of a quantity with itself over the same axes it is a sum of squares."""
    dimensions = equation.params["dimension_numbers"]
    (over_x, over_y), (batch_x, batch_y) = dimensions
    if kind_of(equation.outvars[0]) == "b":
        raise NotImplementedError("dot_general of booleans")
    if kind_of(equation.outvars[0]) != "f":
        if batch_x or batch_y:
            raise NotImplementedError("dot_general of integers with a batch")
        dtype = equation.outvars[0].aval.dtype
        left, right = (arrays.integers(v.array, "dot_general").astype(dtype) for v in (x, y))
        return Value(np.tensordot(left, right, axes=(over_x, over_y)))
    alike = x is y and tuple(over_x) == tuple(over_y) and tuple(batch_x) == tuple(batch_y)
    squares = alike and len(over_x) + len(batch_x) == x.array.ndim
    product = arrays.contracted(as_balls(x.array), as_balls(y.array), dimensions)
    return Value(product, squares or every((x, y)))


RULES: dict[str, Rule] = {
    **dict.fromkeys(("stop_gradient", "copy", "copy_p", "name"), _same),
    "broadcast_in_dim": _moved(_broadcast),
    "reshape": _moved(_reshape),
    "squeeze": _moved(lambda eqn, x: x.reshape(eqn.outvars[0].aval.shape)),
    "transpose": _moved(lambda eqn, x: np.transpose(x, eqn.params["permutation"])),
    "slice": _moved(_slice),
    "rev": _moved(_rev),
    "split": _split,
    "concatenate": _joined(lambda eqn, parts: np.concatenate(parts, eqn.params["dimension"])),
    "stack": _joined(lambda eqn, parts: np.stack(parts, eqn.params["axis"])),
    "unstack": _unstack,
    "pad": _pad,
    "iota": _iota,
    "convert_element_type": _convert,
    "reduce_sum": _reduction(arrays.reduced(add, 0), np.sum),
    "reduce_prod": _reduction(arrays.reduced(mul, 1), np.prod),
    "reduce_max": _reduction(arrays.reduced(larger), np.max),
    "reduce_min": _reduction(arrays.reduced(smaller), np.min),
    "reduce_and": _truth_reduction(np.min),
    "reduce_or": _truth_reduction(np.max),
    "cumsum": _accumulation(add, np.add),
    "cumprod": _accumulation(mul, np.multiply),
    "cummax": _accumulation(larger, np.maximum),
    "cummin": _accumulation(smaller, np.minimum),
    "argmax": _leading(largest=True),
    "argmin": _leading(largest=False),
    "dot_general": _dot_general,
}
