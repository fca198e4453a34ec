"""Samples of any shape: one array, or a pytree of arrays, with the samples as first axis."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from ._checks import check_finite
from ._errors import BadArgument

Samples = Any
"""An array, or a pytree of arrays, with the samples along the first axis."""


def as_samples(argument: str, x: Any, dtype: str | None) -> Samples:
    """Finite NumPy arrays of one length; floats in `dtype` if given, ids and masks as they are."""
    x = np.asarray(x) if _is_nested_list(x) else x
    samples = jax.tree.map(lambda leaf: _numbers(argument, leaf, dtype), x)
    lengths = {leaf.shape[:1] for leaf in jax.tree.leaves(samples)}
    if len(lengths) > 1:
        shown = ", ".join(sorted(str(leaf.shape) for leaf in jax.tree.leaves(samples)))
        problem = "do not hold the same number of samples"
        raise BadArgument(argument, f"arrays of shapes {shown}", problem, fix="cut them alike")
    if not lengths or any(leaf.ndim == 0 or leaf.size == 0 for leaf in jax.tree.leaves(samples)):
        shown = f"array of shape {np.shape(jax.tree.leaves(samples)[0])}" if lengths else x
        raise BadArgument(argument, shown, "holds no sample", fix="give n >= 1")
    return samples


def _is_nested_list(x: Any) -> bool:
    """One array written as lists, to be read as NumPy reads it; a list of arrays is a pytree."""
    return isinstance(x, list) and all(
        isinstance(leaf, (bool, int, float)) for leaf in jax.tree.leaves(x)
    )


def count_samples(x: Any) -> int:
    """How many samples there are."""
    return len(jax.tree.leaves(x)[0])


def take_samples(x: Any, at: Any) -> Any:
    """Some of the samples, by a slice or by indices."""
    return jax.tree.map(lambda leaf: leaf[at], x)


def sample_shapes(x: Any, dtype: str | None = None) -> Any:
    """One sample as shapes and types, floats in `dtype` where it is given."""

    def one(leaf: Any) -> jax.ShapeDtypeStruct:
        own = dtype if dtype is not None and np.dtype(leaf.dtype).kind == "f" else leaf.dtype
        return jax.ShapeDtypeStruct(leaf.shape[1:], own)

    return jax.tree.map(one, x)


def _numbers(argument: str, value: Any, dtype: str | None) -> np.ndarray:
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise BadArgument(argument, value, "is no array", fix="use equal lengths") from error
    if array.dtype.kind not in "fiub" and str(array.dtype) != "bfloat16":
        raise BadArgument(argument, f"array of {array.dtype}", "is not real", fix="give numbers")
    if array.dtype.kind in "iub":
        return array
    check_finite(argument, array)
    with np.errstate(over="ignore"):  # what is made of it is checked
        return array if dtype is None else array.astype(dtype, copy=False)
