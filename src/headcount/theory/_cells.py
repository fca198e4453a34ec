"""Cells of branch and bound: products of intervals, their faces and halves."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from flint import arb

Interval = tuple[float, float]
Cell = tuple[Interval, ...]
"""One interval for each real entry; a single number is an interval of no width."""
Point = tuple[float, ...]


def volume(cell: Cell) -> float:
    """The product of the widths, single numbers left out."""
    return float(np.prod([high - low for low, high in cell if high > low], initial=1.0))


def lowest_face(cell: Cell, slopes: list[arb]) -> Cell:
    """Where g is smallest: at the lower end of an entry in which g grows, and so on."""
    ends: list[Interval] = []
    for (low, high), slope in zip(cell, slopes, strict=True):
        if low < high and slope >= 0:
            ends.append((low, low))
        elif low < high and slope <= 0:
            ends.append((high, high))
        else:
            ends.append((low, high))
    return tuple(ends)


def halves(cell: Cell, slopes: list[arb] | None) -> list[Cell]:
    """The box cut in two across the entry that makes g vary most; none if it is too thin."""
    widths = [high - low for low, high in cell]
    weights = [1.0] * len(cell)
    if slopes is not None:
        weights = [float(abs(slope).upper()) + 1e-12 for slope in slopes]
    return cut(
        cell,
        int(np.argmax([width * weight for width, weight in zip(widths, weights, strict=True)])),
    )


def cut(cell: Cell, k: int) -> list[Cell]:
    """The box cut in two across one entry."""
    low, high = cell[k]
    middle = (low + high) / 2
    return [(*cell[:k], part, *cell[k + 1 :]) for part in ((low, middle), (middle, high))]


def middle(cell: Cell) -> Point:
    """The point in the middle."""
    return tuple((low + high) / 2 for low, high in cell)


def at_point(point: Point) -> Cell:
    """The cell that is this point alone."""
    return tuple((x, x) for x in point)


def probes(cell: Cell) -> Iterator[Point]:
    """The middle and the corners."""
    yield middle(cell)
    yield from itertools.product(*({low: None, high: None} for low, high in cell))
