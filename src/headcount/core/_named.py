"""Objects that hold functions and are known by a name: copied as themselves, pickled as a call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

Call = tuple[Callable[..., Any], tuple[Any, ...]]
"""A function of a module and its arguments, as `pickle` wants them."""


class Named:
    """A frozen object that another process finds by name and parameters, never by code."""

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def found_by(self) -> Call | None:
        """The call that makes or finds this object; None: it is pickled field by field."""
        return None

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.found_by() or super().__reduce_ex__(protocol)
