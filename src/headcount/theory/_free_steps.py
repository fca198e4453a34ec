"""The least width where the number of steps is free.

More steps are not always better: a theorem may ask for more heads the longer it trains, or bound
a gap that grows. One number of steps is tried for each octave, then some around the best.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence

Reaches = Callable[[int, int], bool]
"""reaches(width, steps): whether the promise there is at most the target."""

_COARSE = 8
"""Of widths and steps every so many octaves, to find one pair that reaches."""
_FINE, _ZOOMS = 8, 5
"""Numbers of steps that are tried on either side of the best, so many times closer and closer."""


def coarse_pairs(widths: Sequence[int], steps: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The largest width with every number of steps, then some of all widths with some of those."""
    yield from ((widths[-1], count) for count in steps)
    for count in steps[::_COARSE]:
        yield from ((width, count) for width in widths[::_COARSE])


def least_over_steps(
    reaches: Reaches,
    found: tuple[int, int] | None,
    unit: int,
    widths: Sequence[int],
    steps: Sequence[int],
) -> tuple[int, int] | None:
    """The least width that reaches with some number of steps, and that number; None if none does.

    `found` is a pair that is known to reach, if one is; a number of steps replaces it only by a
    smaller width. `widths` and `steps` go by octaves.
    """
    if found is None:
        found = next((pair for pair in coarse_pairs(widths, steps) if reaches(*pair)), None)
    if found is None:
        return None
    width, best = found
    for count in steps:
        while (half := width // 2 // unit * unit) > 0 and reaches(half, count):
            width, best = half, count
    for zoom in range(1, _ZOOMS + 1):
        for count in _around(best, 2 ** (_FINE**-zoom * _FINE), steps[-1]):
            at_this = functools.partial(_turned, reaches, count)
            if width > unit and at_this(width - unit):
                width = downwards(at_this, width // 2 // unit * unit, width - unit, unit)
                best = count
    return width, best


def _around(count: int, factor: float, most: int) -> list[int]:
    """Numbers of steps from count/factor to count*factor."""
    near = {round(count * factor ** (k / _FINE)) for k in range(-_FINE, _FINE + 1)}
    return sorted(steps for steps in near if 1 <= steps <= most)


def _turned(reaches: Reaches, count: int, width: int) -> bool:
    return reaches(width, count)


def downwards(reaches: Callable[[int], bool], failed: int, reached: int, unit: int) -> int:
    """Bisection between a value that fails and one that reaches."""
    while reached - failed > unit:
        middle = (reached + failed) // (2 * unit) * unit
        failed, reached = (failed, middle) if reaches(middle) else (middle, reached)
    return reached
