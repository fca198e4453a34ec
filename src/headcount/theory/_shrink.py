"""Shrinking: a counterexample that can be read by eye.

Smaller sizes first (a token, a sample, a head less), then simpler numbers (zeros, equal entries,
small integers, short fractions), as long as the violation stays one by a margin. Candidates are
judged by the claim's slow twin in float64: nothing is compiled for a shape tried once. What comes
out is proved again by whoever uses it.
"""

import decimal
import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from ..core import Array, BadArgument
from ._claim import Claim, Instance, Kind
from ._pytree import arrays_of, axes_of, instance_from
from ._verdict import judge, outside_domain
from .slow import FLOATS
from .slow_sides import slow_checks, slow_ratio

Fields = dict[str, Any]
_MOST = 4000
"""Candidates tried at the most."""


def shrink(claim: Claim, variant: str, instance: Instance, least: float | None = None) -> Instance:
    """A simpler instance that violates the claim by at least half as much.

    With `least`, one of the same sizes whose ratio is at least that.
    """
    kind, fields = type(instance), arrays_of(instance)
    first = _ratio(claim, variant, kind, fields)
    if first is None or not first > (1 if least is None else 0):
        return instance
    stages = (_smaller, _simpler) if least is None else (_simpler,)
    least = _kept(claim, first) if least is None else least
    tried = 0

    def accepts(candidate: Fields) -> bool:
        nonlocal tried
        tried += 1
        ratio = _ratio(claim, variant, kind, candidate)
        return ratio is not None and ratio >= least

    for moves in stages:
        changed = True
        while changed and tried < _MOST:
            changed = False
            for move in moves(kind, fields):
                candidate = move(fields)
                if candidate is not None and tried < _MOST and accepts(candidate):
                    fields, changed = candidate, True
                    if moves is _smaller:
                        break  # the sizes have changed: list the moves again
    return instance_from(kind, fields)


def _kept(claim: Claim, ratio: float) -> float:
    """Half of the excess stays, or any excess beyond doubt where there is plenty."""
    if claim.kind is Kind.IDENTITY or not math.isfinite(ratio):
        return min(ratio, 1e6) / 2
    return 1 + min((ratio - 1) / 2, 0.5)


def _ratio(claim: Claim, variant: str, kind: type, fields: Fields) -> float | None:
    """The slow ratio of an admissible candidate; None for any other."""
    try:
        instance = instance_from(kind, fields)
        if outside_domain(instance) is not None:
            return None
        if claim.naive is None:
            return _compiled_ratio(claim, variant, instance)
        if any(not check.strictly for check in slow_checks(claim, FLOATS, fields, variant)):
            return None
        measured = (h.check(instance, variant) for h in claim.asked(variant) if h.naive is None)
        if any(not check.value <= check.threshold for check in measured):
            return None
        return float(slow_ratio(claim, FLOATS, fields, variant))
    except (BadArgument, ArithmeticError, ValueError, TypeError, IndexError):
        return None


def _compiled_ratio(claim: Claim, variant: str, instance: Instance) -> float | None:
    """The ratio of a lemma, which has no slow twin: one small program for each shape."""
    verdict = judge(claim, instance, variant)
    inside = all(check.value <= check.threshold for check in verdict.hypotheses)
    return verdict.ratio if inside and not math.isnan(verdict.ratio) else None


Move = Callable[[Fields], Fields | None]


def _smaller(kind: type, fields: Fields) -> Iterator[Move]:
    """Leave out one index, or one and its partner half-way on, along each named axis."""
    axes = axes_of(kind)
    letters = {letter for names in axes.values() for letter in names if letter.isidentifier()}
    for letter in sorted(letters):
        size = next(
            fields[name].shape[names.index(letter)]
            for name, names in axes.items()
            if letter in names
        )
        pairs = [(k, k + size // 2) for k in range(size // 2)] if size % 2 == 0 else []
        for gone in (*pairs, *((k,) for k in range(size))):
            if len(gone) < size:
                yield partial(_without, axes, letter, gone)


def _without(
    axes: dict[str, tuple[str, ...]], letter: str, gone: tuple[int, ...], fields: Fields
) -> Fields:
    kept = dict(fields)
    for name, names in axes.items():
        for axis, own in enumerate(names):
            if own == letter:
                kept[name] = np.delete(kept[name], gone, axis=axis)
    return kept


def _simpler(kind: type, fields: Fields) -> Iterator[Move]:
    """Whole arrays, then single entries, to rounder values."""
    for name in axes_of(kind):
        for change in _CHANGES:
            yield partial(_replaced, name, change)
    for name in axes_of(kind):
        for index in np.ndindex(np.shape(fields[name])):
            for value in _rounder(float(fields[name][index])):
                yield partial(_entry, name, index, value)


def fewer_bits(bits: int) -> Callable[[Array], Array]:
    """Rounding towards zero to so many bits."""

    def rounded(values: Array) -> Array:
        mantissa, exponent = np.frexp(values)
        return np.ldexp(np.trunc(mantissa * 2**bits) / 2**bits, exponent)

    return rounded


def fewer_digits(digits: int) -> Callable[[Array], Array]:
    """Rounding towards zero to so many decimal digits."""

    def rounded(values: Array) -> Array:
        flat = [_cut(float(value), digits) for value in np.ravel(values)]
        return np.array(flat, dtype=np.float64).reshape(np.shape(values))

    return rounded


def _cut(value: float, digits: int) -> float:
    if value == 0 or not math.isfinite(value):
        return value
    context = decimal.Context(prec=digits, rounding=decimal.ROUND_DOWN)
    return float(context.create_decimal(repr(value)))


_SHORTER = (
    *(fewer_digits(digits) for digits in (1, 2, 3, 4)),
    *(fewer_bits(bits) for bits in (1, 2, 3, 5, 8, 12, 20, 40)),
)
"""Fewer and fewer digits, cut towards zero so that unit balls are not left."""


def _of_size(size: float) -> Callable[[Array], Array]:
    """The same direction with the largest entry at `size`, in two digits."""

    def rescaled(values: Array) -> Array:
        largest = np.max(np.abs(values), initial=0.0)
        return fewer_digits(2)(values * (size / largest)) if largest > 0 else values

    return rescaled


_CHANGES: tuple[Callable[[Array], Array], ...] = (
    *(np.zeros_like, np.sign, np.round),
    *(_of_size(size) for size in (1.0, 10.0, 0.1)),
    *_SHORTER,
)


def _rounder(value: float) -> Iterator[float]:
    if value == 0 or not math.isfinite(value):
        return
    yield 0.0
    sign = math.copysign(1.0, value)
    yield from (sign, float(round(value)), sign * 0.5)
    yield from (round(round(value, 1) + step, 1) for step in (0.0, 0.1, -0.1))
    for shorter in _SHORTER:
        yield float(shorter(np.asarray(value)))


def _digits(value: float) -> int:
    """How much there is to read: nothing for 0, little for 1, then the significant digits."""
    if value == 0 or abs(value) == 1:
        return int(value != 0)
    mantissa = repr(abs(value)).split("e")[0].replace(".", "")
    far = not 1e-2 <= abs(value) < 1e4  # zeros are counted one by one
    return 1 + 2 * far + len(mantissa.strip("0"))


def to_read(values: Array) -> int:
    """How many digits there are to read in an array."""
    return sum(_digits(float(value)) for value in np.ravel(values))


def _replaced(name: str, change: Callable[[Array], Array], fields: Fields) -> Fields | None:
    values = change(fields[name]) + 0.0  # no negative zeros
    if to_read(values) >= to_read(fields[name]):
        return None
    return {**fields, name: values}


def _entry(name: str, index: tuple[int, ...], value: float, fields: Fields) -> Fields | None:
    if _digits(value) >= _digits(float(fields[name][index])):
        return None
    values = np.array(fields[name])
    values[index] = value
    return {**fields, name: values}
