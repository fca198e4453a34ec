"""The ratio of the two sides near an extremal point, as a program of free numbers in balls.

The numbers are those of the raw arrays, some of them in units 2^-k or 2^k and some measured from
others: so a point can move towards zero, infinity or one another and stay a point of size one.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flint import arb

from ..core import float64
from ._ball_jaxpr import BallProgram, Unsupported
from ._balls import Undecided, at_precision
from ._claim import Claim, Instance
from ._prove import CONSTANT_ULPS, traced
from ._record import points_of

BITS = 320
"""Of a point that is reached; towards a limit there are more."""
Numbers = list[arb]
_FAILS = (Unsupported, Undecided, ArithmeticError, ValueError, TypeError, LookupError)


@dataclass(frozen=True)
class Scale:
    """Raw number k is 2^powers[k] times the k-th free one, plus raw number `partner[k]` if any."""

    powers: tuple[int, ...]
    partner: tuple[int, ...]

    @classmethod
    def plain(cls, size: int) -> Scale:
        """Raw numbers as they are."""
        return cls((0,) * size, (-1,) * size)

    def bits(self) -> int:
        """The precision at which differences at the smallest scale keep digits."""
        return BITS + 6 * max((abs(k) for k in self.powers), default=0)


@dataclass(frozen=True)
class Seen:
    """The two sides at a point, and whether every hypothesis holds there, all in balls."""

    ratio: arb
    holds: bool


class Ratio:
    """One claim at one choice of sizes and one scale."""

    def __init__(self, claim: Claim, variant: str, instance: Instance, scale: Scale) -> None:
        self.claim, self.variant, self.scale = claim, variant, scale
        self.start = instance
        with float64():
            leaves, self._tree = jax.tree.flatten(jax.tree.map(np.asarray, instance))
        self._shapes = [leaf.shape for leaf in leaves]
        self.size = sum(leaf.size for leaf in leaves)
        self._sides = traced(claim, variant)
        self.bits = scale.bits()

    def at(self, scale: Scale) -> Ratio:
        """The same ratio in other units."""
        return Ratio(self.claim, self.variant, self.start, scale)

    def lengths(self, free: Numbers) -> list[float]:
        """The largest number of each array, and of the difference of each two of one shape."""
        parts, at = list[list[float]](), 0
        for shape in self._shapes:
            count = int(np.prod(shape, dtype=int))
            parts.append([float(x) for x in free[at : at + count]])
            at += count
        pairs = itertools.combinations(range(len(parts)), 2)
        apart = [
            [float(arb(x) - arb(y)) for x, y in zip(parts[j], parts[k], strict=True)]
            for j, k in pairs
            if self._shapes[j] == self._shapes[k]
        ]
        return [max(map(abs, part), default=0.0) for part in (*parts, *apart)]

    def instance(self, free: Any) -> Any:
        """The instance of free numbers, under JAX."""
        powers = np.array([2.0**k for k in self.scale.powers])
        raw = free * powers
        if max(self.scale.partner, default=-1) >= 0:
            known = np.array(self.scale.partner)
            raw = raw + jnp.where(known >= 0, raw[np.maximum(known, 0)], 0.0)
        return self._unflattened(raw)

    def _unflattened(self, raw: Any) -> Any:
        parts, at = [], 0
        for shape in self._shapes:
            count = int(np.prod(shape, dtype=int))
            parts.append(raw[at : at + count].reshape(shape))
            at += count
        return jax.tree.unflatten(self._tree, parts)

    def _stated(self, free: Any) -> Any:
        measured, lhs, rhs = self._sides(self.instance(free))
        return measured, jnp.ravel(lhs)[0], jnp.ravel(rhs)[0]

    def _program(self, function: Callable[[Any], Any]) -> BallProgram:
        return BallProgram(function, np.ones(self.size), ulps=CONSTANT_ULPS)

    @functools.cached_property
    def _values(self) -> BallProgram:
        return self._program(self._stated)

    @functools.cached_property
    def _points(self) -> BallProgram:
        return self._program(lambda free: points_of(self.instance(free)))

    def points(self, free: Numbers) -> dict[str, Any]:
        """The points of the variables in balls."""
        found: dict[str, Any] = self._points(self.bits, [_array(free)])
        return found

    def seen(self, free: Numbers) -> Seen | None:
        """The ratio at a point; None where balls do not tell, or nothing is to be divided by."""
        try:
            measured, lhs, rhs = self._values(self.bits, [_array(free)])
        except _FAILS:
            return None
        left, right = arb(lhs), arb(rhs)
        if not (left.is_finite() and right.is_finite() and right > 0 and left >= 0):
            return None
        holds = all(arb(value) <= arb(limit) for value, limit in measured)
        with at_precision(self.bits):
            return Seen(left / right, holds)

    def active(self, free: Numbers) -> list[int]:
        """The hypotheses that hold with (nearly) no room."""
        try:
            measured, _, _ = self._values(self.bits, [_array(free)])
        except _FAILS:
            return []
        gaps = [(float(arb(v)), float(arb(limit))) for v, limit in measured]
        return [k for k, (v, limit) in enumerate(gaps) if abs(limit - v) <= _NEAR * (1 + abs(v))]

    def slopes(self, active: list[int]) -> Callable[[Numbers], tuple[Any, Any]]:
        """(gradient, Hessian) of the Lagrangian log ratio + multipliers (limit - value)."""

        def lagrangian(unknowns: Any) -> Any:
            free, multipliers = unknowns[: self.size], unknowns[self.size :]
            measured, lhs, rhs = self._stated(free)
            total = jnp.log(lhs) - jnp.log(rhs)
            for place, k in enumerate(active):
                value, limit = measured[k]
                total = total + multipliers[place] * (limit - value - _ROOM)
            return total

        def both(unknowns: Any) -> Any:
            slope = jax.jacfwd(lagrangian)
            return slope(unknowns), jax.jacfwd(slope)(unknowns)

        program = BallProgram(both, np.ones(self.size + len(active)), ulps=CONSTANT_ULPS)
        return lambda unknowns: program(self.bits, [_array(unknowns)])


_NEAR = 0.02
_ROOM = 2.0**-180
"""So much room is left in a hypothesis, for balls to see that it holds."""


def _array(numbers: Numbers) -> Any:
    found = np.empty(len(numbers), dtype=object)
    found[:] = [arb(x) for x in numbers]
    return found


def middles(numbers: Any) -> Numbers:
    """Exact numbers in the middle of balls."""
    return [arb(x).mid() for x in numbers]
