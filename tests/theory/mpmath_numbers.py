"""mpmath as an independent kind of number: the reference for balls."""

from __future__ import annotations

import mpmath
from flint import arb


def as_ball(value: mpmath.mpf, digits: int = 100) -> arb:
    """The value with the error that `digits` correct digits leave; needs a higher precision."""
    sign, mantissa, exponent, _ = value._mpf_
    exact = arb(-mantissa if sign else mantissa) * arb(2) ** exponent
    return exact + arb(0, (abs(exact) + 1) * arb(10) ** -digits)
