"""Shapes and dtypes in annotations are checked at every call, in the tests.

`only_shapes` is the type checker that jaxtyping's import hook applies to every function: beartype,
for the annotations that speak of arrays. What else an argument may be (an int, a name) is not its
business: those mistakes have messages of their own, and tests of them.
"""

import collections.abc
import inspect
from collections.abc import Callable
from typing import Any, get_args, get_origin

from beartype import beartype
from jaxtyping import AbstractArray


def only_shapes(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, its annotated shapes checked at every call."""
    hints = function.__annotations__
    kept = {name: hint for name, hint in hints.items() if _speaks_of_arrays(hint)}
    if not kept:
        return function
    function.__annotations__ = {name: kept.get(name, Any) for name in hints}
    return beartype(function)


def _speaks_of_arrays(hint: Any) -> bool:
    if inspect.isclass(hint) and issubclass(hint, AbstractArray):
        return True
    if get_origin(hint) is collections.abc.Callable:  # only its being callable could be checked
        return False
    return any(_speaks_of_arrays(part) for part in get_args(hint))
