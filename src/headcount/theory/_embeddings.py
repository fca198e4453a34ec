"""An instance in the shapes of other sizes: cut, or filled up in many ways.

What is false of few tokens is mostly false of many: the others repeat one of them, are zero, or
get no attention. Which of these a lemma admits is not known beforehand, so all are tried.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from ..core import Array
from ._claim import Instance

_FAR = 1e3
"""Larger than what is there by this factor: the softmax of its negative is zero."""


def _ones(copies: Array, drawn: Array) -> Array:
    """Ones; of matrices the identity, so that a block is added."""
    return np.ones_like(copies) if copies.ndim < 2 else np.zeros_like(copies) + _identity(copies)


def _identity(copies: Array) -> Array:
    return np.eye(*copies.shape[-2:])


_FILLS: tuple[tuple[float, Callable[[Array, Array], Array]], ...] = (
    (0.3, lambda copies, drawn: np.zeros_like(copies)),
    (0.15, lambda copies, drawn: copies),
    (0.1, lambda copies, drawn: -copies),
    (0.1, lambda copies, drawn: -_FAR * copies),
    (0.15, lambda copies, drawn: np.full_like(copies, -_FAR * np.max(np.abs(copies), initial=1.0))),
    (0.15, lambda copies, drawn: drawn),
    (0.05, _ones),
)
"""What new entries are, and how often: from copies of the old ones, or from a random instance."""


def fitted(x: Array, drawn: Array, fill: int, source: int | None = None) -> Array:
    """An array cut or filled up to the shape of `drawn`.

    Copies are of the index `source` along each axis, or of one index after another.
    """
    if not drawn.ndim:
        return x
    indices = []
    for own, size in zip(x.shape, drawn.shape, strict=True):
        along = np.arange(size)
        indices.append(np.where(along < own, along, along if source is None else source) % own)
    copies = x[np.ix_(*indices)]
    kept = np.zeros(drawn.shape, bool)
    kept[tuple(slice(own) for own in x.shape)] = True
    return np.where(kept, copies, _FILLS[fill][1](copies, drawn))


def embedded(
    instance: Instance, batch: Instance, rng: np.random.Generator, ways: int
) -> list[Instance]:
    """The instance in the shapes of a batch of random ones, in so many ways.

    First every array is filled alike, then each in a way of its own. They are not yet admissible.
    """
    leaves = jax.tree.leaves(instance)
    rooms, structure = jax.tree.flatten(batch)  # its counts are those of the new sizes
    often = [share for share, _ in _FILLS]
    longest = max((size for leaf in leaves for size in np.shape(leaf)), default=1)
    found: list[Any] = []
    for k in range(ways):
        fills = [k] * len(leaves)
        source = None
        if k >= len(_FILLS):
            fills = rng.choice(len(_FILLS), len(leaves), p=often).tolist()
            source = int(rng.integers(longest)) if rng.random() < 0.5 else None
        fitting = zip(leaves, rooms, fills, strict=True)
        made = [
            fitted(np.asarray(x), room[k % len(room)], fill, source) for x, room, fill in fitting
        ]
        found.append(jax.tree.unflatten(structure, made))
    return found
