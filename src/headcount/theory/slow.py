"""Slow, independent arithmetic for rechecking: plain loops over plain numbers.

Written once for every kind of number: Python floats (`FLOATS`), balls with proved error bounds
(`balls(bits)`) and mpmath (`precise()`). Nothing here touches JAX or the code that a certificate
was found with.

A slow twin that is to run on balls follows four rules. It takes `num.largest`, `num.smallest`,
`num.positive_part` and `num.between` where a plain number would take max, min or an average; it
takes `num.root` for the square root of what cannot be negative; it branches on a number only
where overlapping balls may stop it (`Undecided`); and it writes rounded constants as
`num.number("0.05")` or as quotients, never as Python floats.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..core import BadArgument

Number = Any
Vector = Sequence[Number]
Matrix = Sequence[Sequence[Number]]


@dataclass(frozen=True)
class Arithmetic:
    """The elementary functions of one kind of number."""

    number: Callable[[Any], Number]
    exp: Callable[[Number], Number]
    log: Callable[[Number], Number]
    sqrt: Callable[[Number], Number]
    tanh: Callable[[Number], Number]
    sin: Callable[[Number], Number]
    cos: Callable[[Number], Number]
    atan: Callable[[Number], Number]
    erf: Callable[[Number], Number]
    erfc: Callable[[Number], Number]
    largest: Callable[[Iterable[Number]], Number]
    smallest: Callable[[Iterable[Number]], Number]
    absolute: Callable[[Number], Number]
    root: Callable[[Number], Number]
    """The square root of what cannot be negative: a ball is cut at zero first."""
    between: Callable[[Number, Number], Number]
    """A number known to lie between the two: a ball around both, else their mean."""
    whole: Callable[[Number], int]
    """The integer that a number is; balls that are not known to be one raise `Undecided`."""
    roughly: Callable[[Number], float]
    """A float near the number, to choose where to look; never part of a result."""
    pi: Number
    e: Number

    def positive_part(self, x: Number) -> Number:
        """max(x, 0)."""
        return self.largest([x, self.number(0)])

    def total(self, values: Sequence[Number]) -> Number:
        """The sum, starting from this kind's zero."""
        result = self.number(0)
        for value in values:
            result = result + value
        return result


_NAMES = ("exp", "log", "sqrt", "tanh", "sin", "cos", "atan", "erf", "erfc")


def _plain(functions: Any, number: Callable[[Any], Number]) -> Arithmetic:
    """Numbers that are rounded: those of `math`, or of a context of mpmath."""

    def whole(x: Number) -> int:
        if number(round(x)) != x:
            raise ValueError(f"{x} is not a whole number")
        return round(x)

    return Arithmetic(
        number=number,
        **{name: getattr(functions, name) for name in _NAMES},
        largest=max,
        smallest=min,
        absolute=abs,
        root=lambda x: functions.sqrt(max(x, number(0))),
        between=lambda low, high: (low + high) / 2,
        whole=whole,
        roughly=float,
        pi=+functions.pi,
        e=+functions.e,
    )


FLOATS = _plain(math, float)


@contextmanager
def balls(bits: int = 200) -> Iterator[Arithmetic]:
    """Balls at `bits` bits: every result encloses the exact value.

    Operators read python-flint's precision when they run, so all of a computation belongs inside
    the context; the precision outside is restored.

    >>> with balls(100) as num:
    ...     third = num.number(1) / 3
    ...     bool(third * 3 > num.number("0.999")), num.sqrt(num.number(4)) == 2
    (True, True)
    """
    from ._slow_balls import arithmetic, at_precision  # python-flint takes time to load

    with at_precision(bits):
        yield arithmetic()


def precise(digits: int = 50) -> Arithmetic:
    """mpmath at `digits` digits, in a context of its own."""
    import mpmath

    context = mpmath.mp.clone()
    context.dps = digits
    return _plain(context, context.mpf)


def dot(x: Vector, y: Vector) -> Number:
    """sum_k x_k y_k."""
    total = x[0] * y[0]
    for a, b in zip(x[1:], y[1:], strict=True):
        total = total + a * b
    return total


def norm(num: Arithmetic, x: Vector) -> Number:
    """The Euclidean norm."""
    return num.root(num.total([entry**2 for entry in x]))


def flat(matrix: Matrix) -> list[Number]:
    """The entries of a matrix, row by row."""
    return [entry for row in matrix for entry in row]


def flattened(values: Any) -> list[Any]:
    """The numbers in nested lists."""
    if isinstance(values, (list, tuple)):
        return [entry for part in values for entry in flattened(part)]
    return [values]


def below_axes(values: Any, axes: int) -> list[Any]:
    """The parts of nested lists below so many leading axes."""
    parts = [values]
    for _ in range(axes):
        parts = [part for several in parts for part in several]
    return parts


def times(matrix: Matrix, x: Vector) -> list[Number]:
    """Matrix times vector."""
    return [dot(row, x) for row in matrix]


def softmax(num: Arithmetic, z: Vector) -> list[Number]:
    """exp(z_t) / sum_s exp(z_s), shifted by about the largest entry: any shift is exact."""
    top = num.number(max(num.roughly(value) for value in z))
    weights = [num.exp(value - top) for value in z]
    total = sum(weights[1:], weights[0])
    return [weight / total for weight in weights]


@dataclass(frozen=True)
class NaiveActivation:
    """sigma, sigma', sigma'' and their bounds, for one kind of number."""

    value: Callable[[Number], Number]
    slope: Callable[[Number], Number]
    curvature: Callable[[Number], Number]
    bounds: tuple[Number, Number, Number]


_SCALED = re.compile(r"^([^*]+)\*([a-z-]+)\(([^*]+)\*x\)$")


def activation(num: Arithmetic, name: str) -> NaiveActivation:
    """The activation of this name, from its own formulas; "A*name(k*x)" is scaled."""
    match = _SCALED.match(name)
    if match is not None:
        A, k = num.number(match[1]), num.number(match[3])
        base = activation(num, match[2])
        s0, s1, s2 = base.bounds
        return NaiveActivation(
            lambda x: A * base.value(k * x),
            lambda x: A * k * base.slope(k * x),
            lambda x: A * k * k * base.curvature(k * x),
            (A * s0, A * k * s1, A * k * k * s2),
        )
    table = _table(num)
    if name not in table:
        raise BadArgument("activation", name, "has no slow twin", fix=f"use {', '.join(table)}")
    return table[name]


def _table(num: Arithmetic) -> dict[str, NaiveActivation]:
    one, two, three = num.number(1), num.number(2), num.number(3)
    root3 = num.sqrt(three)
    normal = num.sqrt(two / num.pi)

    def sech2(x: Number) -> Number:
        return one - num.tanh(x) ** 2

    def half_sech2(x: Number) -> Number:
        return sech2(x / two) / two

    return {
        "tanh": NaiveActivation(
            num.tanh, sech2, lambda x: -two * num.tanh(x) * sech2(x), (one, one, 4 / (3 * root3))
        ),
        "logistic": NaiveActivation(
            lambda x: (one + num.tanh(x / two)) / two,
            lambda x: half_sech2(x) / two,
            lambda x: -num.tanh(x / two) * half_sech2(x) / two,
            (one, one / 4, 1 / (6 * root3)),
        ),
        "centred-logistic": NaiveActivation(
            lambda x: num.tanh(x / two),
            half_sech2,
            lambda x: -num.tanh(x / two) * half_sech2(x),
            (one, one / 2, 1 / (3 * root3)),
        ),
        "sin": NaiveActivation(num.sin, num.cos, lambda x: -num.sin(x), (one, one, one)),
        "erf": NaiveActivation(
            num.erf,
            lambda x: two / num.sqrt(num.pi) * num.exp(-x * x),
            lambda x: -4 * x / num.sqrt(num.pi) * num.exp(-x * x),
            (one, two / num.sqrt(num.pi), num.sqrt(8 / (num.pi * num.e))),
        ),
        "erf-normal": NaiveActivation(
            lambda x: num.erf(x / num.sqrt(two)),
            lambda x: normal * num.exp(-x * x / 2),
            lambda x: -normal * x * num.exp(-x * x / 2),
            (one, normal, num.sqrt(two / (num.pi * num.e))),
        ),
        "arctan": NaiveActivation(
            num.atan,
            lambda x: one / (one + x * x),
            lambda x: -two * x / (one + x * x) ** 2,
            (num.pi / 2, one, 3 * root3 / 8),
        ),
    }


def quadrature(num: Arithmetic, integral: Number) -> Number:
    """An integral by a rule, with relative room of 1e-9 for the rule's own error.

    Rules here agree with each other to 1e-12: what is proved then does not rest on them.
    """
    room = abs(integral) * num.number("0.000000001")
    return num.between(integral - room, integral + room)
