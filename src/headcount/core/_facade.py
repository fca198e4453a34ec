"""A package whose names are imported when somebody asks: listing papers stays light."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any


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
