"""A JAX function on thousands of boxes at once: its jaxpr, evaluated on arrays of intervals.

What is here is sound and quick, not complete: a primitive without a rule raises `Unsupported`, and
whoever asked goes on in balls (`_ball_jaxpr.py`), one box after another.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend.core import Literal

from ..core import float64
from . import _intervals as iv
from ._ball_jaxpr import ULPS, Unsupported
from ._balls import is_short
from ._intervals import Interval
from ._program import CALLS, called_program, rounded_constants

Number = Any
"""An `Interval`, an int8 array of truths with an axis of boxes, or an array that is known."""

_MOVES = {"reshape", "squeeze", "transpose", "broadcast_in_dim", "slice", "rev"}


class Truth:
    """Truths by box: 0 no, 1 open, 2 yes."""

    def __init__(self, array: Any) -> None:
        self.array = array


class IntervalProgram:
    """A function of one flat array, traced once, evaluated on many boxes."""

    def __init__(self, function: Callable[[Any], Any], size: int, ulps: int = ULPS) -> None:
        self.ulps = ulps
        with float64():
            self._closed, shape = jax.make_jaxpr(function, return_shape=True)(np.zeros(size))
        if any(True for _ in rounded_constants(self._closed)):
            raise Unsupported("a constant that has passed through float32")
        self._tree = jax.tree.structure(shape)
        self._places: dict[int, tuple[Any, Any]] = {}
        self._literals: dict[int, tuple[Literal, Number]] = {}
        self.jumps: Any = False

    def __call__(self, low: Any, high: Any) -> tuple[Any, Any]:
        """The result on boxes (box, entry), and where it may jump or hides its slope."""
        self.jumps = np.zeros(len(low), bool)
        with np.errstate(all="ignore"), float64():
            found = self._run(self._closed, [Interval(low, high)])
        return jax.tree.unflatten(self._tree, [_interval(x) for x in found]), self.jumps

    def _run(self, program: Any, inputs: Sequence[Number]) -> list[Number]:
        jaxpr = getattr(program, "jaxpr", program)
        known: dict[Any, Number] = {}
        for variable, value in zip(jaxpr.constvars, getattr(program, "consts", ()), strict=True):
            known[variable] = self._constant(value)
        known.update(zip(jaxpr.invars, inputs, strict=True))

        def read(atom: Any) -> Number:
            if not isinstance(atom, Literal):
                return known[atom]
            if id(atom) not in self._literals:  # kept with it: the id of a lost one comes again
                self._literals[id(atom)] = atom, self._constant(atom.val)
            return self._literals[id(atom)][1]

        for equation in jaxpr.eqns:
            results = self._apply(equation, [read(atom) for atom in equation.invars])
            known.update(zip(equation.outvars, results, strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    def _constant(self, value: Any) -> Number:
        array = np.asarray(value)
        if array.dtype.kind != "f":
            return array
        if array.dtype != np.float64:
            raise Unsupported(f"a constant of type {array.dtype}")
        exact = np.vectorize(lambda v: not math.isfinite(v) or is_short(v), otypes=[bool])
        room = np.where(exact(array), 0.0, self.ulps * np.spacing(np.abs(array)))
        return Interval((array - room)[None], (array + room)[None], bool(np.all(array >= 0)))

    def _apply(self, equation: Any, values: list[Number]) -> list[Number]:
        name = equation.primitive.name
        if name in CALLS:
            return self._run(called_program(equation), values)
        if all(isinstance(value, np.ndarray) for value in values):
            return self._by_jax(equation, values)
        if name in _MOVES:
            return [_moved(values[0], self._places_of(equation, values[0]))]
        rule = getattr(self, f"_{name}", None)
        if rule is not None:
            found = rule(equation, *values)
            return found if isinstance(found, list) else [found]
        if name in iv.FUNCTIONS:
            return [iv.FUNCTIONS[name](_interval(values[0]))]
        if name in _BINARY:
            x, *rest = map(_interval, values)
            same = len(values) == 2 and values[0] is values[1]
            return [_BINARY[name](x, x if same else rest[0])]
        raise Unsupported(f"the primitive {name} has no rule for intervals")

    def _by_jax(self, equation: Any, values: list[Any]) -> list[Number]:
        """Whole numbers and truths that are known: JAX itself computes them."""
        found = equation.primitive.bind(*values, **equation.params)
        parts = found if equation.primitive.multiple_results else [found]
        return [self._constant(part) for part in parts]

    def _places_of(self, equation: Any, value: Number) -> Any:
        """Where each entry of the result comes from: JAX moves the numbers of the places."""
        if id(equation) not in self._places:
            shape = equation.invars[0].aval.shape
            places = np.arange(math.prod(shape)).reshape(shape)
            found = np.asarray(equation.primitive.bind(places, **equation.params))
            self._places[id(equation)] = equation, found
        return self._places[id(equation)][1]

    def _gather(self, equation: Any, x: Number, indices: Any) -> Number:
        if not isinstance(indices, np.ndarray):
            raise Unsupported("gather: an index is not known")
        shape = equation.invars[0].aval.shape
        places = np.arange(math.prod(shape)).reshape(shape)
        params = {**equation.params, "fill_value": -1}
        found = np.asarray(equation.primitive.bind(places, indices, **params))
        if np.any(found < 0):
            raise Unsupported("gather beyond the end of an axis")
        return _moved(x, found)

    def _dynamic_slice(self, equation: Any, x: Number, *starts: Any) -> Number:
        if not all(isinstance(start, np.ndarray) for start in starts):
            raise Unsupported("dynamic_slice: an index is not known")
        shape = equation.invars[0].aval.shape
        places = np.arange(math.prod(shape)).reshape(shape)
        return _moved(x, np.asarray(equation.primitive.bind(places, *starts, **equation.params)))

    def _concatenate(self, equation: Any, *parts: Number) -> Number:
        return _together(np.concatenate, parts, equation.params["dimension"] + 1)

    def _stack(self, equation: Any, *parts: Number) -> Number:
        return _together(np.stack, parts, equation.params["axis"] + 1)

    def _unstack(self, equation: Any, x: Number) -> list[Number]:
        x, axis = _interval(x), equation.params["axis"] + 1
        count = x.lo.shape[axis]
        return [x.moved(lambda a, k=k: np.take(a, k, axis)) for k in range(count)]

    def _one_minus_square(self, equation: Any, x: Number) -> Number:
        return iv.sub(_interval(np.ones(())), iv.square(_interval(x)))

    def _split(self, equation: Any, x: Number) -> list[Number]:
        ends, axis = np.cumsum(equation.params["sizes"])[:-1], equation.params["axis"] + 1
        x = _interval(x)
        pairs = zip(np.split(x.lo, ends, axis), np.split(x.hi, ends, axis), strict=True)
        return [Interval(low, high, x.nonnegative) for low, high in pairs]

    def _reduce_sum(self, equation: Any, x: Number) -> Number:
        return iv.total(_interval(x), tuple(equation.params["axes"]), iv.add, 0.0)

    def _reduce_prod(self, equation: Any, x: Number) -> Number:
        return iv.total(_interval(x), tuple(equation.params["axes"]), iv.mul, 1.0)

    def _reduce_max(self, equation: Any, x: Number) -> Number:
        return iv.total(_interval(x), tuple(equation.params["axes"]), iv.maximum, -np.inf)

    def _reduce_min(self, equation: Any, x: Number) -> Number:
        return iv.total(_interval(x), tuple(equation.params["axes"]), iv.minimum, np.inf)

    def _dot_general(self, equation: Any, x: Number, y: Number) -> Number:
        (over_x, over_y), (batch_x, batch_y) = equation.params["dimension_numbers"]
        if batch_x or batch_y:
            raise Unsupported("dot_general with a batch")
        left = iv.folded(_interval(x), tuple(over_x))
        right = iv.folded(_interval(y), tuple(over_y))
        rows, columns = left.shape[:-1], right.shape[:-1]
        a = left.moved(lambda v: v.reshape(len(v), *rows, *[1] * len(columns), -1))
        b = right.moved(lambda v: v.reshape(len(v), *[1] * len(rows), *columns, -1))
        whole = x is y and tuple(over_x) == tuple(over_y) and not rows
        return iv.total(
            iv.square(a) if whole else iv.mul(a, b), (len(rows) + len(columns),), iv.add, 0.0
        )

    def _integer_pow(self, equation: Any, x: Number) -> Number:
        return iv.integer_power(_interval(x), equation.params["y"])

    def _pow(self, equation: Any, x: Number, y: Number) -> Number:
        base, power = _interval(x), _interval(y)
        known = power.lo.size == 1 and power.lo.item() == power.hi.item()
        if known and power.lo.item().is_integer():
            return iv.integer_power(base, int(power.lo.item()))
        if known and power.lo.item() == 0.5:
            return iv.sqrt(base)
        return iv.FUNCTIONS["exp"](iv.mul(power, iv.FUNCTIONS["log"](base)))

    def _rsqrt(self, equation: Any, x: Number) -> Number:
        return iv.div(_interval(np.ones(())), iv.sqrt(_interval(x)))

    def _clamp(self, equation: Any, low: Number, x: Number, high: Number) -> Number:
        return iv.minimum(iv.maximum(_interval(x), _interval(low)), _interval(high))

    def _stop_gradient(self, equation: Any, x: Number) -> Number:
        if isinstance(x, Interval):
            self._may_jump(x.lo != x.hi)
        return x

    def _copy(self, equation: Any, x: Number) -> Number:
        return x

    _copy_p = _copy

    def _sign(self, equation: Any, x: Number) -> Number:
        x = _interval(x)
        found = Interval(np.sign(x.lo), np.sign(x.hi))
        self._may_jump(found.lo != found.hi)
        return found

    def _select_n(self, equation: Any, which: Number, *cases: Number) -> Number:
        which = _truth(which)
        if len(cases) != 2:
            raise Unsupported("select_n of more than two cases")
        if not any(isinstance(case, Interval) for case in cases):
            raise Unsupported("select_n of whole numbers")
        self._may_jump(which == 1)
        return iv.chosen(which, *map(_interval, cases))

    def _may_jump(self, where: Any) -> None:
        self.jumps = self.jumps | np.any(where, axis=tuple(range(1, np.ndim(where))))

    def _convert_element_type(self, equation: Any, x: Number) -> Number:
        kind = np.dtype(equation.params["new_dtype"])
        if kind != np.float64:
            raise Unsupported(f"convert_element_type: a number becomes {kind}")
        if isinstance(x, Truth):
            self._may_jump(x.array == 1)
            return Interval((x.array == 2) * 1.0, (x.array != 0) * 1.0, True)
        return x

    def _not(self, equation: Any, x: Number) -> Number:
        return Truth(2 - _truth(x))

    def _is_finite(self, equation: Any, x: Number) -> Number:
        x = _interval(x)
        return Truth(np.where(np.isfinite(x.lo) & np.isfinite(x.hi), 2, 1).astype(np.int8))

    def _reduce_and(self, equation: Any, x: Number) -> Number:
        axes = tuple(k + 1 for k in equation.params["axes"])
        return Truth(np.min(_truth(x), axis=axes, initial=2))

    def _reduce_or(self, equation: Any, x: Number) -> Number:
        axes = tuple(k + 1 for k in equation.params["axes"])
        return Truth(np.max(_truth(x), axis=axes, initial=0))

    def _and(self, equation: Any, x: Number, y: Number) -> Number:
        return Truth(np.minimum(_truth(x), _truth(y)))

    def _or(self, equation: Any, x: Number, y: Number) -> Number:
        return Truth(np.maximum(_truth(x), _truth(y)))


def _together(join: Any, parts: Sequence[Number], axis: int) -> Interval:
    """Several arrays side by side, each for as many boxes as the most."""
    pieces = [_interval(part) for part in parts]
    count = max(len(p.lo) for p in pieces)
    wide = [p.moved(lambda a: np.broadcast_to(a, (count, *a.shape[1:]))) for p in pieces]
    low, high = (join([getattr(p, end) for p in wide], axis) for end in ("lo", "hi"))
    return Interval(low, high, all(p.nonnegative for p in pieces))


def _moved(value: Number, places: Any) -> Number:
    if isinstance(value, Truth):
        return Truth(value.array.reshape(len(value.array), -1)[:, places])
    return value.moved(lambda a: a.reshape(len(a), -1)[:, places])


def _interval(value: Number) -> Interval:
    if isinstance(value, np.ndarray) and value.dtype.kind in "iuf":
        array = np.asarray(value, dtype=np.float64)[None]
        return Interval(array, array, bool(np.all(array >= 0)))
    if not isinstance(value, Interval):
        raise Unsupported("a truth where a number is due")
    return value


def _truth(value: Number) -> Any:
    if isinstance(value, Truth):
        return value.array
    if isinstance(value, np.ndarray) and value.dtype.kind == "b":
        return np.where(value, 2, 0).astype(np.int8)[None]
    raise Unsupported("a number where a truth is due")


_BINARY: dict[str, Callable[[Interval, Interval], Any]] = {
    "add": iv.add,
    "add_any": iv.add,
    "sub": iv.sub,
    "mul": iv.mul,
    "div": iv.div,
    "max": iv.maximum,
    "min": iv.minimum,
    "lt": lambda x, y: Truth(iv.less(x, y)),
    "gt": lambda x, y: Truth(iv.less(y, x)),
    "le": lambda x, y: Truth(2 - iv.less(y, x)),
    "ge": lambda x, y: Truth(2 - iv.less(x, y)),
    "eq": lambda x, y: Truth(iv.equal(x, y)),
    "ne": lambda x, y: Truth(2 - iv.equal(x, y)),
}
