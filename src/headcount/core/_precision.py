"""Precision is chosen per computation, never by changing the caller's global setting."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import wraps
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from ._checks import check_choice

DTYPES = ("float32", "float64")


def float64() -> AbstractContextManager[Any]:
    """A context in which JAX computes in double precision; the setting outside is untouched."""
    return jax.enable_x64(True)


def precision(dtype: str) -> AbstractContextManager[Any]:
    """A context for computing in `dtype`, "float32" or "float64"."""
    check_choice("dtype", dtype, DTYPES)
    return jax.enable_x64(dtype == "float64")


def cast(tree: Any, dtype: str) -> Any:
    """Every floating leaf of `tree` as an array of `dtype`; other leaves stay as they are."""
    check_choice("dtype", dtype, DTYPES)

    def leaf(value: Any) -> Any:
        array = np.asarray(value)
        return _on_device(array, dtype) if array.dtype.kind == "f" else value

    with precision(dtype):
        return jax.tree.map(leaf, tree)


def traced(*trees: Any) -> bool:
    """Whether any leaf is a value of a running JAX program, which has no numbers yet."""
    try:
        for leaf in jax.tree.leaves(trees):
            np.asarray(leaf)
    except jax.errors.TracerArrayConversionError:
        return True
    return False


Function = TypeVar("Function", bound=Callable[..., Any])


def own_precision(function: Function) -> Function:
    """`function`, computed in float64 if any argument is, whatever JAX's global setting is.

    Inside a JAX program, which has a precision already, it is called as it is.
    """

    @wraps(function)
    def called(*args: Any, **options: Any) -> Any:
        if traced(args, options):
            return function(*args, **options)
        leaves = jax.tree.leaves((args, options))
        wide = any(isinstance(v, float) or getattr(v, "dtype", None) == np.float64 for v in leaves)
        with precision("float64" if wide else "float32"):
            return function(*args, **options)

    return called  # type: ignore[return-value]


_ALIGNMENT = 64
"""Bytes. JAX adopts a host buffer that starts at a multiple of this, and copies any other."""


def _on_device(array: Any, dtype: str) -> Any:
    """One copy of `array` in `dtype`, not two: it is converted into a buffer that JAX adopts."""
    size = array.size * np.dtype(dtype).itemsize
    room = np.empty(size + _ALIGNMENT, np.uint8)
    first = -room.ctypes.data % _ALIGNMENT
    fresh = room[first : first + size].view(dtype).reshape(array.shape)
    np.copyto(fresh, array, casting="same_kind")
    return jax.device_put(fresh, may_alias=True)


def in_float64(program: Callable[..., Any], *arrays: Any) -> Any:
    """The program's results as NumPy arrays, computed in float64 from these pytrees."""
    with float64():
        inputs = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), arrays)
        return jax.tree.map(np.asarray, program(*inputs))
