"""The API pages of the documentation: a page for each layer, and one for each of its parts.

A part is the module that defines the names; the layer's own page lists all names in one line each.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import headcount

from .docs_words import escape, table

ROOT = Path(__file__).parents[1]
LAYERS = tuple(name for name in headcount.__all__ if name != "__version__")


def public_names(package: ModuleType) -> list[str]:
    """What a package offers, loaded yet or not: names without an underscore that are no modules."""
    names = sorted({*dir(package)} - {"annotations", "TYPE_CHECKING"})
    return [
        name
        for name in names
        if not name.startswith("_") and not isinstance(getattr(package, name), ModuleType)
    ]


def documentation(package: ModuleType, name: str) -> str:
    """The docstring of a public name; for a constant the string below its assignment."""
    return _home_and_words(package, name)[1]


def _home_and_words(package: ModuleType, name: str) -> tuple[str, str]:
    """The part of the layer that a name belongs to, and what is written about it."""
    value = getattr(package, name)
    if not (inspect.isclass(value) or inspect.isroutine(value)):
        return _constants().get(name, ("", ""))
    return value.__module__.split(".")[-1].strip("_"), inspect.getdoc(value) or ""


@functools.cache
def _constants() -> dict[str, tuple[str, str]]:
    """Names that are assigned in the layers' modules, with the module and the string below."""
    found: dict[str, tuple[str, str]] = {}
    for path in (ROOT / "src" / "headcount").rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        branches = [
            part
            for node in tree.body
            if isinstance(node, ast.If)
            for part in (node.body, node.orelse)
        ]
        for body in (tree.body, *branches):
            for name, words in _below_assignments(body):
                found[name] = (path.stem.strip("_"), words)
    return found


def _below_assignments(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    for node, below in itertools.pairwise(body):
        text = below.value if isinstance(below, ast.Expr) else None
        if isinstance(text, ast.Constant) and isinstance(text.value, str):
            for target in getattr(node, "targets", [getattr(node, "target", None)]):
                if isinstance(target, ast.Name):
                    yield target.id, inspect.cleandoc(text.value)


def _prose(docstring: str) -> list[str]:
    """A docstring as Markdown: paragraphs escaped, examples and tables as code."""
    lines: list[str] = []
    for paragraph in re.split(r"\n\s*\n", docstring):
        indented = all(line.startswith("    ") for line in paragraph.splitlines())
        literal = paragraph.startswith(">>>") or indented or "----" in paragraph
        aligned = bool(re.search(r"\S {3,}\S", paragraph))
        lines += (
            ["", "```text", paragraph, "```"] if literal or aligned else ["", escape(paragraph)]
        )
    return lines


def api_pages(layer: str) -> dict[str, str]:
    """A layer's page, with a line for every public name, and a page for each of its parts."""
    package = importlib.import_module(f"headcount.{layer}")
    parts: dict[str, list[str]] = {}
    rows = []
    for name in public_names(package):
        part, words = _home_and_words(package, name)
        parts.setdefault(part or "more", []).append(name)
        first = " ".join(words.split("\n\n")[0].split())
        rows.append([f"[`{name}`]({layer}/{part or 'more'}.md#{name.lower()})", escape(first)])
    lines = [f"# headcount.{layer}", "", escape(inspect.getdoc(package) or ""), ""]
    pages = {f"reference/api/{layer}.md": "\n".join([*lines, *table(["name", "what it is"], rows)])}
    for part, names in parts.items():
        text = [f"# headcount.{layer}: {part.replace('_', ' ')}", ""]
        text += [f"Import these from [`headcount.{layer}`](../{layer}.md)."]
        for name in names:
            text += _entry(package, name)
        pages[f"reference/api/{layer}/{part}.md"] = "\n".join([*text, ""])
    return pages


def _entry(package: ModuleType, name: str) -> list[str]:
    """One name: signature, docstring, methods."""
    value = getattr(package, name)
    lines = ["", f"## {name}", ""]
    if inspect.isclass(value) or inspect.isroutine(value):
        lines += ["```py", f"{name}{_signature(value)}", "```"]
    lines += _prose(documentation(package, name))
    for method, function in _methods(value):
        shown = f"**`.{method}{_signature(function)}`**"
        lines += ["", shown, *_prose(inspect.getdoc(function) or "")]
    return lines


def _methods(value: Any) -> Iterator[tuple[str, Any]]:
    """The public methods that a class of ours defines itself."""
    if inspect.isclass(value) and value.__module__.startswith("headcount"):
        for name, function in vars(value).items():
            if not name.startswith("_") and inspect.isfunction(function):
                yield name, function


class _Bare(str):
    """An annotation that is shown without quotes."""

    def __repr__(self) -> str:
        return str(self)


def _bare(annotation: Any) -> Any:
    text = getattr(annotation, "__forward_arg__", annotation)
    return _Bare(text) if isinstance(text, str) else annotation


def _signature(value: Any) -> str:
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return "(...)"
    parameters = [p.replace(annotation=_bare(p.annotation)) for p in found.parameters.values()]
    found = found.replace(parameters=parameters, return_annotation=_bare(found.return_annotation))
    return re.sub(r"0x[0-9a-f]+", "0x...", str(found))
