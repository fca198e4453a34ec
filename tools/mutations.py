"""Small wrong changes to a source file, found in its syntax tree."""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

COMPARISONS: dict[type, type] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
}
REVERSED: dict[type, type] = {ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Gt: ast.LtE, ast.GtE: ast.Lt}
ARITHMETIC: dict[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
}
OPPOSITES = (("min", "max"), ("minimum", "maximum"), ("smallest", "largest"), ("argmin", "argmax"))
OTHER_NAME = {a: b for pair in OPPOSITES for a, b in (pair, pair[::-1])}


@dataclass(frozen=True)
class Mutant:
    """One change of one file."""

    path: str
    function: str
    line: int
    start: int
    end: int
    kind: str
    before: str
    after: str
    occurrence: int = 1
    """Among the same changes in one function."""

    @property
    def name(self) -> str:
        """Its name in reports, the same after lines have moved."""
        again = f" (no. {self.occurrence})" if self.occurrence > 1 else ""
        return f"{self.path}:{self.function}: {self.before} -> {self.after}{again}"

    def applied(self, source: str) -> str:
        """The file with the change."""
        return source[: self.start] + self.after + source[self.end :]


def _changed(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """The node with one thing wrong, each in turn."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        for kind, table in (("boundary", COMPARISONS), ("comparison", REVERSED)):
            other = table.get(type(node.ops[0]))
            if other is not None:
                new = copy.deepcopy(node)
                new.ops = [other()]
                yield kind, new
    elif isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        if not _is_text(node.left) and not _is_text(node.right):
            new_operation = copy.deepcopy(node)
            new_operation.op = ARITHMETIC[type(node.op)]()
            yield "arithmetic", new_operation
    elif isinstance(node, ast.BoolOp):
        other_logic = copy.deepcopy(node)
        other_logic.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield "logic", other_logic
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.Not)):
        yield ("sign" if isinstance(node.op, ast.USub) else "not"), copy.deepcopy(node.operand)
    elif isinstance(node, ast.Constant):
        yield from _changed_constant(node)
    elif isinstance(node, ast.Call):
        yield from _changed_call(node)
    elif isinstance(node, ast.Return):
        yield from _changed_return(node)


def _changed_return(node: ast.Return) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(node.value, ast.Tuple) and len(node.value.elts) == 2:
        first, second = node.value.elts
        swapped = ast.Tuple([second, first], ast.Load())
        yield "returned order", ast.Return(swapped)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def _changed_constant(node: ast.Constant) -> Iterator[tuple[str, ast.AST]]:
    value = node.value
    if isinstance(value, bool):
        yield "constant", ast.Constant(not value)
    elif isinstance(value, int):
        yield "off by one", ast.Constant(value + 1)
    elif isinstance(value, float):
        yield "constant", ast.Constant(2 * value if value else 1.0)


def _changed_call(node: ast.Call) -> Iterator[tuple[str, ast.AST]]:
    called = node.func
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    if name in OTHER_NAME:
        new = copy.deepcopy(node)
        if isinstance(new.func, ast.Attribute):
            new.func.attr = OTHER_NAME[name]
        elif isinstance(new.func, ast.Name):
            new.func.id = OTHER_NAME[name]
        yield "min and max", new
    plain = len(node.args) == 2 and not any(isinstance(a, ast.Starred) for a in node.args)
    if plain and not any(_is_text(a) for a in node.args) and name not in _SYMMETRIC:
        swapped = copy.deepcopy(node)
        swapped.args.reverse()
        yield "argument order", swapped


_SYMMETRIC = (
    *OTHER_NAME,
    "zip",
    "isinstance",
    "dot",
    "replace",
    "allclose",
    "array_equal",
    "issubclass",
    # ball arithmetic's own
    *("hull", "_hulls", "equal", "equals"),
)


class _Walk(ast.NodeVisitor):
    """Every mutation, except in annotations, messages, decorators, docstrings and strict=True.

    `zip(..., strict=True)` is an assertion: without it, code that is right does the same. Of
    figures what is drawn and how large each scale is are no verdicts and stay.
    """

    def __init__(self, path: str, source: str) -> None:
        self.path, self.source = path, source
        self.offsets = [0]
        for line in source.splitlines(keepends=True):
            self.offsets.append(self.offsets[-1] + len(line))
        self.within: list[str] = []
        self.found: list[Mutant] = []

    def _position(self, line: int, column: int) -> int:
        text = self.source[self.offsets[line - 1] : self.offsets[line]]
        return self.offsets[line - 1] + len(text.encode()[:column].decode())

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, (ast.Raise, ast.Assert, ast.Import, ast.ImportFrom, ast.JoinedStr)):
            return
        if isinstance(node, ast.keyword) and node.arg in ("strict", "scales", "layout"):
            return
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            if "/figures/" in self.path and node.name.startswith(("plot", "draw_")):
                return
            self.within.append(node.name)
            for child in node.body:
                self.visit(child)
            self.within.pop()
            return
        if isinstance(node, ast.AnnAssign):
            if node.value is not None:
                self.visit(node.value)
            return
        for kind, new in _changed(node):
            self._add(node, kind, ast.unparse(new))
        self.generic_visit(node)

    def _add(self, node: ast.AST, kind: str, text: str) -> None:
        start = self._position(node.lineno, node.col_offset)  # type: ignore[attr-defined]
        end = self._position(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]
        before = " ".join(self.source[start:end].split())
        after = text if isinstance(node, (ast.Constant, ast.Return, ast.Call)) else f"({text})"
        function = ".".join(self.within) or "module"
        self.found.append(
            Mutant(self.path, function, node.lineno, start, end, kind, before, after)  # type: ignore[attr-defined]
        )


def mutants_of(path: str, source: str) -> list[Mutant]:
    """All mutants of a file that differ from it, in its order; strings and annotations stay."""
    walk = _Walk(path, source)
    walk.visit(ast.parse(source))
    seen: Counter[str] = Counter()
    found = []
    for mutant in walk.found:
        if mutant.after != mutant.before:
            seen[mutant.name] += 1
            found.append(replace(mutant, occurrence=seen[mutant.name]))
    return found
