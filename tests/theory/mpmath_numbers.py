"""mpmath as an independent kind of number: the reference for balls."""

from __future__ import annotations

import mpmath
from flint import arb

from headcount.theory.slow import Arithmetic


def precise(digits: int) -> Arithmetic:
    """mpmath at `digits` digits, in a context of its own."""
    context = mpmath.mp.clone()
    context.dps = digits
    return Arithmetic(
        number=context.mpf,
        exp=context.exp,
        log=context.log,
        sqrt=context.sqrt,
        tanh=context.tanh,
        sin=context.sin,
        cos=context.cos,
        atan=context.atan,
        erf=context.erf,
        erfc=context.erfc,
        largest=max,
        smallest=min,
        absolute=abs,
        root=context.sqrt,
        between=lambda low, high: (low + high) / 2,
        whole=int,
        roughly=float,
        pi=+context.pi,
        e=+context.e,
    )


def as_ball(value: mpmath.mpf, digits: int = 100) -> arb:
    """The value with the error that `digits` correct digits leave; needs a higher precision."""
    sign, mantissa, exponent, _ = value._mpf_
    exact = arb(-mantissa if sign else mantissa) * arb(2) ** exponent
    return exact + arb(0, (abs(exact) + 1) * arb(10) ** -digits)
