"""Results that JAX can map over: frozen dataclasses whose arrays are leaves."""

import dataclasses
from typing import Any, NamedTuple, TypeVar

import jax

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
        return cls

    return register
