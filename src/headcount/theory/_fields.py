"""Fields of a record that are no arrays: a name among several, a whole number."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any


class Choice:
    """A name among several, such as an activation; the first is the default.

    With `others`, which says why a name is none, more names are allowed than are searched.
    """

    def __init__(self, *names: str, others: Callable[[str], str | None] | None = None) -> None:
        self.names, self.others = names, others

    def problem(self, name: str, value: Any) -> str | None:
        """Why a value is no such name."""
        if value in self.names:
            return None
        if self.others is not None:
            return self.others(value)
        return f"{name} = {value!r} is not one of {', '.join(self.names)}"

    if TYPE_CHECKING:

        def __get__(self, instance: object, owner: type | None = None) -> str: ...


class Static:
    """A whole number that belongs to the shape of a point, such as the steps of a run."""

    def __init__(self, default: int, largest: int = 10**9) -> None:
        self.default, self.largest = default, largest

    def problem(self, name: str, value: Any) -> str | None:
        """Why a value is no such count."""
        if value <= self.largest:
            return None
        return f"{name} = {value} is more than {self.largest}"

    if TYPE_CHECKING:

        def __get__(self, instance: object, owner: type | None = None) -> int: ...
