"""A change of a source file, made in a process that has imported the file already.

Importing the package costs more than most tests. What a process has imported can be changed in
place: the functions of the old file get the code of the new one. That is the same as importing the
new file, unless the change is in code that ran at import (module and class bodies, what they
called): then `patch` says no, and whoever asks imports the file afresh.
"""

from __future__ import annotations

import gc
import importlib
import inspect
import os
import pkgutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

Place = tuple[str, str, int]
"""File, qualified name and first line of a code object."""
SKIPPED = ("explore", "report")
"""Layers that are not imported ahead: what they need is heavy and no tests of ours need it."""


def _place(code: CodeType) -> Place:
    return code.co_filename, code.co_qualname, code.co_firstlineno


class Imported:
    """The modules of a package, imported; with the places of all code that ran meanwhile."""

    def __init__(self, folder: Path, package: str) -> None:
        self.ran: set[Place] = set()
        self.sources: dict[str, bytes] = {}
        self._home = home = str(folder)
        sys.setprofile(self._note)
        try:
            self._import(package)
        finally:
            sys.setprofile(None)
        for module in list(sys.modules.values()):
            file = getattr(module, "__file__", None)
            if file and file.startswith(self._home) and module.__spec__ is not None:
                self.sources[module.__name__] = Path(file).read_bytes()
        self.functions: dict[Place, list[FunctionType]] = {}
        for thing in gc.get_objects():
            if isinstance(thing, FunctionType) and thing.__code__.co_filename.startswith(home):
                self.functions.setdefault(_place(thing.__code__), []).append(thing)

    def _note(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(self._home):
            self.ran.add(_place(frame.f_code))

    def _import(self, package: str) -> None:
        above = importlib.import_module(package)
        for found in pkgutil.walk_packages(above.__path__, f"{package}."):
            if found.name.split(".")[1] not in SKIPPED:
                importlib.import_module(found.name)

    def patch(self, name: str) -> bool:
        """Take over what has changed in the file of module `name`; False if that cannot be."""
        module = sys.modules.get(name)
        if module is None or name not in self.sources or not module.__file__:
            return False
        loader: Any = module.__spec__.loader if module.__spec__ is not None else None
        path = os.path.realpath(module.__file__)
        old, new = (
            list(_nested(loader.source_to_code(source, module.__file__)))
            for source in (self.sources[name], Path(path).read_bytes())
        )
        if len(old) != len(new):
            return False
        changed = [a for a, b in zip(old, new, strict=True) if _own(a) != _own(b)]
        if any(_place(code) in self.ran or not _is_function(code) for code in changed):
            return False
        codes = {_place(a): b for a, b in zip(old, new, strict=True) if _is_function(a)}
        return all(self._taken_over(codes, code, old) for code in changed)

    def _taken_over(
        self, codes: dict[Place, CodeType], changed: CodeType, old: list[CodeType]
    ) -> bool:
        """Every function that is the changed code, or has it inside, gets its new code."""
        around = {_place(code) for code in old if changed in _nested(code)}
        found = [(p, f) for p in around & set(codes) for f in self.functions.get(p, [])]
        for place, function in found:
            try:
                function.__code__ = codes[place]
            except ValueError:  # other free variables
                return False
        return bool(found)


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)


def _own(code: CodeType) -> tuple[Any, ...]:
    """What a code object does, without the code inside it and without line numbers."""
    plain = [repr(c) for c in code.co_consts if not isinstance(c, CodeType)]
    return code.co_code, plain, code.co_names, code.co_varnames, code.co_freevars


def _is_function(code: CodeType) -> bool:
    return bool(code.co_flags & inspect.CO_OPTIMIZED)
