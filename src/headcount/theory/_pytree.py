"""Frozen instance classes that JAX can map over: arrays are data, names and counts are static."""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, get_args

import jax
import numpy as np

from ..core import BadArgument
from ..core._results import equal_by_content

Class = TypeVar("Class", bound=type)
_STATIC = ("str", "int", str, int)


def instance_class(cls: Class) -> Class:
    """Register a frozen dataclass as a pytree; fields annotated `str` or `int` are static."""
    static = [f.name for f in dataclasses.fields(cls) if f.type in _STATIC]
    data = [f.name for f in dataclasses.fields(cls) if f.name not in static]
    jax.tree_util.register_dataclass(cls, data_fields=data, meta_fields=static)
    return equal_by_content(cls)


class Batch(Sequence[Any]):
    """Instances along the leading axis of the arrays of one: they are split when asked for."""

    def __init__(self, tree: Any) -> None:
        self.tree = tree

    def __len__(self) -> int:
        """How many instances there are."""
        return len(jax.tree.leaves(self.tree)[0])

    def __getitem__(self, k: Any) -> Any:
        """Instance k."""
        if not 0 <= k < len(self):
            raise IndexError(k)
        return jax.tree.map(lambda leaf: leaf[k], self.tree)


def arrays_of(instance: Any) -> dict[str, Any]:
    """The fields of an instance: arrays as NumPy float64, names and counts as they are."""
    fields = {f.name: getattr(instance, f.name) for f in dataclasses.fields(instance)}
    return {
        name: value if isinstance(value, (str, int)) else np.asarray(value, dtype=np.float64)
        for name, value in fields.items()
    }


def instance_from(kind: type, values: Mapping[str, Any]) -> Any:
    """An instance of a class from its fields: every field there, no other, of the right sort.

    Array shapes must agree with the letters of the class's annotations: one size for each letter.
    """
    names = {f.name for f in dataclasses.fields(kind)}
    for name in names - set(values):
        raise BadArgument("instance", name, "is missing", fix=f"{kind.__name__} needs it")
    for name in set(values) - names:
        raise BadArgument("instance", name, f"is no field of {kind.__name__}", fix="leave it out")
    for field in dataclasses.fields(kind):
        wanted = {"str": str, "int": int}.get(str(getattr(field.type, "__name__", field.type)))
        value = values[field.name]
        if wanted is not None:
            right = isinstance(value, wanted) and not isinstance(value, bool)
        else:
            right = not isinstance(value, (str, int))
        if not right:
            sort = "a number array" if wanted is None else wanted.__name__
            raise BadArgument("instance", field.name, f"must be {sort}", fix="write it again")
    instance = kind(**values)
    _check_sizes(instance)
    return instance


def axes_of(kind: type) -> dict[str, tuple[str, ...]]:
    """The letters of every array field, from annotations such as Float[Array, "n T d"]."""
    letters = {}
    for field in dataclasses.fields(kind):
        if field.type in _STATIC:
            continue
        if isinstance(field.type, str):
            match = re.search(r"""["']([^"']*)["']""", field.type)
            assert match is not None, f"{kind.__name__}.{field.name} names no axes"
            letters[field.name] = tuple(match[1].split())
        else:
            shaped = (*get_args(field.type), field.type)[0]  # Array is a union of array types
            letters[field.name] = tuple(shaped.dim_str.split())
    return letters


def _check_sizes(instance: Any) -> None:
    sizes: dict[str, int] = {}
    for name, axes in axes_of(type(instance)).items():
        shape = np.shape(getattr(instance, name))
        if len(shape) != len(axes):
            problem = f"has {len(shape)} axes, not {len(axes)} ({' '.join(axes)})"
            raise BadArgument("instance", name, problem, fix="write it again")
        for axis, size in zip(axes, shape, strict=True):
            expected = int(axis) if axis.isdigit() else sizes.setdefault(axis, size)
            if axis.isidentifier() or axis.isdigit():
                if size != expected:
                    problem = f"has {size} entries along {axis}, not {expected}"
                    raise BadArgument("instance", name, problem, fix="write it again")
                if size == 0:
                    raise BadArgument("instance", name, f"is empty along {axis}", fix="fill it")
