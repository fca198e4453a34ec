"""A package whose names are imported when somebody asks: listing papers stays light."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Callable
from typing import Any

# Written once: type checkers and readers see imports, and nothing is loaded before it is used.
_SHOWN = re.compile(r"^    from (\.[\w.]+) import (\w+) as \2$", re.MULTILINE)


def front_door(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """A package's `__getattr__` and `__dir__`: the names that it imports for type checkers only."""
    where = {
        name: module for module, name in _SHOWN.findall(inspect.getsource(sys.modules[package]))
    }

    def find(name: str) -> Any:
        if name not in where:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(importlib.import_module(where[name], package), name)
        setattr(sys.modules[package], name, found)
        return found

    return find, lambda: sorted(where)


def facade(package: str, **modules: str) -> Callable[[str], Any]:
    """A module's `__getattr__`: the names, in words, that each of its modules has.

    Its own modules are found, too.
    """
    where = {name: module for module, names in modules.items() for name in names.split()}

    def find(name: str) -> Any:
        if name in where:
            return getattr(importlib.import_module(f"{package}.{where[name]}"), name)
        if name.startswith("_"):
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            return importlib.import_module(f"{package}.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"{package}.{name}":
                raise
            known = ", ".join(sorted(where))
            problem = f"module {package!r} has no attribute {name!r}; it has {known}"
            raise AttributeError(problem) from None

    return find
