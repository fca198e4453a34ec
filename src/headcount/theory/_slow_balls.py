"""The slow side's arithmetic on balls, with python-flint."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from numbers import Integral
from typing import Any

from flint import arb

from ..core import BadArgument
from ._balls import Ball, exact_number, hull, root, roughly, whole
from ._balls import at_precision as at_precision
from .slow import Arithmetic, Number


def arithmetic() -> Arithmetic:
    """The functions of balls, at the precision of now."""
    return Arithmetic(
        number=_ball,
        exp=_lifted(arb.exp),
        log=_lifted(arb.log),
        sqrt=_lifted(arb.sqrt),
        tanh=_lifted(arb.tanh),
        sin=_lifted(arb.sin),
        cos=_lifted(arb.cos),
        atan=_lifted(arb.atan),
        erf=_lifted(arb.erf),
        erfc=_lifted(arb.erfc),
        largest=lambda values: Ball(reduce(arb.max, [_ball(v).arb for v in values])),
        smallest=lambda values: Ball(reduce(arb.min, [_ball(v).arb for v in values])),
        absolute=abs,
        root=_lifted(root),
        between=lambda low, high: Ball(hull(_ball(low).arb, _ball(high).arb)),
        whole=lambda x: whole(_ball(x).arb),
        roughly=lambda x: roughly(_ball(x).arb),
        pi=Ball(arb.pi()),
        e=Ball(arb.const_e()),
    )


def _ball(value: Any) -> Ball:
    """An integer or a float exactly, the decimal value of a string enclosed; no NaN."""
    if type(value) is Ball:
        return value
    if isinstance(value, str):
        parsed = arb(value)
        if parsed.is_nan():
            raise BadArgument("number", value, "is not a number", fix="give finite values")
        return Ball(parsed)
    return Ball(exact_number(int(value) if isinstance(value, Integral) else float(value)))


def _lifted(function: Callable[[arb], arb]) -> Callable[[Number], Ball]:
    return lambda x: Ball(function(x.arb if type(x) is Ball else _ball(x).arb))
