"""Dual numbers over any kind of number: first derivatives for slow twins, without JAX.

x + s eps with eps^2 = 0. A twin written for `Arithmetic` runs on them unchanged: the slope of the
result is the derivative along the direction in which the arguments were given slope.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headcount.theory.slow import Arithmetic, Number


@dataclass(frozen=True, eq=False)
class Dual:
    """A value and its slope; plain numbers count as constants."""

    value: Number
    slope: Number

    def __add__(self, other: Any) -> Dual:
        if isinstance(other, Dual):
            return Dual(self.value + other.value, self.slope + other.slope)
        return Dual(self.value + other, self.slope)

    def __radd__(self, other: Any) -> Dual:
        return Dual(other + self.value, self.slope)

    def __neg__(self) -> Dual:
        return Dual(-self.value, -self.slope)

    def __sub__(self, other: Any) -> Dual:
        return self + (-other)

    def __rsub__(self, other: Any) -> Dual:
        return Dual(other - self.value, -self.slope)

    def __mul__(self, other: Any) -> Dual:
        if isinstance(other, Dual):
            slope = self.slope * other.value + self.value * other.slope
            return Dual(self.value * other.value, slope)
        return Dual(self.value * other, self.slope * other)

    def __rmul__(self, other: Any) -> Dual:
        return Dual(other * self.value, other * self.slope)

    def __truediv__(self, other: Any) -> Dual:
        if isinstance(other, Dual):
            value = self.value / other.value
            return Dual(value, (self.slope - value * other.slope) / other.value)
        return Dual(self.value / other, self.slope / other)

    def __rtruediv__(self, other: Any) -> Dual:
        value = other / self.value
        return Dual(value, -(value * self.slope) / self.value)

    def __pow__(self, exponent: int) -> Dual:
        slope = exponent * self.value ** (exponent - 1) * self.slope
        return Dual(self.value**exponent, slope)


def duals(num: Arithmetic) -> Arithmetic:
    """Arithmetic on dual numbers over `num`; what has kinks (max, |x|, rounding) is refused."""

    def lift(
        function: Callable[[Number], Number], slope: Callable[[Number, Number], Number]
    ) -> Callable[[Any], Dual]:
        """`slope(x, f(x))` is the derivative."""

        def lifted(x: Any) -> Dual:
            if not isinstance(x, Dual):
                return Dual(function(x), num.number(0))
            value = function(x.value)
            return Dual(value, slope(x.value, value) * x.slope)

        return lifted

    def bell(x: Number) -> Number:
        return 2 / num.sqrt(num.pi) * num.exp(-x * x)

    return Arithmetic(
        number=lambda x: Dual(num.number(x), num.number(0)),
        exp=lift(num.exp, lambda x, y: y),
        log=lift(num.log, lambda x, y: 1 / x),
        sqrt=lift(num.sqrt, lambda x, y: 1 / (2 * y)),
        tanh=lift(num.tanh, lambda x, y: 1 - y * y),
        sin=lift(num.sin, lambda x, y: num.cos(x)),
        cos=lift(num.cos, lambda x, y: -num.sin(x)),
        atan=lift(num.atan, lambda x, y: 1 / (1 + x * x)),
        erf=lift(num.erf, lambda x, y: bell(x)),
        erfc=lift(num.erfc, lambda x, y: -bell(x)),
        root=lift(num.root, lambda x, y: 1 / (2 * y)),
        largest=_refused,
        smallest=_refused,
        absolute=_refused,
        between=_refused,
        whole=_refused,
        roughly=lambda x: num.roughly(x.value if isinstance(x, Dual) else x),
        pi=num.pi,
        e=num.e,
    )


def _refused(*arguments: Any) -> Any:
    raise TypeError("this function has no derivative everywhere: not for dual numbers")
