"""Charts: boxes of real numbers, and a few choices, that cover a bounded space.

`verify` goes through the chart's box; its map gives points of the space for all of it, and reaches
every point of the space.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp

from ._cells import Interval
from ._spaces import Ball, Box, Integers, Orthogonal, Signs, Simplex, Space, Sphere, is_ours

HALF_TURN, TURN = 3.1416, 6.2832
"""A little more than pi and 2 pi: nothing is lost by going twice over a bit."""
Entry = tuple[Interval | None, tuple[float, ...]]
"""An interval, or the numbers that an entry can be."""


class Chart(NamedTuple):
    """The entries of a chart, and the point that they stand for."""

    entries: list[Entry]
    point: Callable[[Any], Any]


def chart(space: Space, shape: tuple[int, ...]) -> Chart | None:
    """The chart of a space of arrays of this shape; None where there is none."""
    count = math.prod(shape)

    def shaped(flat: Any) -> Any:
        return flat.reshape(shape)

    if not is_ours(space):
        return None
    if isinstance(space, Box):
        return Chart([((space.low, space.high), ())] * count, shaped)
    if isinstance(space, Ball) and not isinstance(space, Sphere):
        entries: list[Entry] = [((-space.radius, space.radius), ())] * count
        single = math.prod(shape[space.batch :]) == 1  # an interval is a ball
        return Chart(entries, shaped if single else lambda flat: space.value(shaped(flat)))
    if isinstance(space, Signs):
        return Chart([(None, (-1.0, 1.0))] * count, shaped)
    if isinstance(space, Integers):
        whole = tuple(float(k) for k in range(space.low, space.high + 1))
        return Chart([(None, whole)] * count, shaped)
    if isinstance(space, Sphere):
        radius = space.radius
        if count == 1:
            return Chart([(None, (-radius, radius))], shaped)
        angles: list[Entry] = [((0.0, HALF_TURN), ())] * (count - 2)
        around: Entry = ((0.0, TURN), ())
        return Chart([*angles, around], lambda flat: shaped(radius * _direction(flat)))
    if isinstance(space, Simplex) and len(shape) == 1:
        shares: list[Entry] = [((0.0, 1.0), ())] * (count - 1)
        return Chart(shares, _shares)
    if isinstance(space, Orthogonal) and shape == (1, 1):
        return Chart([(None, (-1.0, 1.0))], shaped)
    if isinstance(space, Orthogonal) and shape == (2, 2):
        return Chart([((0.0, TURN), ()), (None, (-1.0, 1.0))], _orthogonal)
    return None


def _direction(angles: Any) -> Any:
    """(cos a, sin a cos b, sin a sin b cos c, ...)."""
    parts, rest = list[Any](), jnp.ones(())
    for k in range(len(angles)):
        parts.append(rest * jnp.cos(angles[k]))
        rest = rest * jnp.sin(angles[k])
    return jnp.stack([*parts, rest])


def _shares(flat: Any) -> Any:
    """Each entry takes a share of what those before have left."""
    parts, rest = list[Any](), jnp.ones(())
    for k in range(len(flat)):
        parts.append(rest * flat[k])
        rest = rest * (1 - flat[k])
    return jnp.stack([*parts, rest])


def _orthogonal(flat: Any) -> Any:
    """A rotation, after a reflection where the second entry is -1."""
    c, s, sign = jnp.cos(flat[0]), jnp.sin(flat[0]), flat[1]
    return jnp.stack([jnp.stack([c, -s * sign]), jnp.stack([s, c * sign])])
