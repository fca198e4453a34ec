"""Other sizes of an instance: a token, a head, a sample, a feature more or less.

The letters of an instance's annotations ("n T d") are its sizes. Entries are copied or left out
along all axes with the same letter; a family's projection then makes the result admissible.
"""

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ._claim import Claim, Family, Instance
from ._pytree import arrays_of, axes_of

Fields = dict[str, Any]


def letters_of(kind: type, fields: Fields) -> dict[str, int]:
    """The size behind each letter."""
    return {
        letter: int(fields[name].shape[axis])
        for name, letters in axes_of(kind).items()
        for axis, letter in enumerate(letters)
        if letter.isidentifier()
    }


def taken(kind: type, letter: str, indices: Any, fields: Fields) -> Fields:
    """The fields with the entries `indices` along every axis of one letter."""
    changed = dict(fields)
    for name, letters in axes_of(kind).items():
        for axis, own in enumerate(letters):
            if own == letter:
                changed[name] = np.take(changed[name], np.asarray(indices), axis=axis)
    return changed


def _index_lists(size: int, rng: np.random.Generator) -> Iterator[list[int]]:
    """Which entries to take: all of them twice; all but one; all but two that may be a pair.

    Paired entries k and k + size/2 (the heads of a paired start) are added and left out together.
    """
    own, half = list(range(size)), size // 2
    k = int(rng.integers(size))
    yield [*own[:half], *own[:half], *own[half:], *own[half:]]
    if size > 1:
        yield own[:k] + own[k + 1 :]
    if size % 2 == 0 and size > 2:
        k = int(rng.integers(half))
        yield [i for i in own if i % half != k]


def resized(
    claim: Claim, family: Family, instance: Instance, rng: np.random.Generator
) -> Iterator[tuple[str, Instance]]:
    """Instances of other sizes on which the claim can be evaluated, each with its sizes in words.

    They are not yet admissible: `family.project` makes them so.
    """
    kind, fields = type(instance), arrays_of(instance)
    for letter, size in sorted(letters_of(kind, fields).items()):
        seen = {size}
        for indices in _index_lists(size, rng):
            if len(indices) in seen:
                continue
            seen.add(len(indices))
            changed = instance_of(kind, taken(kind, letter, indices, fields))
            entries = sum(np.size(leaf) for leaf in jax.tree.leaves(changed))
            if entries <= family.largest and _evaluable(claim, family, changed):
                yield f"{letter}={len(indices)}", changed


def instance_of(kind: type, fields: Fields) -> Instance:
    """An instance of JAX arrays, whose values are not looked at: it is projected later."""
    arrays = {
        name: jnp.asarray(value) if isinstance(value, np.ndarray) else value
        for name, value in fields.items()
    }
    return kind(**arrays)


def _evaluable(claim: Claim, family: Family, raw: Instance) -> bool:
    """Whether the claim makes sense at these shapes; nothing is computed."""

    def evaluate(instance: Instance) -> tuple[Instance, list[Any]]:
        inside = family.project(instance)
        return inside, [claim.evaluate(inside, variant) for variant in claim.variants]

    try:
        inside, _ = jax.eval_shape(evaluate, raw)
    except (ArithmeticError, ValueError, TypeError, IndexError):
        return False  # an odd number of heads, a single token where two are needed
    return jax.tree.map(np.shape, inside) == jax.tree.map(np.shape, raw)
