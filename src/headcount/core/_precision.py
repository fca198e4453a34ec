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
        return jax.numpy.asarray(array.astype(dtype)) if array.dtype.kind == "f" else value

    with precision(dtype):
        return jax.tree.map(leaf, tree)
