"""Newton's method on the optimality conditions, in exact middles of balls.

Directions in which nothing changes (a common scale, a rotation, a bound that holds a number) are
left alone: the step is taken in the span of the other eigenvectors of the Hessian.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import arb, arb_mat

from ._balls import at_precision
from ._ratio import _FAILS as FAILS
from ._ratio import Numbers, Ratio, Seen, middles

_FLAT = 1e-8
"""A curvature below this share of the largest is none."""
_CHANGED = 1000.0
"""An array that changes its size by this factor is on its way to a limit."""
_CRITICAL, _NO_SLOPE, _FAR_OFF = 25.0, 70.0, 35.0
"""Decimal logarithms: so small a slope is none; with so small a one no step is taken, and far along
the way to a limit slopes are no smaller."""
_APART, _CHORDS = 100, 6
"""Differences are taken over 2^-100; each step of theirs gains about fourteen digits."""
_STAGES = 3
_REGULAR = 14
"""More steps than a regular point needs."""
_MOST = 90
"""Steps."""
MOST_NUMBERS = 40


@dataclass(frozen=True)
class Polished:
    """A critical point: to how many digits its ratio is settled, and whether it is a regular one"""

    free: Numbers
    seen: Seen
    digits: int
    degenerate: bool = False


def polish(ratio: Ratio, start: Numbers) -> Polished | None:
    """The critical point near `start` that is no worse; None where Newton's method finds none."""
    before = ratio.seen(start)
    if before is None or ratio.size > MOST_NUMBERS:
        return None
    found = None
    for active in dict.fromkeys((tuple(ratio.active(start)), ())):
        try:
            with at_precision(ratio.bits):
                found = _newton(ratio, start, before, list(active))
        except FAILS:
            found = None
        if found is not None and found.digits:
            break
    return found


def _newton(ratio: Ratio, start: Numbers, before: Seen, active: list[int]) -> Polished | None:
    system = ratio.slopes(active)
    unknowns: Numbers | None = [*start, *_multipliers(system, start, len(active))]
    sizes: list[float] = []
    for _ in range(_STAGES):
        assert unknowns is not None
        unknowns, sizes = _stage(ratio, system, unknowns)
        if unknowns is None or _has_left(ratio.lengths(start), ratio.lengths(unknowns)):
            return None
        if _logarithm(middles(system(unknowns)[0])) < -_CRITICAL:
            break
    assert unknowns is not None
    after = ratio.seen(unknowns[: ratio.size])
    if after is None or not after.holds or (after.ratio / before.ratio).upper() < 1 - 1e-9:
        return None
    slow = len(sizes) > _REGULAR
    digits = max(min(int(-4 * sizes[-1]), 50), 0) if slow else 50 if active else 80
    slope = system(unknowns)[0]
    if _logarithm(middles(slope)) > -_CRITICAL:
        digits = 0  # a direction that seemed flat is none
    # Slopes may have constants of float64 that the ratio has not: the point is off by as much.
    unknown = _doubt(slope)
    if digits and unknown > -_CRITICAL and not active:
        unknowns, unknown = _by_differences(ratio, system, unknowns, unknown)
        after = ratio.seen(unknowns) or after
    digits = max(min(digits, int(min(-2 * unknown, 1e3)) - 3), 0)
    return Polished(unknowns[: ratio.size], after, digits, slow)


def _doubt(slope: Any) -> float:
    """The logarithm of how much is not known of a slope."""
    return _logarithm([arb(x.rad()) for x in slope])


def _by_differences(
    ratio: Ratio, system: Any, free: Numbers, doubt: float
) -> tuple[Numbers, float]:
    """A few more steps by slopes that are differences of the ratio itself, with all its digits."""
    slope, hessian = system(free)
    slope, hessian = middles(slope), [middles(row) for row in hessian]
    basis, least = _curved(slope, hessian, free=True), arb(2) ** -_APART

    def logarithm(k: int, shift: arb) -> arb:
        moved = [(x + shift).mid() if j == k else x for j, x in enumerate(free)]
        seen = ratio.seen(moved)
        return arb.nan() if seen is None else seen.ratio.log()

    for _ in range(_CHORDS):
        pairs = [(logarithm(k, least), logarithm(k, -least)) for k in range(len(free))]
        slopes = [(above - below) / (2 * least) for above, below in pairs]
        if not all(x.is_finite() for x in slopes) or _doubt(slopes) > doubt or not len(basis):
            break
        doubt_now, step = _doubt(slopes), _step(basis, middles(slopes), hessian)
        free = middles(x - d for x, d in zip(free, step, strict=True))
        if _logarithm(step) < -2 * _CRITICAL:
            return free, max(doubt_now, -2 * _CRITICAL)
    return free, doubt


def _stage(ratio: Ratio, system: Any, unknowns: Numbers) -> tuple[Numbers | None, list[float]]:
    """Newton's method in the directions that are curved where it begins."""
    lengths, basis = ratio.lengths(unknowns), None
    still = _FAR_OFF if any(ratio.scale.powers) else _NO_SLOPE
    sizes: list[float] = []
    for _ in range(_MOST):
        slope, hessian = system(unknowns)
        slope, hessian = middles(slope), [middles(row) for row in hessian]
        if basis is None:
            basis = _curved(slope, hessian, free=len(unknowns) == ratio.size)
        if not len(basis) or _logarithm(slope) < -still:
            break
        step = _step(basis, slope, hessian)
        unknowns = middles(x - d for x, d in zip(unknowns, step, strict=True))
        sizes.append(_logarithm(step) - _logarithm(unknowns))
        if not np.isfinite(sizes[-1]) or sizes[-1] < -0.4 * ratio.bits * np.log10(2):
            break
        if _has_left(lengths, ratio.lengths(unknowns)):
            return None, sizes
        if len(sizes) > _REGULAR and 4 * sizes[-1] < -50:
            break  # linear: the point is degenerate, its value is settled
    return unknowns, sizes


def _has_left(before: list[float], after: list[float]) -> bool:
    """Whether an array vanishes, grows or becomes another one: there is a limit, and no point."""
    pairs = zip(before, after, strict=False)
    return any(b < a / _CHANGED or (a > 0 and b > a * _CHANGED) for a, b in pairs)


def _multipliers(system: Any, start: Numbers, count: int) -> Numbers:
    """Least squares: what balances the slope of the ratio by those of the active hypotheses."""
    if not count:
        return []
    slope, hessian = system([*start, *[arb(0)] * count])
    rows = np.array([[float(x) for x in row[: len(start)]] for row in hessian[len(start) :]])
    own = np.array([float(x) for x in slope[: len(start)]])
    if not (np.all(np.isfinite(rows)) and np.all(np.isfinite(own))):
        raise ArithmeticError("a slope is not finite")
    found = np.linalg.lstsq(rows.T, -own, rcond=None)[0]
    return [arb(float(x)) for x in found]


def _curved(slope: Numbers, hessian: list[Numbers], *, free: bool) -> Any:
    """Eigenvectors of the Hessian, as rows, without those in which it is flat.

    Where the slope is not yet zero, a direction in which nothing changes seems curved by as much.
    With no hypothesis to keep (`free`), a maximum curves downwards.
    """
    matrix = np.array([[float(x) for x in row] for row in hessian])
    if not np.all(np.isfinite(matrix)):
        raise ArithmeticError("the Hessian is not finite")
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    largest = np.max(np.abs(values), initial=0.0)
    steep = 10 * float(max(abs(x).mid() for x in slope))
    least = max(_FLAT * largest, min(steep, 0.1 * largest), 1e-100)
    return vectors.T[(-values if free else np.abs(values)) > least]


def _step(basis: Any, slope: Numbers, hessian: list[Numbers]) -> Numbers:
    rows = arb_mat(basis.tolist())
    small = rows * arb_mat(hessian) * rows.transpose()
    right = rows * arb_mat([[x] for x in slope])
    try:
        found = small.mid().solve(right.mid())
    except ZeroDivisionError:
        raise ArithmeticError("the Hessian is singular") from None
    moved = rows.transpose() * found.mid()
    return [moved[k, 0] for k in range(len(slope))]


def _logarithm(numbers: Numbers) -> float:
    """log10 of the largest, of any size."""
    largest = max((abs(x).mid() for x in numbers), default=arb(0))
    if not largest > 0:
        return -np.inf
    return float(arb(largest).log() / arb(10).log())
