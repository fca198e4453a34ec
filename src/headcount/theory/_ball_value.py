"""What the ball interpreter hands from one primitive to the next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _ball_array as arrays
from ._ball_array import Balls

Equation = Any
"""An equation of a jaxpr: `primitive`, `params`, `invars`, `outvars`."""


@dataclass(frozen=True, eq=False)
class Value:
    """An array of balls, integers or truth values.

    `nonnegative` says that the exact values cannot be negative, by the way they were computed:
    rounding may still push the lower end of a ball below zero, and a square root needs to know.
    Two operands are the same quantity exactly when they are the same object.
    """

    array: Balls
    nonnegative: bool = False
    missing: str = ""
    """Why there is no enclosure: whoever uses the value gets no answer."""


Rule = Callable[..., Any]
"""rule(equation, *values) is the value of the equation, or a list of several."""


def kind_of(variable: Any) -> str:
    """NumPy's letter for the element type of a jaxpr variable: "f", "i", "u" or "b"."""
    return np.dtype(variable.aval.dtype).kind


def fitted(value: Value, variable: Any) -> Value:
    """The value in the element type of its variable, where integers wrap around as JAX's do."""
    dtype = variable.aval.dtype
    if dtype == np.float64 or dtype == np.bool_:
        return value
    if not isinstance(dtype, np.dtype) or dtype.kind not in "iu":
        raise NotImplementedError(
            f"numbers of type {dtype}: only float64 and integers are enclosed"
        )
    array = arrays.wrapped(value.array, dtype)
    sign = arrays.counts(array)
    unchanged = array is value.array and sign == value.nonnegative
    return value if unchanged else Value(array, sign)


def every(values: tuple[Value, ...]) -> bool:
    """Whether none of them can be negative."""
    return all(value.nonnegative for value in values)
