"""The names of the blocks of parameter pytrees; arithmetic on them is `optax.tree`."""

from __future__ import annotations

from typing import Any

import jax

from ._types import Array

Params = Any
"""A pytree of parameters; the models of this package use NamedTuples, one field per block."""


def blocks(params: Params) -> dict[str, Any]:
    """The named top-level blocks of `params`: NamedTuple fields, dict keys, else indices."""
    if hasattr(params, "_asdict"):
        return dict(params._asdict())
    if isinstance(params, dict):
        return dict(params)
    if isinstance(params, (tuple, list)):
        return {str(i): leaf for i, leaf in enumerate(params)}
    return {"params": params}


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
    return changed.get("params", params)
