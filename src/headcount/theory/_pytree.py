"""Frozen instance classes that JAX can map over: arrays are data, names are static."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

import jax
import numpy as np

Class = TypeVar("Class", bound=type)


def instance_class(cls: Class) -> Class:
    """Register a frozen dataclass as a pytree; fields annotated `str` or `int` are static."""
    static = [f.name for f in dataclasses.fields(cls) if f.type in ("str", "int")]
    data = [f.name for f in dataclasses.fields(cls) if f.name not in static]
    return jax.tree_util.register_dataclass(cls, data_fields=data, meta_fields=static)


def arrays_of(instance: Any) -> dict[str, Any]:
    """The fields of an instance: arrays as NumPy float64, names and counts as they are."""
    fields = {f.name: getattr(instance, f.name) for f in dataclasses.fields(instance)}
    return {
        name: value if isinstance(value, (str, int)) else np.asarray(value, dtype=np.float64)
        for name, value in fields.items()
    }
