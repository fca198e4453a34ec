"""Shrinking: a counterexample that can be read by eye.

Smaller sizes first (a token, a sample, a head less), then simpler numbers (zeros, equal entries,
small integers, short fractions), as long as the violation stays one by a margin. Candidates are
judged by the claim's slow twin in float64: nothing is compiled for a shape tried once. What comes
out is proved again by whoever uses it.
"""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from ..core import Array, BadArgument
from ._claim import Claim, Instance, Kind
from ._pytree import arrays_of, axes_of, instance_from
from ._slow_sides import slow_checks, slow_ratio
from ._verdict import outside_domain
from .slow import FLOATS

Fields = dict[str, Any]
_MOST = 4000
"""Candidates tried at the most."""


def shrink(claim: Claim, variant: str, instance: Instance) -> Instance:
    """A simpler instance that violates the claim by at least half as much."""
    kind, fields = type(instance), arrays_of(instance)
    first = _ratio(claim, variant, kind, fields)
    if first is None or not first > 1:
        return instance
    least = _kept(claim, first)
    tried = 0

    def accepts(candidate: Fields) -> bool:
        nonlocal tried
        tried += 1
        ratio = _ratio(claim, variant, kind, candidate)
        return ratio is not None and ratio >= least

    for moves in (_smaller, _simpler):
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
        if any(not check.strictly for check in slow_checks(claim, FLOATS, fields, variant)):
            return None
        return float(slow_ratio(claim, FLOATS, fields, variant))
    except (BadArgument, ArithmeticError, ValueError, IndexError):
        return None


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


def _whole(values: Array) -> Array:
    return np.round(values)


def fewer_bits(bits: int) -> Callable[[Array], Array]:
    """Rounding towards zero to so many bits."""

    def rounded(values: Array) -> Array:
        mantissa, exponent = np.frexp(values)
        return np.ldexp(np.trunc(mantissa * 2**bits) / 2**bits, exponent)

    return rounded


_SHORTER = tuple(fewer_bits(bits) for bits in (1, 2, 3, 5, 8, 12, 20, 40))
"""Fewer and fewer bits, cut towards zero so that unit balls are not left."""
_CHANGES: tuple[Callable[[Array], Array], ...] = (np.zeros_like, _whole, *_SHORTER)


def _rounder(value: float) -> Iterator[float]:
    if value == 0 or not math.isfinite(value):
        return
    yield 0.0
    sign = math.copysign(1.0, value)
    power = sign * 2.0 ** math.floor(math.log2(abs(value)))
    for simple in (sign, float(round(value)), sign * 0.5, power):
        if simple != value:
            yield simple
    for shorter in _SHORTER[2:]:
        yield float(shorter(np.asarray(value)))


def _replaced(name: str, change: Callable[[Array], Array], fields: Fields) -> Fields | None:
    values = change(fields[name])
    if np.array_equal(values, fields[name]):
        return None
    return {**fields, name: values}


def _entry(name: str, index: tuple[int, ...], value: float, fields: Fields) -> Fields | None:
    if fields[name][index] == value or _longer(value, float(fields[name][index])):
        return None
    values = np.array(fields[name])
    values[index] = value
    return {**fields, name: values}


def _longer(new: float, old: float) -> bool:
    """Whether `new` is no simpler than `old`: simplicity is the length of the decimal string."""
    return len(f"{new:.17g}") >= len(f"{old:.17g}") and not (new in (0.0, 1.0, -1.0) and old != new)
