"""Numbers shown to a reader are rounded to the safe side: bounds up, guarantees down."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal


def _rounded(value: float, digits: int, mode: str) -> str:
    if not math.isfinite(value):
        return str(value)
    context = Context(prec=digits, rounding=mode)
    return f"{context.plus(Decimal(repr(float(value)))):.{digits}g}"


def round_up(value: float, digits: int = 3) -> str:
    """`value` to `digits` significant digits, never below it: how an upper bound is shown.

    >>> round_up(112.01)
    '113'
    """
    return _rounded(value, digits, ROUND_CEILING)


def round_down(value: float, digits: int = 3) -> str:
    """`value` to `digits` significant digits, never above it: how a lower bound is shown.

    >>> round_down(0.98765)
    '0.987'
    """
    return _rounded(value, digits, ROUND_FLOOR)
