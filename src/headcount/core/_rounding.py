"""Numbers shown to a reader are rounded to the safe side: bounds up, guarantees down."""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal


def _rounded(value: float, digits: int, mode: str) -> str:
    if not math.isfinite(value):
        return str(value)
    context = Context(prec=digits, rounding=mode)
    return f"{float(context.plus(Decimal(repr(float(value))))):.{digits}g}"


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


def ordered(left: float, right: float, digits: int = 3) -> tuple[str, str]:
    """Two numbers with as many digits as it takes that they order as written as they do in truth.

    >>> ordered(0.1713, 0.1714)
    ('0.1713', '0.1714')
    """
    for precision in range(digits, 18):
        shown = [_rounded(value, precision, ROUND_HALF_EVEN) for value in (left, right)]
        if not all(map(math.isfinite, (left, right))):
            break
        a, b = map(float, shown)
        if (a < b) == (left < right) and (a > b) == (left > right):
            break
    return shown[0], shown[1]


def interval_text(low: float, high: float) -> str:
    """[low, high], rounded outwards, with as many digits as their distance deserves.

    >>> interval_text(0.01234561, 0.01234609), interval_text(-2.1e-17, 3.4e-17)
    ('[0.0123456, 0.0123461]', '[-2.1e-17, 3.4e-17]')
    """
    for digits in range(2, 17):
        ends = round_down(low, digits), round_up(high, digits)
        if not float(ends[1]) - float(ends[0]) > 1.1 * (high - low):
            break
    return f"[{ends[0]}, {ends[1]}]"
