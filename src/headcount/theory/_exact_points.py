"""Points of spaces in exact rationals: where a portable certificate is evaluated.

Float64 knows no unit vector but a few; rationals know as many as there are directions. `exactly`
moves raw numbers by less than 10^-15 into their space, without any rounding.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from flint import fmpq

from ..core import BadArgument
from ._space import ArraySpace
from ._spaces import (
    Ball,
    Box,
    Integers,
    Orthogonal,
    Positive,
    PositiveSemidefinite,
    Reals,
    Signs,
    Simplex,
    Space,
    Sphere,
    is_ours,
)
from ._spaces import Fraction as Fractions
from ._spaces_joint import NearStart, Parameters, Product, below
from ._term import exact_root

Numbers = Any
"""A NumPy object array of `Fraction`."""


class Exact(NamedTuple):
    """One array of a point: its rationals, and the space as the checker reads it."""

    values: Numbers
    where: dict[str, Any]


def rationals(raw: Any, *, decimal: bool) -> Numbers:
    """float64 numbers as rationals: as what they print (0.1 is 1/10), or as what they are."""
    array = np.asarray(raw, dtype=np.float64)
    read = (lambda v: Fraction(repr(v))) if decimal else Fraction
    found = np.empty(array.shape, dtype=object)
    found.ravel()[:] = [read(v) for v in array.ravel().tolist()]
    return found


def root_of(value: Fraction) -> Fraction | None:
    """The square root, if it is rational."""
    found = exact_root(fmpq(value.numerator, value.denominator))
    return None if found is None else Fraction(int(found.p), int(found.q))


def exactly(space: ArraySpace, x: Numbers) -> Exact:
    """The point of raw numbers."""
    if is_ours(space):
        found = _exactly(space, x)
        if found is not None:
            return found
    problem = f"{type(space).__name__} has no exact points"
    raise BadArgument("space", problem, "cannot be exported", fix="use a space of headcount.theory")


def _exactly(space: ArraySpace, x: Numbers) -> Exact | None:
    if isinstance(space, Sphere):
        where: dict[str, Any] = {"in": "sphere", "radius": _text(space.radius)}
        return Exact(_on_sphere(x, _read(space.radius)), where)
    if isinstance(space, Ball):
        batch = space.batch
        rows = x.reshape(math.prod(x.shape[:batch]), -1)
        moved = np.array([_in_ball(row, _read(space.radius)) for row in rows], dtype=object)
        where = {"in": "ball", "radius": _text(space.radius), "batch": batch}
        return Exact(moved.reshape(x.shape), where)
    if isinstance(space, (Box, Integers)):
        if isinstance(space, Integers):
            x = _each(lambda v: Fraction(round(v)), x)
        low, high = _read(space.low), _read(space.high)
        where = {"in": "box", "low": _text(space.low), "high": _text(space.high)}
        if isinstance(space, Integers):
            where["in"] = "integers"
        return Exact(_each(lambda v: min(max(v, low), high), x), where)
    if isinstance(space, Simplex):
        sizes = np.abs(x)
        total = sizes.sum(axis=-1, keepdims=True)
        equal = Fraction(1, x.shape[-1])
        divisor = np.where(total > 0, total, 1)
        shares = np.where(total > 0, sizes / divisor, _each(lambda v: equal, x))
        return Exact(shares, {"in": "simplex"})
    if isinstance(space, Signs):
        return Exact(_each(lambda v: Fraction(-1 if v < 0 else 1), x), {"in": "signs"})
    if isinstance(space, Orthogonal):
        return Exact(_reflected(x), {"in": "orthogonal"})
    if isinstance(space, PositiveSemidefinite):
        return Exact(x @ x.T, {"in": "semidefinite"})
    if isinstance(space, Positive):
        return Exact(x, {"in": "fraction" if isinstance(space, Fractions) else "positive"})
    if isinstance(space, Reals):
        return Exact(x, {"in": "reals"})
    return None


def _each(function: Any, x: Numbers) -> Numbers:
    return np.array([function(v) for v in x.ravel()], dtype=object).reshape(x.shape)


def _read(value: float) -> Fraction:
    return Fraction(repr(float(value)))


def _text(value: float) -> str:
    return str(_read(value))


def _in_ball(row: Numbers, radius: Fraction) -> Numbers:
    """The row, or its multiple of norm `radius`, or just below where that is no rational."""
    square = sum((v * v for v in row), Fraction(0))
    if square <= radius**2:
        return row
    norm = root_of(square)
    if norm is not None:
        return row * (radius / norm)
    scale = Fraction(math.nextafter(float(radius) / math.sqrt(square), 0.0))
    while scale**2 * square > radius**2:
        scale *= 1 - Fraction(1, 2**53)
    return row * scale


def _on_sphere(x: Numbers, radius: Fraction) -> Numbers:
    """A multiple where it is rational; else the mirror image of the first unit vector.

    With v = e + s u, of which any digits may be cut, (I - 2 v v^T/|v|^2) e is a rational unit
    vector near -s u; the sign s keeps v long.
    """
    flat = x.ravel()
    first = np.array([Fraction(k == 0) for k in range(flat.size)], dtype=object)
    square = sum((v * v for v in flat), Fraction(0))
    norm = root_of(square)
    if square == 0:
        unit = first
    elif norm is not None:
        unit = flat / norm
    else:
        length = math.sqrt(square)
        near = rationals([float(v) / length for v in flat], decimal=False)
        sign = 1 if near[0] >= 0 else -1
        v = first + sign * near
        unit = -sign * (first - v * (2 * v[0] / (v @ v)))
    return (radius * unit).reshape(x.shape)


def _reflected(x: Numbers) -> Numbers:
    size = len(x)
    product = np.array([[Fraction(i == j) for j in range(size)] for i in range(size)], dtype=object)
    for row in x:
        square = row @ row
        if square:
            product = product - np.outer(product @ row, row) * (Fraction(2) / square)
    return product


def exact_point(
    name: str, space: Space, raw: Mapping[str, Any], sizes: Mapping[str, int], *, decimal: bool
) -> dict[str, Exact]:
    """All arrays of a variable by name."""
    if isinstance(space, Product):
        parts = {
            k: {block: raw[below(k, block)] for block in own.blocks}
            for k, own in space.spaces.items()
        }
        found: dict[str, Exact] = {}
        for k, own in space.spaces.items():
            found |= exact_point(f"{name}_{k}", own, parts[k], sizes, decimal=decimal)
        return found
    if isinstance(space, Parameters):
        ball = Ball(1, radius=space.radius)
        moves = {block: rationals(x, decimal=decimal) for block, x in raw.items()}
        return {below(name, block): exactly(ball, x) for block, x in moves.items()}
    assert isinstance(space, ArraySpace)
    return {name: exactly(space, rationals(raw[""], decimal=decimal))}


def assembled(name: str, space: Space, arrays: Mapping[str, Any], sizes: Mapping[str, int]) -> Any:
    """What the lemma's function takes, from those arrays."""
    if isinstance(space, Product):
        return tuple(assembled(f"{name}_{k}", s, arrays, sizes) for k, s in space.spaces.items())
    if isinstance(space, Parameters):
        model, initial = space.start(sizes)
        parts: Sequence[str] = list(initial._asdict())
        moved = {p: getattr(initial, p) + arrays[below(name, p)] for p in parts}
        return NearStart(model, type(initial)(**moved), initial)
    return arrays[name]
