"""How a program sees a parameter: its axes moved, merged, split, scaled, but nothing added.

A leaf is a row-major block of atoms (axes that a reshape may split further). A view is a list of
axes, each a tuple of atoms, together with one factor. Where a view is multiplied with something
that is no parameter, the gradient is a sum of outer products over two groups of atoms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
from jaxtyping import Float

from ..core import Array


@dataclass(frozen=True)
class View:
    """A leaf with other axes: `axes` are tuples of atoms.

    Held at one index are the atoms of `at`, each with its index, and those of `steps`, each with
    the depth of the scan that runs over it, the innermost last.
    """

    leaf: int
    atoms: tuple[int, ...]
    axes: tuple[tuple[int, ...], ...]
    at: tuple[tuple[int, int], ...] = ()
    steps: tuple[tuple[int, int], ...] = ()
    scale: Any = None

    @classmethod
    def of(cls, leaf: int, shape: Sequence[int]) -> View:
        """The leaf as it is."""
        return cls(leaf, tuple(shape), tuple((k,) for k in range(len(shape))))

    def moved(self, order: Sequence[int]) -> View:
        """Axes in another order; an axis that is not named has length one and goes."""
        return replace(self, axes=tuple(self.axes[k] for k in order))

    def scaled(self, factor: Any) -> View:
        """Times a number."""
        return replace(self, scale=factor if self.scale is None else self.scale * factor)

    def at_step(self, depth: int) -> View:
        """One index of the first axis, which must be one atom, in a scan over the leaf."""
        ((atom,), *others) = self.axes
        return replace(self, axes=tuple(others), steps=(*self.steps, (atom, depth)))

    def at_index(self, place: int, index: int) -> View | None:
        """One index of an axis, which stays with length one; None unless it is one atom."""
        if len(self.axes[place]) != 1:
            return None
        axes = (*self.axes[:place], (), *self.axes[place + 1 :])
        return replace(self, axes=axes, at=(*self.at, (self.axes[place][0], index)))

    def spread(self, shape: Sequence[int], places: Sequence[int]) -> View | None:
        """Axes of length one added; None where an axis is repeated."""
        axes: list[tuple[int, ...]] = [()] * len(shape)
        for place, axis in zip(places, self.axes, strict=True):
            axes[place] = axis
        sizes = tuple(self.size(axis) for axis in axes)
        return replace(self, axes=tuple(axes)) if sizes == tuple(shape) else None

    def reshaped(self, shape: Sequence[int]) -> View | None:
        """Axes merged and split; None where an axis is not made of whole atoms."""
        atoms, left = list(self.atoms), [atom for axis in self.axes for atom in axis]
        axes: list[tuple[int, ...]] = []
        for length in shape:
            axis: list[int] = []
            while (have := math.prod(atoms[a] for a in axis)) < length:
                if not left:
                    return None
                atom = left[0]
                if length % (have * atoms[atom]) == 0:
                    axis.append(left.pop(0))
                    continue
                first, rest = divmod(length, have)
                if rest or atoms[atom] % first:
                    return None
                # Split one atom in two: those behind it are counted one further.
                atoms[atom : atom + 1] = [first, atoms[atom] // first]
                up = [a + (a > atom) for a in left[1:]]
                axes = [tuple(a + (a > atom) for a in one) for one in axes]
                axis = [*(a + (a > atom) for a in axis), atom]
                left = [atom + 1, *up]
                if any(held >= atom for held, _ in (*self.steps, *self.at)):
                    return None
            if have != length:
                return None
            axes.append(tuple(axis))
        if any(atoms[a] != 1 for a in left):
            return None
        return replace(self, atoms=tuple(atoms), axes=tuple(axes))

    def size(self, axis: Sequence[int]) -> int:
        """The length of an axis, or of several."""
        return math.prod(self.atoms[atom] for atom in axis)

    def group(self, places: Sequence[int]) -> tuple[int, ...]:
        """The atoms of some axes, in the leaf's order."""
        return tuple(sorted(atom for place in places for atom in self.axes[place]))

    def flat(
        self, values: Float[Array, "..."], places: Sequence[int], lead: int
    ) -> Float[Array, "... p"]:
        """Some axes of the view, the last ones of `values`, as one axis in the leaf's order.

        The first `lead` axes stay as they are.
        """
        order = [atom for place in places for atom in self.axes[place]]
        values = values.reshape(*values.shape[:lead], *(self.atoms[atom] for atom in order))
        ranks = [order.index(atom) for atom in sorted(order)]
        values = values.transpose(*range(lead), *(lead + rank for rank in ranks))
        return jnp.reshape(values, (*values.shape[:lead], self.size(order)))
