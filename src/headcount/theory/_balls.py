"""Balls: numbers with a proved error bound, on python-flint's `arb`.

A ball holds every value that a quantity can have. `arb` compares silently: `x < y` is False both
when y <= x and when nobody knows. `Ball` is `arb` for code that was written for plain numbers
(the slow twins): the same operators, but a comparison that overlapping balls leave open raises
`Undecided`, and nothing turns a ball back into a float unasked.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import flint
from flint import arb

from ..core import BadArgument, check_count

SHORT_BITS = 20
"""A float64 with at most this many significant bits is taken to be meant exactly."""

FALSE, UNKNOWN, TRUE = 0, 1, 2
"""Three-valued logic: `and` is the minimum, `or` the maximum, `not` is 2 - x."""


class Undecided(ArithmeticError):
    """The enclosures are too wide for a decision that the computation needs."""


@contextmanager
def at_precision(bits: int) -> Iterator[None]:
    """Compute with `bits` bits inside; the precision outside is restored."""
    check_count("bits", bits, least=16)
    with flint.ctx.workprec(bits):
        yield


def is_short(value: float) -> bool:
    """Whether `value` is k 2^e with |k| < 2^SHORT_BITS: an integer, 0.5, 1e6, not 0.1 or pi.

    >>> is_short(0.375), is_short(1e-3)
    (True, False)
    """
    numerator, _ = Fraction(value).as_integer_ratio()
    trailing = (numerator & -numerator).bit_length() - 1 if numerator else 0
    return (abs(numerator) >> trailing).bit_length() <= SHORT_BITS


def less(x: arb, y: arb) -> int:
    """x < y, three-valued."""
    if x < y:
        return TRUE
    return FALSE if x >= y else UNKNOWN


def equal(x: arb, y: arb) -> int:
    """x == y, three-valued: TRUE only for the same exact number."""
    if x == y:
        return TRUE
    return UNKNOWN if x.overlaps(y) else FALSE


def nonnegative(x: arb) -> arb:
    """The part of x at or above zero, for a quantity that cannot be negative.

    A ball wholly below zero has no such part and stays as it is.
    """
    kept = x.is_exact() or x < 0 or not x.contains(0)
    return x if kept else x.nonnegative_part()


def larger(x: Any, y: Any) -> Any:
    """The larger of two balls, or of a ball and a term of a program."""
    return y.max(x) if isinstance(x, arb) else x.max(y)


def angle(y: Any, x: Any) -> Any:
    """atan2 of two balls, or of a ball and a term."""
    if isinstance(y, arb) and isinstance(x, arb):
        return arb.atan2(y, x)
    return x.tape.lifted(y).atan2(x) if isinstance(y, arb) else y.atan2(x)


def smaller(x: Any, y: Any) -> Any:
    """The smaller of two."""
    return y.min(x) if isinstance(x, arb) else x.min(y)


def square(x: arb) -> arb:
    """x^2, never below zero."""
    return (x * x).nonnegative_part()


def absolute(x: arb) -> arb:
    """|x|, never below zero."""
    return abs(x).nonnegative_part()


def power(x: arb, exponent: int) -> arb:
    """x^exponent for a whole exponent; `arb`'s own power is undefined for balls around zero."""
    if exponent < 0:
        return 1 / power(x, -exponent)
    if exponent == 0:
        return arb(1)
    half = power(x, exponent // 2)
    return x * square(half) if exponent % 2 else square(half)


def root(x: arb) -> arb:
    """The square root of a quantity that cannot be negative."""
    return nonnegative(x).sqrt()


def hull(low: arb, high: arb) -> arb:
    """A ball around everything between the two."""
    if isinstance(low, arb) and not isinstance(high, arb):  # a term takes a ball, not the reverse
        low, high = high, low
    return low if low.is_exact() and low == high else low.union(high)


def nearest(x: arb) -> arb:
    """x rounded to the nearest whole number, ties to even: monotone, so the ends suffice."""
    if not x.is_finite():
        return x if x.is_exact() else arb.nan()
    low, high = (round(fraction(end)) for end in (x.lower(), x.upper()))
    return hull(arb(low), arb(high))


def fraction(x: arb) -> Fraction:
    """An exact ball as a rational number."""
    mantissa, exponent = x.man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def exact_number(value: float) -> arb:
    """A float64 or an integer as the exact ball; NaN is refused."""
    if value != value:
        raise BadArgument("number", value, "is not a number", fix="give finite values")
    return arb(value)


def whole(x: arb) -> int:
    """The integer that x is known to be."""
    found = x.unique_fmpz() if x.is_finite() else None
    if found is None or not x.is_exact():
        raise Undecided(f"{x.str(10)} is not known to be a whole number")
    return int(found)


def roughly(x: arb) -> float:
    """The middle as a float, to choose where to look; never part of a result."""
    if not x.is_finite():
        raise Undecided("a value that may be infinite has no middle")
    return float(x.mid())


def _decided(truth: int, x: arb, relation: str, y: Any) -> bool:
    if truth == UNKNOWN:
        shown = y.str(10) if isinstance(y, arb) else y
        raise Undecided(f"whether {x.str(10)} {relation} {shown}")
    return truth == TRUE


def _operand(value: Any) -> Any:
    """What `arb` may combine with a ball: a ball, an integer, a float that is exact; else None."""
    if type(value) is Ball:
        return value.arb
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        if not is_short(value):
            raise TypeError(f"{value!r} is rounded: write num.number with a string or a quotient")
        return arb(value)
    return None


class Ball:
    """`arb` with the operators of a number; an open comparison raises `Undecided`."""

    __slots__ = ("arb",)
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: arb) -> None:
        self.arb = value

    def __repr__(self) -> str:
        return f"Ball({self.arb.str(20)})"

    def __add__(self, other: Any) -> Ball:
        if type(other) is Ball:
            return Ball(self.arb + other.arb)
        operand = _operand(other)
        return NotImplemented if operand is None else Ball(self.arb + operand)

    def __radd__(self, other: Any) -> Ball:
        operand = _operand(other)
        return NotImplemented if operand is None else Ball(operand + self.arb)

    def __sub__(self, other: Any) -> Ball:
        if type(other) is Ball:
            return Ball(self.arb - other.arb)
        operand = _operand(other)
        return NotImplemented if operand is None else Ball(self.arb - operand)

    def __rsub__(self, other: Any) -> Ball:
        operand = _operand(other)
        return NotImplemented if operand is None else Ball(operand - self.arb)

    def __mul__(self, other: Any) -> Ball:
        if other is self:
            return Ball(square(self.arb))
        if type(other) is Ball:
            return Ball(self.arb * other.arb)
        operand = _operand(other)
        return NotImplemented if operand is None else Ball(self.arb * operand)

    def __rmul__(self, other: Any) -> Ball:
        operand = _operand(other)
        return NotImplemented if operand is None else Ball(operand * self.arb)

    def __truediv__(self, other: Any) -> Ball:
        if type(other) is Ball:
            return Ball(self.arb / other.arb)
        operand = _operand(other)
        return NotImplemented if operand is None else Ball(self.arb / operand)

    def __rtruediv__(self, other: Any) -> Ball:
        operand = _operand(other)
        return NotImplemented if operand is None else Ball(operand / self.arb)

    def __pow__(self, exponent: int) -> Ball:
        return Ball(power(self.arb, exponent)) if isinstance(exponent, int) else NotImplemented

    def __neg__(self) -> Ball:
        return Ball(-self.arb)

    def __pos__(self) -> Ball:
        return self

    def __abs__(self) -> Ball:
        return Ball(absolute(self.arb))

    def __round__(self) -> int:
        return whole(nearest(self.arb))

    def __bool__(self) -> bool:
        return self != 0

    def __lt__(self, other: Any) -> bool:
        y = arb(_operand(other))
        return _decided(less(self.arb, y), self.arb, "<", y)

    def __gt__(self, other: Any) -> bool:
        y = arb(_operand(other))
        return _decided(less(y, self.arb), self.arb, ">", y)

    def __le__(self, other: Any) -> bool:
        return not self > other

    def __ge__(self, other: Any) -> bool:
        return not self < other

    def __eq__(self, other: object) -> bool:
        operand = _operand(other)
        if operand is None:
            return NotImplemented
        y = arb(operand)
        return _decided(equal(self.arb, y), self.arb, "==", y)

    def __ne__(self, other: object) -> bool:
        return not self == other


class Order(enum.StrEnum):
    """How two quantities lie, as far as their enclosures say."""

    ABOVE = "above"
    BELOW = "below"
    EQUAL = "equal"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Separation:
    """The order of two quantities, the precision that showed it, and the last enclosures."""

    order: Order
    bits: int
    left: arb | None = None
    right: arb | None = None
    reason: str = ""


def separate(
    compute: Callable[[int], tuple[Any, Any]], lowest: int = 64, highest: int = 4096
) -> Separation:
    """Raise the precision until `compute(bits)`, a pair of balls, is ordered.

    `compute` runs at that precision. EQUAL needs two exact balls: the order of equal quantities
    with inexact enclosures stays undecided at every precision. `highest` is tried last.
    """
    check_count("lowest", lowest, least=16)
    check_count("highest", highest, least=lowest)
    bits, last = lowest, Separation(Order.UNDECIDED, lowest)
    while True:
        with at_precision(bits):
            last = _attempt(compute, bits)
        if last.order is not Order.UNDECIDED or bits == highest:
            return last
        bits = min(2 * bits, highest)


def _attempt(compute: Callable[[int], tuple[Any, Any]], bits: int) -> Separation:
    try:
        pair = compute(bits)
    except Undecided as error:
        return Separation(Order.UNDECIDED, bits, reason=str(error))
    left, right = (side.arb if type(side) is Ball else arb(side) for side in pair)
    order = order_of(left, right)
    reason = ""
    if order is Order.UNDECIDED:
        wide = [n for n, x in (("left", left), ("right", right)) if not x.is_finite()]
        reason = f"{' and '.join(wide)} not finite" if wide else "the enclosures overlap"
    return Separation(order, bits, left, right, reason)


def order_of(left: arb, right: arb) -> Order:
    """ABOVE, BELOW or EQUAL where the two balls show it."""
    if left > right:
        return Order.ABOVE
    if left < right:
        return Order.BELOW
    return Order.EQUAL if left == right else Order.UNDECIDED
