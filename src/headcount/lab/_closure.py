"""The code behind a measuring function: the modules that its own imports, and their libraries.

Found without running anything: imports are read from the source, also those inside functions.
What is imported under a computed name is not seen.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
import sys
from collections.abc import Iterator
from importlib import metadata
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import NamedTuple

_OURS = __name__.partition(".")[0]
_INSTALLED = {"site-packages", "dist-packages"}


class Code(NamedTuple):
    """What numbers depend on beyond Headcount and its own libraries."""

    hash: str
    """Of the module and of all that it imports, except Headcount and libraries."""
    libraries: dict[str, str]
    """Version of every installed library that these import."""


@functools.cache
def code_behind(module: str) -> Code:
    """The code of a module as it was when somebody first asked."""
    own = module.partition(".")[0]
    files: dict[str, str] = {}
    libraries: dict[str, str] = {}
    waiting, seen = [module], {""}
    while waiting:
        name = waiting.pop()
        top = name.partition(".")[0]
        if name in seen or top == _OURS or top in sys.stdlib_module_names:
            continue
        seen.add(name)
        waiting.append(name.rpartition(".")[0])  # importing a.b runs a as well
        spec = _find(name)
        if spec is None or spec.origin is None or not Path(spec.origin).is_file():
            continue  # a name in a module, a folder without code, or not there
        if top != own and _INSTALLED & set(Path(spec.origin).parts):
            libraries[top] = _version(top)
            continue
        files[name] = _hash(spec.origin)
        if spec.origin.endswith(".py"):
            waiting += _imports(spec)
    text = "".join(f"{name}\0{files[name]}\0" for name in sorted(files))
    return Code(hashlib.sha256(text.encode()).hexdigest()[:16], dict(sorted(libraries.items())))


def _find(name: str) -> ModuleSpec | None:
    """Where a module lies; only its parents are looked at, none is imported."""
    above, _, _ = name.rpartition(".")
    if above:
        parent = _find(above)
        folders = None if parent is None else parent.submodule_search_locations
        return None if folders is None else PathFinder.find_spec(name, list(folders))
    try:
        return importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None


def _imports(spec: ModuleSpec) -> Iterator[str]:
    """Every name that a module may import; some are names within modules."""
    package = spec.name if spec.submodule_search_locations else spec.name.rpartition(".")[0]
    try:
        tree = ast.parse(Path(str(spec.origin)).read_bytes())
    except SyntaxError:
        return  # told by whoever imports it
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")
            kept = above[: len(above) - node.level + 1] if node.level else []
            source = ".".join([*kept, *filter(None, [node.module])])
            yield source
            yield from (f"{source}.{alias.name}" for alias in node.names)


@functools.cache
def _hash(file: str) -> str:
    """Of a file as it was when it was first asked for, which is about when it was loaded."""
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()


@functools.cache
def _version(library: str) -> str:
    """The version of the distribution that a module comes from."""
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        names = metadata.packages_distributions().get(library, ())
        return ", ".join(f"{name} {metadata.version(name)}" for name in sorted(set(names)))
