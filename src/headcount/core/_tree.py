"""The names of the blocks of parameter pytrees; arithmetic on them is `optax.tree`."""

from __future__ import annotations

import re
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
    return changed.get("params", params)
