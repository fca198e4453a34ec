"""The names of the blocks of parameter pytrees; arithmetic on them is `optax.tree`."""

from __future__ import annotations

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
