"""Arithmetic on parameter pytrees, and the names of their blocks."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Float

from ._types import Array

Params = Any
"""A pytree of parameters; the models of this package use NamedTuples, one field per block."""


def add(a: Params, b: Params) -> Params:
    """a + b, leaf by leaf."""
    return jax.tree.map(jnp.add, a, b)


def subtract(a: Params, b: Params) -> Params:
    """a - b, leaf by leaf."""
    return jax.tree.map(jnp.subtract, a, b)


def scale(factor: Any, a: Params) -> Params:
    """factor * a, leaf by leaf."""
    return jax.tree.map(lambda leaf: factor * leaf, a)


def inner(a: Params, b: Params) -> Float[Array, ""]:
    """The Euclidean inner product over all leaves."""
    products = jax.tree.map(lambda x, y: jnp.vdot(x, y), a, b)
    return jax.tree.reduce(jnp.add, products)


def squared_norm(a: Params) -> Float[Array, ""]:
    """The squared Euclidean norm over all leaves."""
    return inner(a, a)


def norm(a: Params) -> Float[Array, ""]:
    """The Euclidean norm over all leaves."""
    return jnp.sqrt(squared_norm(a))


def count(a: Params) -> int:
    """How many numbers the pytree holds."""
    return sum(int(jnp.size(leaf)) for leaf in jax.tree.leaves(a))


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
