"""The sieve: which of thousands of boxes are closed, by float64 intervals alone.

With g = rhs - lhs a box is closed where the enclosure of g, natural or in mean-value form, is not
below zero, or where a hypothesis fails on all of it. Where g grows or falls in an entry the face at
which it is smallest decides. What stays open goes on to balls (`_verify.py`), or is halved.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _intervals as iv
from ._interval_jaxpr import IntervalProgram
from ._intervals import Interval
from ._slopes import derivatives

OPEN, CLOSE, CLOSED = range(3)
_FACES, _DOUBTED = 3, 4
"""So many faces of faces, and so many doubtful points of a batch, are looked at."""


@dataclass(frozen=True)
class Sieved:
    """For each box what is known and where to cut it; the boxes whose middle may violate."""

    verdict: Any
    axis: Any
    suspects: list[int]


class Sieve:
    """Sides and hypotheses of one lemma at one choice of sizes, on arrays of boxes."""

    def __init__(self, sides: Callable[[Any], Any], size: int, ulps: int, tolerance: float) -> None:
        plain, slopes, _ = derivatives(sides, np.zeros(size))
        self._values = IntervalProgram(plain, size, ulps)
        self._slopes = IntervalProgram(slopes, size, ulps)
        self.tolerance = tolerance
        one = np.zeros((1, size))
        self._values(one, one)  # a primitive without a rule is told here
        self._slopes(one, one)

    def look(self, low: Any, high: Any) -> Sieved:
        """What intervals say of boxes (box, entry)."""
        with np.errstate(all="ignore"):
            return self._look(low, high)

    def _look(self, low: Any, high: Any) -> Sieved:
        gap, room, missed, _, jumps = self._gap(low, high)
        verdict = np.where(missed | (gap >= 0), CLOSED, np.where(gap + room >= 0, CLOSE, OPEN))
        axis = np.argmax(high - low, axis=1)
        middle = (low + high) / 2
        there, _, never, wrong, _ = self._gap(middle, middle)
        rest = np.flatnonzero((verdict != CLOSED) & ~jumps)
        if len(rest):
            best, cut = self._by_slopes(low[rest], high[rest], middle[rest])
            axis[rest] = np.where(cut >= 0, cut, axis[rest])
            found = np.where(best >= 0, CLOSED, np.where(best + room[rest] >= 0, CLOSE, OPEN))
            verdict[rest] = np.maximum(verdict[rest], found)
        # Sides may differ by less than float64 shows: the nearest are looked at in balls.
        doubted = np.where((verdict == OPEN) & ~never & (there < 0), there, np.inf)
        lowest = np.argsort(doubted)[:_DOUBTED]
        nearest = [k for k in lowest.tolist() if doubted[k] < np.inf]
        return Sieved(verdict, axis, [*np.flatnonzero(wrong).tolist(), *nearest])

    def _gap(self, low: Any, high: Any) -> tuple[Any, Any, Any, Any, Any]:
        """The least g, how much it may be missed by, and of the hypotheses and the sides: whether
        one fails on all of a box, whether the sides are in the wrong order, whether one may jump.
        """
        (lhs, rhs, checks), jumps = self._values(low, high)
        count = len(low)
        gap = np.broadcast_to(iv.sub(rhs, lhs).lo, count)
        room = np.broadcast_to(
            np.where(rhs.lo > 0, self.tolerance * rhs.lo * (1 - 1e-15), 0), count
        )
        missed, met = np.zeros(count, bool), np.ones(count, bool)
        for value, limit in checks:
            order = np.broadcast_to(iv.less(limit, value), count)
            missed, met = missed | (order == 2), met & (order == 0)
        wrong = np.broadcast_to(iv.less(rhs, lhs), count) == 2
        return gap, np.nan_to_num(room), missed, wrong & met, jumps

    def _by_slopes(self, low: Any, high: Any, middle: Any) -> tuple[Any, Any]:
        """The least g by faces and the mean value, and the entry in which g varies most."""
        slopes, _ = self._slopes(low, high)
        first = np.broadcast_to(slopes.lo, low.shape), np.broadcast_to(slopes.hi, low.shape)
        known = np.isfinite(first[0]).all(axis=1) & np.isfinite(first[1]).all(axis=1)
        best = np.full(len(low), -np.inf)
        size = np.maximum(np.abs(first[0]), np.abs(first[1]))
        cut = np.where(known, np.argmax((high - low) * (size + 1e-12), axis=1), -1)
        a, b, (below, above) = low, high, first
        for _ in range(_FACES):
            here, _, _, _, _ = self._gap(a, b)
            best = np.where(known & (here > best), here, best)
            moved = self._mean_value(a, b, below, above)
            best = np.where(known & (moved > best), moved, best)
            grows, falls = (below >= 0) & (a < b), (above <= 0) & (a < b)
            if not (grows | falls)[known].any():
                break
            a, b = np.where(falls & ~grows, b, a), np.where(grows, a, b)
            slopes, _ = self._slopes(a, b)
            below, above = (np.broadcast_to(end, low.shape) for end in (slopes.lo, slopes.hi))
            known = known & np.isfinite(below).all(axis=1) & np.isfinite(above).all(axis=1)
        return best, cut

    def _mean_value(self, low: Any, high: Any, below: Any, above: Any) -> Any:
        """The lower end of g(mid) + g'(box) (box - mid)."""
        middle = (low + high) / 2
        there, _, _, _, _ = self._gap(middle, middle)
        step = iv.sub(Interval(low, high), Interval(middle, middle))
        change = iv.total(iv.mul(Interval(below, above), step), (0,), iv.add, 0.0)
        return iv.add(Interval(there, there), change).lo
