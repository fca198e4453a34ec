"""Modules that hold their own arrays (equinox, or any pytree that can be called) as models.

The arrays of floating point numbers are the parameters; everything else (buffers of integers,
activations, static fields) stays as it is. A block is an attribute of the module.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..core import BadArgument

Params = dict[str, dict[str, Any]]
"""Block, path within the block, array."""


@dataclass(frozen=True, eq=False)
class Module:
    """f(params, x) of a module: its structure, and the leaves that are no parameters."""

    structure: Any
    rest: tuple[Any, ...]
    """One entry a leaf: None where the parameter goes."""
    places: tuple[tuple[str, str], ...]
    """Block and path of every parameter, in the order of the leaves."""
    name: str

    def __call__(self, params: Params, x: Any) -> Any:
        """What the module with these parameters returns for x."""
        return self.module(params)(x)

    def module(self, params: Params) -> Any:
        """The module with these parameters."""
        own = iter([jnp.asarray(params[block][path]) for block, path in self.places])
        leaves = [next(own) if leaf is None else leaf for leaf in self.rest]
        return jax.tree.unflatten(self.structure, leaves)

    @cached_property
    def _content(self) -> tuple[Any, ...]:
        return self.structure, self.places, tuple(map(_content, self.rest))

    def __hash__(self) -> int:
        return hash(self._content)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Module) and self._content == other._content


def split_module(module: Any) -> tuple[Module, Params]:
    """A module as a model and its parameters: `model.module(params)` puts them together again.

    >>> import jax, numpy as np
    >>> half = jax.tree_util.Partial(lambda w, x: w @ x, np.array([0.5, 0.25]))
    >>> model, params = split_module(half)
    >>> float(model(params, np.array([2.0, 4.0])))
    2.0
    """
    found, structure = jax.tree_util.tree_flatten_with_path(module)
    moving = [_is_parameter(leaf) for _, leaf in found]
    if not callable(module) or not any(moving):
        problem = "is no module: nothing to call that holds arrays of floating point numbers"
        raise BadArgument(
            "model", type(module).__name__, problem, fix="give f(params, x) and params"
        )
    places: list[tuple[str, str]] = []
    params: Params = {}
    for (path, leaf), moves in zip(found, moving, strict=True):
        if moves:
            block = jax.tree_util.keystr(path[:1], simple=True)
            inner = jax.tree_util.keystr(path[1:], simple=True, separator=".") or "value"
            places.append((block, inner))
            params.setdefault(block, {})[inner] = np.asarray(leaf)
    rest = tuple(None if moves else leaf for (_, leaf), moves in zip(found, moving, strict=True))
    return Module(structure, rest, tuple(places), type(module).__name__), params


def as_model(model: Any, params: Any) -> tuple[Any, Any]:
    """A function and its parameters; a module brings its own where none are given.

    With parameters as training gives them back a module stands for its structure alone.
    """
    if params is None:
        return split_module(model)
    if isinstance(params, dict) and callable(model) and not _is_leaf(model):
        module, own = split_module(model)
        if {block: set(inner) for block, inner in own.items()} == _paths(params):
            return module, params
    return model, params


def _is_leaf(model: Any) -> bool:
    """Whether JAX sees nothing in it: a plain function, a class of this package."""
    return not any(map(_is_parameter, jax.tree.leaves(model)))


def _paths(params: Params) -> dict[str, Any]:
    return {k: set(inner) if isinstance(inner, dict) else None for k, inner in params.items()}


def _is_parameter(leaf: Any) -> bool:
    return isinstance(leaf, (np.ndarray, jax.Array)) and leaf.dtype.kind == "f"


def _content(leaf: Any) -> Any:
    """A leaf that stays, in a form that compares by content."""
    if isinstance(leaf, (np.ndarray, jax.Array)):
        values = np.asarray(leaf)
        return str(values.dtype), values.shape, hashlib.sha256(values.tobytes()).hexdigest()
    return leaf
