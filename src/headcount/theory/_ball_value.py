"""What the ball interpreter hands from one primitive to the next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

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


def every(values: tuple[Value, ...]) -> bool:
    """Whether none of them can be negative."""
    return all(value.nonnegative for value in values)
