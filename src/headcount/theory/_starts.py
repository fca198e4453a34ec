"""Where a search begins: random draws, the same over many orders of magnitude, structured ones."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from ..core import Array
from ._claim import Family, Instance

SMALLEST, LARGEST = 1e-3, 1e4
"""The scales that a search covers, whatever the family's own draws look like."""


def _rescaled(leaf: Array, rng: np.random.Generator) -> Array:
    """Each instance's array times its own log-uniform factor."""
    logs = rng.uniform(np.log(SMALLEST), np.log(LARGEST), leaf.shape[:1])
    return leaf * np.exp(logs).reshape(-1, *[1] * (leaf.ndim - 1))


def _equal_rows(leaf: Array) -> Array:
    return np.broadcast_to(leaf[:, :1], leaf.shape).copy() if leaf.ndim > 1 else leaf


def _opposite_rows(leaf: Array) -> Array:
    if leaf.ndim < 2:
        return leaf
    signs = np.where(np.arange(leaf.shape[1]) % 2, -1.0, 1.0)
    return _equal_rows(leaf) * signs.reshape(1, -1, *[1] * (leaf.ndim - 2))


def _one_hot(leaf: Array) -> Array:
    if leaf.ndim < 2:
        return np.sign(leaf)
    top = np.argmax(np.abs(leaf), axis=-1)[..., None]
    return np.where(np.arange(leaf.shape[-1]) == top, np.sign(leaf), 0.0)


def _signs(leaf: Array) -> Array:
    return np.sign(leaf)


def _zero(leaf: Array) -> Array:
    return np.zeros_like(leaf)


STRUCTURES: tuple[Callable[[Array], Array], ...] = (
    _equal_rows,
    _opposite_rows,
    _one_hot,
    _signs,
    _zero,
)
"""Shapes at which attention bounds tend to be attained."""


def starts(family: Family, rng: np.random.Generator, count: int) -> Instance:
    """`count` raw instances along a leading axis: a third plain, a third rescaled, a third shaped.

    They are not yet admissible: `family.project` makes them so.
    """
    batch = family.draw(rng, count)
    if family.plain:
        return batch
    leaves, structure = jax.tree.flatten(batch)
    kind = np.arange(count) % 3
    changed = []
    for leaf in (np.array(leaf, dtype=np.float64) for leaf in leaves):
        shaped = np.stack([change(leaf) for change in (lambda x: x, *STRUCTURES)])
        pick = np.where(rng.random(count) < 0.5, 0, rng.integers(1, len(shaped), count))
        own = shaped[pick, np.arange(count)]
        several = kind.reshape(-1, *[1] * (leaf.ndim - 1))
        varied = np.where(several == 1, _rescaled(leaf, rng), own)
        changed.append(np.where(several == 0, leaf, varied))
    return jax.tree.unflatten(structure, changed)


def neighbours(best: Instance, rng: np.random.Generator, count: int) -> Instance:
    """`count` perturbations of the instances in `best`, each at its own relative scale.

    A third moves every array, a third one array only, a third gives one array a special shape:
    worst cases tend to lie at kinks and on boundaries, where there is no slope to follow.
    """
    leaves, structure = jax.tree.flatten(best)
    parents = rng.integers(0, len(leaves[0]), count)
    size = np.exp(rng.uniform(np.log(1e-4), np.log(0.5), count))
    kind, chosen = np.arange(count) % 3, rng.integers(0, len(leaves), count)
    moved: list[Any] = []
    for index, leaf in enumerate(np.asarray(leaf, dtype=np.float64)[parents] for leaf in leaves):
        shape = (-1, *[1] * (leaf.ndim - 1))
        typical = np.sqrt(np.mean(leaf.reshape(count, -1) ** 2, axis=1) + 1e-12)
        step = (size * typical).reshape(shape) * rng.normal(size=leaf.shape)
        shaped = typical.reshape(shape) * np.stack([change(leaf) for change in STRUCTURES])
        own = shaped[rng.integers(0, len(STRUCTURES), count), np.arange(count)]
        here = chosen == index
        stepped = ((kind == 0) | ((kind == 1) & here)).reshape(shape)
        special = ((kind == 2) & here).reshape(shape)
        moved.append(np.where(special, own, leaf + np.where(stepped, step, 0.0)))
    return jax.tree.unflatten(structure, moved)
