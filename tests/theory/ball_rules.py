"""Equations by hand: a rule of the ball interpreter is asked without tracing anything."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from flint import arb

from headcount.theory.balls import RULES, Value, hull

_KINDS = {"f": np.float64, "i": np.int64, "b": np.bool_}


def interval(low: float, high: float) -> arb:
    """A ball around [low, high]."""
    return hull(arb(low), arb(high))


def balls(*entries: Any) -> Any:
    """An array of balls: a pair is an interval."""
    made = [interval(*e) if isinstance(e, tuple) else arb(float(e)) for e in entries]
    return np.array(made, dtype=object)


def floats(*entries: Any, nonnegative: bool = False) -> Value:
    return Value(balls(*entries), nonnegative)


def counts(*entries: int, nonnegative: bool = False) -> Value:
    return Value(np.array(entries, dtype=np.int64), nonnegative)


def truths(*entries: int) -> Value:
    return Value(np.array(entries, dtype=np.int8))


def variable(kind: str, shape: tuple[int, ...] = ()) -> Any:
    return SimpleNamespace(aval=SimpleNamespace(dtype=np.dtype(_KINDS[kind]), shape=shape))


def kind(value: Value) -> str:
    return {"O": "f", "i": "i"}[value.array.dtype.kind] if value.array.dtype != np.int8 else "b"


def apply(name: str, *values: Value, into: str = "", shape: Any = None, **params: Any) -> Any:
    """The rule `name` on values. `of` are their kinds, for balls that stand for integers."""
    of = params.pop("of", None) or "".join(kind(value) for value in values)
    into = into or (of[-1] if of else "f")
    params |= {} if shape is None else {"shape": shape}
    shape = values[0].array.shape if shape is None else shape
    equation = SimpleNamespace(
        primitive=SimpleNamespace(name=name),
        params=params,
        invars=[variable(letter, v.array.shape) for letter, v in zip(of, values, strict=True)],
        outvars=[variable(into, shape)],
    )
    return RULES[name](equation, *values)


def middles(value: Value) -> Any:
    """The middles of balls as floats, other arrays as they are."""
    if value.array.dtype != object:
        return value.array.tolist()
    return np.vectorize(lambda b: float(b.mid()), otypes=[float])(value.array).tolist()


def ends(ball: arb) -> tuple[float, float]:
    """The ends of a ball, rounded to what is meant."""
    return round(float(ball.lower()), 6), round(float(ball.upper()), 6)
