"""Results that JAX can map over: frozen dataclasses whose arrays are leaves."""

import dataclasses
from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np

Class = TypeVar("Class", bound=type)


class _Described(NamedTuple):
    """What describes a result. Two results of one shape map together whatever they are called."""

    values: tuple[Any, ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Described)

    def __ne__(self, other: object) -> bool:  # a tuple has its own
        return not self == other

    def __hash__(self) -> int:
        return 0


_WITH_CONTENT = set[type]()


def equal_by_content(cls: Class) -> Class:
    """Let objects of a dataclass with arrays be equal if all that they hold is; NaN is NaN.

    One that was hashed as an object is hashed by its shapes.
    """

    def equal(one: Any, other: Any) -> Any:
        if type(one) is not type(other):
            return NotImplemented
        names = [field.name for field in dataclasses.fields(one)]
        return all(_same(getattr(one, name), getattr(other, name)) for name in names)

    def by_shapes(one: Any) -> int:
        return hash((cls, *map(np.shape, jax.tree.leaves(vars(one)))))

    if cls.__hash__ is object.__hash__:
        cls.__hash__ = by_shapes  # type: ignore[method-assign,assignment]
    cls.__eq__ = equal  # type: ignore[method-assign,assignment]
    _WITH_CONTENT.add(cls)
    return cls


def _same(one: Any, other: Any) -> bool:
    def leaves(tree: Any) -> tuple[list[Any], Any]:
        return jax.tree.flatten(tree, is_leaf=lambda part: type(part) in _WITH_CONTENT)

    (some, structure), (others, its) = leaves(one), leaves(other)
    return bool(structure == its) and all(map(_same_leaf, some, others))


def _same_leaf(one: Any, other: Any) -> bool:
    if one is other or not (hasattr(one, "dtype") or hasattr(other, "dtype")):
        return one is other or bool(one == other)
    try:
        a, b = np.asarray(one), np.asarray(other)
    except jax.errors.TracerArrayConversionError:
        return False
    return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")


def mappable(*described: str) -> Any:
    """Register a frozen dataclass as a pytree; the fields in `described` are kept as they are.

    Mapping makes objects of any content (shapes lose axes, arrays become tracers), so they are
    put together without the class's own checks.
    """

    def register(cls: Class) -> Class:
        names = [field.name for field in dataclasses.fields(cls)]
        arrays = [name for name in names if name not in described]

        def flatten(result: Any) -> tuple[list[tuple[Any, Any]], _Described]:
            leaves = [(jax.tree_util.GetAttrKey(n), getattr(result, n)) for n in arrays]
            return leaves, _Described(tuple(getattr(result, name) for name in described))

        def unflatten(about: _Described, leaves: Any) -> Any:
            result: Any = object.__new__(cls)
            for name, value in [
                *zip(arrays, leaves, strict=True),
                *zip(described, about.values, strict=True),
            ]:
                object.__setattr__(result, name, value)
            return result

        jax.tree_util.register_pytree_with_keys(cls, flatten, unflatten)
        return equal_by_content(cls)

    return register
