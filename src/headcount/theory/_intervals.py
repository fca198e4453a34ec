"""Intervals by the thousand: float64 arrays of lower and upper ends, rounded outwards.

The first axis counts boxes (or has length one, for what is the same in all). Sums are directed by
their exact error; products, quotients and roots are moved by one unit in the last place where they
may be inexact; elementary functions by `LIBM` relatively. NaN says that nothing is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

LIBM = 2.0**-46
"""64 units in the last place: those of NumPy and SciPy are off by a few."""
_TINY = 1e-290


@dataclass(frozen=True, eq=False)
class Interval:
    """Lower and upper ends; `nonnegative` says that exact values cannot be below zero."""

    lo: Any
    hi: Any
    nonnegative: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one box's array."""
        return self.lo.shape[1:]

    def moved(self, move: Callable[[Any], Any]) -> Interval:
        """The same entries in other places."""
        return Interval(move(self.lo), move(self.hi), self.nonnegative)


def alike(x: Interval, y: Interval) -> tuple[Interval, Interval]:
    """A scalar beside an array gets axes of length one."""
    if x.lo.ndim < y.lo.ndim:
        return x.moved(lambda a: a.reshape(len(a), *[1] * (y.lo.ndim - 1))), y
    if y.lo.ndim < x.lo.ndim:
        return x, y.moved(lambda a: a.reshape(len(a), *[1] * (x.lo.ndim - 1)))
    return x, y


def _sum(x: Any, y: Any, towards: float) -> Any:
    """Rounded in one direction, and exact where it is: the error of a sum is a float64."""
    total = x + y
    part = total - x
    error = (x - (total - part)) + (y - part)
    wrong = ~((error >= 0) if towards < 0 else (error <= 0))
    return np.where(wrong, np.nextafter(total, towards), total)


def add(x: Interval, y: Interval) -> Interval:
    """x + y."""
    x, y = alike(x, y)
    sign = x.nonnegative and y.nonnegative
    return Interval(_sum(x.lo, y.lo, -np.inf), _sum(x.hi, y.hi, np.inf), sign)


def neg(x: Interval) -> Interval:
    """-x."""
    return Interval(-x.hi, -x.lo)


def sub(x: Interval, y: Interval) -> Interval:
    """x - y; of a quantity and itself it is zero."""
    if x is y:
        zero = np.where(np.isfinite(x.lo) & np.isfinite(x.hi), 0.0, np.nan)
        return Interval(zero, zero, True)
    return add(x, neg(y))


def _rounded(value: Any, zero: Any, exact: Any, towards: float) -> Any:
    """Moved by one unit, unless an operand is zero, or all is exact: no underflow, no overflow."""
    sure = zero | (exact & (np.abs(value) > _TINY) & np.isfinite(value))
    return np.where(sure, value, np.nextafter(value, towards))


def _simple(x: Any) -> Any:
    """Whether a product with x is exact but for underflow: powers of two (of constants), +-1."""
    return np.abs(np.frexp(x)[0]) == 0.5 if len(x) == 1 else np.abs(x) == 1


def _ends(
    work: Any, x: Interval, y: Interval, sure: Callable[[Any, Any], tuple[Any, Any]]
) -> Interval:
    """The least and the largest of what the four pairs of ends give.

    `sure` says of two operands whether the result is zero, and whether it is exact.
    """
    low = high = None
    for a in (x.lo, x.hi):
        for b in (y.lo, y.hi):
            value, known = work(a, b), sure(a, b)
            down, up = _rounded(value, *known, -np.inf), _rounded(value, *known, np.inf)
            low = down if low is None else np.minimum(low, down)
            high = up if high is None else np.maximum(high, up)
    return Interval(low, high)


def mul(x: Interval, y: Interval) -> Interval:
    """x y; a quantity times itself is a square."""
    if x is y:
        return square(x)
    x, y = alike(x, y)
    sure = lambda a, b: ((a == 0) | (b == 0), _simple(a) | _simple(b))  # noqa: E731
    if x.nonnegative and y.nonnegative:
        low = _rounded(x.lo * y.lo, *sure(x.lo, y.lo), -np.inf)
        high = _rounded(x.hi * y.hi, *sure(x.hi, y.hi), np.inf)
        return Interval(np.maximum(low, 0.0), high, True)
    return _ends(np.multiply, x, y, sure)


def div(x: Interval, y: Interval) -> Interval:
    """x / y; nothing is known where y may be zero."""
    x, y = alike(x, y)
    crosses = ~((y.lo > 0) | (y.hi < 0))
    y = Interval(np.where(crosses, np.nan, y.lo), np.where(crosses, np.nan, y.hi), y.nonnegative)
    found = _ends(np.divide, x, y, lambda a, b: (a == 0, _simple(b)))
    if x.nonnegative and y.nonnegative:
        return Interval(np.maximum(found.lo, 0.0), found.hi, True)
    return found


def absolute(x: Interval) -> Interval:
    """|x|."""
    low = np.maximum(np.maximum(x.lo, -x.hi), 0.0)
    return Interval(low, np.maximum(-x.lo, x.hi), True)


def square(x: Interval) -> Interval:
    """x^2."""
    size = absolute(x)
    low = _rounded(size.lo**2, size.lo == 0, _simple(size.lo), -np.inf)
    high = _rounded(size.hi**2, size.hi == 0, _simple(size.hi), np.inf)
    return Interval(np.maximum(low, 0.0), high, True)


def maximum(x: Interval, y: Interval) -> Interval:
    """The larger of both."""
    x, y = alike(x, y)
    sign = x.nonnegative or y.nonnegative
    return Interval(np.maximum(x.lo, y.lo), np.maximum(x.hi, y.hi), sign)


def minimum(x: Interval, y: Interval) -> Interval:
    """The smaller of both."""
    x, y = alike(x, y)
    sign = x.nonnegative and y.nonnegative
    return Interval(np.minimum(x.lo, y.lo), np.minimum(x.hi, y.hi), sign)


def _defined(down: Any, up: Any, sign: bool) -> Interval:
    """The ends of a function's values; where one of them has none, nothing is known.

    At some points of the box the function is not defined then, so no bound holds on all of it.
    """
    known = ~(np.isnan(down) | np.isnan(up))
    return Interval(np.where(known, down, np.nan), np.where(known, up, np.nan), sign)


def sqrt(x: Interval) -> Interval:
    """The root; nothing is known where x may be negative, unless it cannot be."""
    low = np.maximum(x.lo, 0.0) if x.nonnegative else x.lo
    down = _rounded(np.sqrt(low), low == 0, low == 1, -np.inf)
    up = _rounded(np.sqrt(x.hi), x.hi == 0, x.hi == 1, np.inf)
    return _defined(np.maximum(down, 0.0), up, True)


def _power(x: Any, n: int, towards: float) -> Any:
    value = x**n
    wide = value + math.copysign(1, towards) * (n * LIBM * np.abs(value) + 1e-300)
    return np.where((x == 0) | (np.abs(x) == 1), value, wide)


def integer_power(x: Interval, n: int) -> Interval:
    """x^n for a whole n."""
    if n < 0:
        one = np.ones((1, *[1] * len(x.shape)))
        return div(Interval(one, one, True), integer_power(x, -n))
    if n == 2:
        return square(x)
    if n % 2 == 0:
        size = absolute(x)
        low = np.maximum(_power(size.lo, n, -np.inf), 0.0)
        return Interval(low, _power(size.hi, n, np.inf), True)
    return Interval(_power(x.lo, n, -np.inf), _power(x.hi, n, np.inf), x.nonnegative)


def growing(
    function: Callable[[Any], Any], exact: float, low: float = -np.inf, high: float = np.inf
) -> Callable[[Interval], Interval]:
    """An increasing function with values from `low` to `high`; it is exact at one argument."""

    def apply(x: Interval) -> Interval:
        below, above = function(x.lo), function(x.hi)
        down = below - (LIBM * np.abs(below) + 1e-300)
        up = above + (LIBM * np.abs(above) + 1e-300)
        down = np.where(x.lo == exact, below, np.maximum(down, low))
        up = np.where(x.hi == exact, above, np.minimum(up, high))
        sign = low >= 0 or (exact == 0 and low <= 0 and x.nonnegative)
        return _defined(np.maximum(down, 0.0) if sign else down, up, sign)

    return apply


def logistic(x: Any) -> Any:
    """1/(1 + exp(-x))."""
    return special.expit(x)


def cosine(x: Interval) -> Interval:
    """cos x: its ends, and +-1 where a multiple of pi may lie between them."""
    first = np.ceil((x.lo - 1e-6) / np.pi)
    last = np.floor((x.hi + 1e-6) / np.pi)
    inside = last - first
    even = (inside >= 1) | ((inside == 0) & (first % 2 == 0))
    odd = (inside >= 1) | ((inside == 0) & (first % 2 != 0))
    ends = np.cos(x.lo), np.cos(x.hi)
    low = np.where(odd, -1.0, np.maximum(np.minimum(*ends) - 1e-14, -1.0))
    high = np.where(even, 1.0, np.minimum(np.maximum(*ends) + 1e-14, 1.0))
    far = ~((np.abs(x.lo) < 1e4) & (np.abs(x.hi) < 1e4))
    far_low = np.where(np.isfinite(x.lo) & np.isfinite(x.hi), -1.0, np.nan)
    return Interval(np.where(far, far_low, low), np.where(far, -far_low, high))


_QUARTER = Interval(np.array([1.5707963267948963]), np.array([1.570796326794897]), True)


def sine(x: Interval) -> Interval:
    """sin x."""
    return cosine(sub(x, _QUARTER))


def hull(x: Interval, y: Interval) -> Interval:
    """Everything between both."""
    x, y = alike(x, y)
    sign = x.nonnegative and y.nonnegative
    return Interval(np.minimum(x.lo, y.lo), np.maximum(x.hi, y.hi), sign)


def chosen(which: Any, x: Interval, y: Interval) -> Interval:
    """x where `which` is 0, y where it is 2, and both where it is 1."""
    x, y = alike(x, y)
    if which.ndim < x.lo.ndim:
        which = which.reshape(len(which), *[1] * (x.lo.ndim - 1))
    both = hull(x, y)
    low = np.where(which == 0, x.lo, np.where(which == 2, y.lo, both.lo))
    high = np.where(which == 0, x.hi, np.where(which == 2, y.hi, both.hi))
    return Interval(low, high, both.nonnegative)


def total(x: Interval, axes: tuple[int, ...], step: Callable[..., Interval], start: float) -> Any:
    """A reduction over axes of one box's array."""
    rows = folded(x, axes)
    if rows.lo.shape[-1] == 0:
        zero = np.full(rows.lo.shape[:-1], start)
        return Interval(zero, zero, start >= 0)
    found = rows.moved(lambda a: a[..., 0])
    for k in range(1, rows.lo.shape[-1]):
        found = step(found, Interval(rows.lo[..., k], rows.hi[..., k], rows.nonnegative))
    return found


def folded(x: Interval, axes: tuple[int, ...]) -> Interval:
    """The axes moved to the end and joined into one."""
    kept = [k for k in range(len(x.shape)) if k not in axes]
    count = math.prod(x.shape[k] for k in axes)

    def move(a: Any) -> Any:
        moved = np.transpose(a, [0, *(k + 1 for k in kept), *(k + 1 for k in axes)])
        return moved.reshape(len(a), *(a.shape[k + 1] for k in kept), count)

    return x.moved(move)


def less(x: Interval, y: Interval) -> Any:
    """x < y: 0 no, 1 open, 2 yes."""
    x, y = alike(x, y)
    return np.where(x.hi < y.lo, 2, np.where(x.lo >= y.hi, 0, 1)).astype(np.int8)


def equal(x: Interval, y: Interval) -> Any:
    """x = y."""
    x, y = alike(x, y)
    same = (x.lo == x.hi) & (y.lo == y.hi) & (x.lo == y.lo)
    apart = (x.hi < y.lo) | (x.lo > y.hi)
    return np.where(same, 2, np.where(apart, 0, 1)).astype(np.int8)


FUNCTIONS: dict[str, Callable[[Interval], Interval]] = {
    "exp": growing(np.exp, 0.0, low=0.0),
    "expm1": growing(np.expm1, 0.0, low=-1.0),
    "log": growing(np.log, 1.0),
    "log1p": growing(np.log1p, 0.0),
    "tanh": growing(np.tanh, 0.0, -1.0, 1.0),
    "erf": growing(special.erf, 0.0, -1.0, 1.0),
    "atan": growing(np.arctan, 0.0, -2.0, 2.0),
    "sinh": growing(np.sinh, 0.0),
    "asinh": growing(np.arcsinh, 0.0),
    "cbrt": growing(np.cbrt, 0.0),
    "logistic": growing(logistic, np.nan, 0.0, 1.0),
    "neg": neg,
    "abs": absolute,
    "square": square,
    "sqrt": sqrt,
    "cos": cosine,
    "sin": sine,
}
