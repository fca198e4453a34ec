"""Quadrature in slow arithmetic, for twins whose fast side integrates with other rules."""

from __future__ import annotations

from collections.abc import Callable

from ...theory.slow import Arithmetic, Number

Integrand = Callable[[Number], Number]


def over_interval(num: Arithmetic, f: Integrand, length: Number, points: int = 70) -> Number:
    """The integral of f over [0, length] by the tanh-sinh rule, which bears kinks at the ends."""
    half, step = length / 2, num.number("0.05")
    terms = []
    for k in range(-points, points + 1):
        up, down = num.exp(k * step), num.exp(-k * step)
        inner = num.tanh(num.pi / 4 * (up - down))
        weight = num.pi / 4 * (up + down) * (1 - inner * inner)
        terms.append(weight * f(half * (1 + inner)))
    return half * step * num.total(terms)


def over_line(num: Arithmetic, f: Integrand) -> Number:
    """Twice the integral over the half-line of an even f that decays like exp(-x^2/2)."""
    step = num.number("0.2")
    return step * num.total([f(num.number(0)), *(2 * f(k * step) for k in range(1, 50))])


def normal_density(num: Arithmetic, x: Number) -> Number:
    """exp(-x^2/2) / sqrt(2 pi)."""
    return num.exp(-x * x / 2) / num.sqrt(2 * num.pi)
