"""Precision is chosen per computation, never by changing the caller's global setting."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import jax
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
