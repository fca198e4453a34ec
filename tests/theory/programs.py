"""Programs around one primitive, and what an enclosure of them must hold.

A program is a JAX function with arguments. Of what only picks, moves, compares or counts, JAX's own
result is exact; of the rest `exact` is the same function of mpmath numbers, written without JAX.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import mpmath
import numpy as np
from flint import arb
from jax import lax
from mpmath_numbers import as_ball

from headcount.theory import _ball_array as arrays
from headcount.theory._ball_jaxpr import _Interpreter
from headcount.theory._program import CALLS
from headcount.theory.balls import FALSE, RULES, TRUE, UNKNOWN, Undecided, Value, at_precision, hull

BITS = 200
NEAR, NARROW = 1e-10, 1e-45
INTEGERS = tuple(f"{u}int{bits}" for u in ("", "u") for bits in (8, 16, 32, 64))
MP = mpmath.mp.clone()
MP.dps = 120
_POINTS = 4


@dataclass(frozen=True, eq=False)
class Program:
    """A function of arrays; its float arguments may vary by `radius` around the given ones."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    exact: Callable[..., Any] | None = None
    radius: float = 0.0

    def ends(self, argument: Any) -> tuple[Any, Any]:
        """The least and the greatest that an argument can be."""
        if argument.dtype != np.float64:
            return argument, argument
        return argument - self.radius, argument + self.radius

    def points(self, rng: np.random.Generator) -> list[tuple[Any, ...]]:
        """The arguments, a random corner and something between."""
        found = [self.arguments]
        for k in range(_POINTS - 1 if self.radius else 0):
            found.append(tuple(self._moved(x, rng, corner=not k) for x in self.arguments))
        return found

    def _moved(self, argument: Any, rng: np.random.Generator, *, corner: bool) -> Any:
        if argument.dtype != np.float64:
            return argument
        shape = argument.shape
        share = rng.choice([-1, 1], shape) if corner else rng.uniform(-1, 1, shape)
        return np.clip(argument + self.radius * share, *self.ends(argument))


Generator = Callable[[np.random.Generator], Iterator[Program]]
"""Draws programs that contain one primitive: all element types, edges, axes, sizes."""


def seen_as(kind: str, x: Any) -> Any:
    """A float argument as it is, as an integer or as a truth, which are open where it varies."""
    if kind == "bool":
        return lax.gt(x, 0.0)
    return x if kind == "float64" else lax.convert_element_type(x, np.dtype(kind))


def edges(rng: np.random.Generator, dtype: str, size: int) -> Any:
    """Integers or truths, the extremes among them."""
    if dtype == "bool":
        return rng.integers(0, 2, size).astype(bool)
    limits = np.iinfo(dtype)
    special = [limits.min, limits.max, 0, 1, limits.max // 2 + 1, -1 if limits.min else 2]
    small = rng.integers(0, 7, size).tolist()
    picked = [special[k] if k < 6 else small[i] for i, k in enumerate(rng.integers(0, 9, size))]
    return np.array(picked, dtype=dtype)


def primitives(jaxpr: Any) -> set[str]:
    """The names of all primitives of a jaxpr, those of its inner ones included."""
    names = set()
    for equation in jaxpr.eqns:
        names.add(equation.primitive.name)
        for parameter in jax.tree.leaves(
            list(equation.params.values()), is_leaf=lambda p: hasattr(p, "eqns")
        ):
            inner = getattr(parameter, "jaxpr", parameter)
            if hasattr(inner, "eqns"):
                names |= primitives(inner)
    return names


def faults(programs: Sequence[Program], rng: np.random.Generator, name: str = "") -> list[str]:
    """What is wrong with the enclosures of programs, all of which contain a primitive."""
    together = jax.jit(lambda every: [p.function(*a) for p, a in zip(programs, every, strict=True)])
    points = [program.points(rng) for program in programs]
    computed = [together([p[k % len(p)] for p in points]) for k in range(_POINTS)]
    found, enclosed = [], 0
    for number, program in enumerate(programs):
        closed = jax.make_jaxpr(program.function)(*program.arguments)
        if name and name not in primitives(closed.jaxpr):
            found.append(f"{number}: has no {name}")
        by_jax = [jax.tree.leaves(values[number]) for values in computed]
        box = enclosure(closed, [box_of(*program.ends(x)) for x in program.arguments])
        enclosed += box is not None and all(map(_is_finite, box))
        for point, floats in zip(points[number], by_jax, strict=False):
            ball = enclosure(closed, [box_of(x, x) for x in point])
            exact = floats if program.exact is None else _exactly(program.exact, point)
            where = f"{number} at {[x.tolist() for x in point]}"
            if ball is None:
                found.append(f"{where}: undecided")
                continue
            for k, value in enumerate(exact):
                of = (value, floats[k], ball[k], box and box[k])
                found += [f"{where}: {what}" for what in _wrong(*of, rounded=bool(program.exact))]
    return found + ["no box is enclosed"] * (not enclosed)


def box_of(low: Any, high: Any) -> Value:
    if low.dtype == bool:
        return Value(arrays.truth_of(low))
    if low.dtype != np.float64:
        return Value(low)
    balls = arrays.mapped(lambda a, b: hull(arb(a), arb(b)), 2)
    return Value(balls(low.astype(object), high.astype(object)), bool(np.all(low >= 0)))


def enclosure(closed: Any, values: list[Value]) -> list[Value] | None:
    with at_precision(BITS), np.errstate(all="ignore"):
        try:
            run = _Interpreter(0)
            constants = [box_of(np.asarray(x), np.asarray(x)) for x in closed.consts]
            return run.evaluate(closed.jaxpr, constants, values)
        except Undecided:
            return None


def known_primitives() -> set[str]:
    """Everything that the interpreter of balls has a rule for."""
    return {*RULES, *CALLS, *_Interpreter(0)._control}


def _exactly(exact: Callable[..., Any], point: tuple[Any, ...]) -> list[Any]:
    number = np.vectorize(lambda x: MP.mpf(x) if isinstance(x, float) else x, otypes=[object])
    results = exact(*(number(x.astype(object)) for x in point))
    return list(results) if isinstance(results, (tuple, list)) else [results]


def _wrong(exact: Any, by_jax: Any, ball: Value, box: Value | None, *, rounded: bool) -> list[str]:
    """What an output's enclosures at a point and on the box around it have wrong."""
    expected, floats = np.asarray(exact), np.asarray(by_jax)
    wrong = []
    if ball.array.shape != floats.shape:
        wrong.append(f"is of shape {ball.array.shape}")
    for at in np.ndindex(floats.shape):
        value, here = expected[at], floats[at]
        entries = [(ball, ball.array[at])] + ([(box, box.array[at])] if box else [])
        for whole, entry in entries:
            told = "point" if whole is ball else "box"
            if floats.dtype != np.float64:
                good = _holds(whole, entry, here) and (whole is box or _known(entry, here))
            else:
                good = _holds_float(entry, told, value, here, rounded) and _is_narrow(entry, told)
            if whole.nonnegative and value < 0:
                wrong.append(f"{told}{at}: called nonnegative, is {value}")
            if not good:
                wrong.append(f"{told}{at}: {entry} does not fit {value} ({here})")
    return wrong


def _is_finite(value: Value) -> bool:
    return value.array.dtype != object or all(ball.is_finite() for ball in value.array.ravel())


def _known(entry: Any, here: Any) -> bool:
    return entry != UNKNOWN if isinstance(here, np.bool_) else not isinstance(entry, arb)


def _holds(whole: Value, entry: Any, here: Any) -> bool:
    """Integers and truths: JAX's own is exact."""
    if isinstance(here, np.bool_):
        return bool(entry in (UNKNOWN, TRUE if here else FALSE))
    if isinstance(entry, arb):
        return bool(entry.contains(arb(int(here))))
    return bool(whole.array.dtype == here.dtype and entry == here)


def _holds_float(entry: arb, told: str, value: Any, here: Any, rounded: bool) -> bool:
    """What is not a number has no enclosure; else the exact value is inside, JAX's beside it."""
    if not MP.isfinite(value):
        return not entry.is_finite()
    if not entry.is_finite():
        return told == "box"
    with at_precision(600):
        close = arb(float(here), NEAR * (1 + abs(float(here)))) if np.isfinite(here) else None
        inside = entry.overlaps(as_ball(value)) if rounded else entry.contains(arb(float(value)))
        return bool(inside and (close is None or entry.overlaps(close)))


def _is_narrow(entry: arb, told: str) -> bool:
    if told == "box" or not entry.is_finite():
        return True
    return float(entry.rad()) <= NARROW * (1 + abs(float(entry.mid())))
