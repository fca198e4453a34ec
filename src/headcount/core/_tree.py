"""The names of the blocks of parameter pytrees; arithmetic on them is `optax.tree`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import jax

from ._types import Array

Params = Any
"""A pytree of parameters; the models of this package use NamedTuples, one field per block."""


def blocks(params: Params) -> dict[str, Any]:
    """The named top-level blocks of `params`: fields, keys, attributes, else indices."""
    if hasattr(params, "_asdict"):
        return dict(params._asdict())
    if isinstance(params, dict):
        return dict(params)
    if isinstance(params, (tuple, list)):
        return {str(i): leaf for i, leaf in enumerate(params)}
    parts, _ = _parts(params)
    return {path: part for path, part in parts if jax.tree.leaves(part)}


def named_leaves(params: Params) -> dict[str, Array]:
    """Every array of `params`, under its block's name and, where blocks are nested, its path."""
    found = {}
    for block, subtree in blocks(params).items():
        for path, leaf in jax.tree_util.tree_flatten_with_path(subtree)[0]:
            inner_path = jax.tree_util.keystr(path, simple=True, separator="_")
            found[f"{block}_{inner_path}" if path else block] = leaf
    return found


def axis_letters(params: Params) -> dict[str, tuple[str, ...]]:
    """The letters that a paper gives to the axes of each array, where its parameters state them.

    They stand in the annotations: `Float[Array, "m d d"]` gives m, d and d_2.
    """
    found = {}
    for name, value in blocks(params).items():
        if hasattr(value, "ndim"):
            stated = re.search("""Array, ["'](.*?)["']""", str(_annotations(params).get(name, "")))
            letters = _expanded(stated[1].split(), value.ndim) if stated else []
            if len(letters) == value.ndim and all(map(str.isidentifier, letters)):
                again = [letters[:k].count(letter) + 1 for k, letter in enumerate(letters)]
                found[name] = tuple(
                    letter if count == 1 else f"{letter}_{count}"
                    for letter, count in zip(letters, again, strict=True)
                )
        elif blocks(value).keys() != {"params"}:
            found |= {f"{name}_{inner}": axes for inner, axes in axis_letters(value).items()}
    return found


def _annotations(params: Params) -> dict[str, Any]:
    return getattr(type(params), "__annotations__", {})


def _expanded(letters: list[str], axes: int) -> list[str]:
    """Any number of axes, as `*readout` has, are the last of tokens and features."""
    room = axes - len(letters) + 1
    shared = ["T", "d"][2 - room :] if 0 <= room <= 2 else []
    return [one for letter in letters for one in (shared if letter[0] == "*" else [letter])]


def with_blocks(params: Params, changed: dict[str, Any]) -> Params:
    """`params` with the named top-level blocks replaced."""
    if hasattr(params, "_replace"):
        return params._replace(**changed)
    if isinstance(params, dict):
        return {**params, **changed}
    if isinstance(params, (tuple, list)):
        return type(params)(changed.get(str(i), leaf) for i, leaf in enumerate(params))
    parts, structure = _parts(params)
    return jax.tree.unflatten(structure, [changed.get(path, part) for path, part in parts])


def _parts(params: Params) -> tuple[list[tuple[str, Any]], Any]:
    """What any other container holds, one level deep; an array is a part of its own."""
    found, structure = jax.tree_util.tree_flatten_with_path(
        params, is_leaf=lambda tree: tree is not params
    )
    keys = jax.tree_util.keystr
    return [(keys(path, simple=True) or "params", part) for path, part in found], structure


def paths(params: Params) -> tuple[str, ...]:
    """Where every array stands: its block and the path in it, with dots."""
    found = []
    for name, block in blocks(params).items():
        inner = jax.tree_util.tree_flatten_with_path(block)[0]
        inside = [jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in inner]
        found += [f"{name}.{path}" if path else name for path in inside]
    return tuple(found)


def is_at(path: str, name: str) -> bool:
    """Whether an array belongs to what a name stands for: it, or all that is below it."""
    return path == name or path.startswith(f"{name}.")


def subtrees(params: Params, names: Sequence[str]) -> dict[str, list[Any]]:
    """The arrays of every name: a block's, or a path's in it."""
    leaves = list(zip(paths(params), _leaves(params), strict=True))
    return {name: [leaf for path, leaf in leaves if is_at(path, name)] for name in names}


def with_subtrees(params: Params, changed: dict[str, list[Any]]) -> Params:
    """`params` with the arrays of some names replaced."""
    new = {name: iter(leaves) for name, leaves in changed.items()}
    replaced = []
    for path, leaf in zip(paths(params), _leaves(params), strict=True):
        owner = next((name for name in changed if is_at(path, name)), None)
        replaced.append(leaf if owner is None else next(new[owner]))
    left = iter(replaced)
    filled = {
        name: jax.tree.map(lambda _: next(left), block) for name, block in blocks(params).items()
    }
    return with_blocks(params, filled)


def _leaves(params: Params) -> list[Any]:
    """The arrays in the order of `paths`: block by block."""
    return [leaf for block in blocks(params).values() for leaf in jax.tree.leaves(block)]
