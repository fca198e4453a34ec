"""Which functions of the package each test runs, from one run of the tests.

Tests run once in a copy of the tree whose functions say that they run, in worker processes and
commands too. Tests that run the function of a mutant concern it: those that run little else first,
then those that run other functions of its file, then those of its folder: as many as are cheap.
"""

from __future__ import annotations

import ast
import builtins
import json
import os
import resource
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FILE = "HEADCOUNT_RAN"
"""The environment variable that names the file where functions are noted."""
BUDGET = 40.0
"""Seconds that the tests of one mutant may have taken when they were recorded."""
_EVERY_FILE = 3
"""So many tests of every file come first: files test different things."""
_RECORDER = f"""
import builtins, os
_seen = {{}}
def _ran(name):
    file = os.environ.get({FILE!r}, "")
    if name not in _seen.setdefault(file, set()):
        _seen[file].add(name)
        if file:
            with open(file, "a") as noted:
                noted.write(name + "\\n")
builtins.__ran__ = _ran
"""


def instrument(package: Path) -> None:
    """Every function in the sources of `package` notes that it runs."""
    for path in package.rglob("*.py"):
        if path.name != "__init__.py":
            source = path.read_text()
            path.write_text(instrumented(str(path.relative_to(package)), source))
    with (package / "__init__.py").open("a") as top:
        top.write(_RECORDER)


def instrumented(path: str, source: str) -> str:
    """The source with a note at the start of every function, on the line of what follows."""
    lines = source.splitlines(keepends=True)
    for first, name in reversed(list(_starts(ast.parse(source).body, ""))):
        # A decorator begins the statement, after its "@", which has the statement's column.
        row = min(node.lineno for node in (first, *getattr(first, "decorator_list", [])))
        line = lines[row - 1].encode()
        before, after = line[: first.col_offset].decode(), line[first.col_offset :].decode()
        simple = not hasattr(first, "body") and not isinstance(first, ast.Match)
        between = "; " if simple else "\n" + before
        lines[row - 1] = f"{before}__ran__({f'{path}:{name}'!r}){between}{after}"
    return "".join(lines)


def beside(path: str) -> str:
    """The folder of a source, without the last part of a paper's: tests have none for it."""
    return path.rpartition("/")[0].removesuffix("/figures").removesuffix("/claims")


def functions(source: str) -> set[str]:
    """The names of all functions that `instrumented` lets say that they run."""
    return {name for _, name in _starts(ast.parse(source).body, "")}


def _starts(body: list[ast.stmt], within: str) -> Iterator[tuple[ast.stmt, str]]:
    """The first statement of every function and its name, in the order of the file."""
    for node in body:
        name = within
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            name = f"{within}.{node.name}".removeprefix(".")
        if isinstance(node, ast.FunctionDef):
            own = node.body[ast.get_docstring(node, clean=False) is not None :]
            yield from [(first, name) for first in own[:1]]
        for block in ("body", "orelse", "finalbody"):
            yield from _starts(getattr(node, block, []), name)
        for part in (*getattr(node, "handlers", []), *getattr(node, "cases", [])):
            yield from _starts(part.body, name)


def _spent() -> float:
    """Processor time of this process and of those that it waited for."""
    own, others = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime


class Recorder:
    """A pytest plugin: writes for every test what it ran and how long, as lines of JSON."""

    def __init__(self, file: Path) -> None:
        self.file, self.noted = file, Path(f"{file}.noted")

    def pytest_runtest_protocol(self, item: Any) -> None:
        """Before a test; nothing is returned, so that pytest goes on."""
        os.environ[FILE] = str(self.noted)
        self.noted.write_text("")
        # What this process noted for the test before does not count for this one.
        getattr(builtins, "__ran__").__globals__["_seen"].clear()  # noqa: B009
        self.begun = _spent(), time.monotonic()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """After it."""
        spent, clock = _spent() - self.begun[0], time.monotonic() - self.begun[1]
        functions = sorted(set(self.noted.read_text().split("\n")) - {""})
        row = {"test": nodeid, "seconds": spent, "clock": clock, "functions": functions}
        with self.file.open("a") as rows:
            print(json.dumps(row), file=rows)


@dataclass
class Tests:
    """What is known of all tests."""

    seconds: dict[str, float] = field(default_factory=dict)
    clock: dict[str, float] = field(default_factory=dict)
    breadth: dict[str, int] = field(default_factory=dict)
    """How many functions a test runs."""
    of_function: dict[str, list[str]] = field(default_factory=dict)
    of_file: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> Tests:
        """From the files that `Recorder` wrote."""
        self = cls()
        for file in sorted(folder.glob("*.jsonl")):
            self.add(file)
        return self

    def add(self, file: Path) -> None:
        """What `Recorder` wrote of one file of tests."""
        for line in file.read_text().splitlines():
            self._add(json.loads(line))

    def _add(self, row: dict[str, Any]) -> None:
        test = row["test"]
        self.seconds[test], self.clock[test] = row["seconds"], row["clock"]
        self.breadth[test] = len(row["functions"])
        for function in row["functions"]:
            self.of_function.setdefault(function, []).append(test)
        for path in {function.partition(":")[0] for function in row["functions"]}:
            self.of_file.setdefault(path, []).append(test)

    def concerning(
        self,
        path: str,
        function: str,
        without: Callable[[str], bool],
        *,
        budget: float = BUDGET,
        wide: bool = True,
    ) -> list[str]:
        """The tests for a change in this function: the likely and cheap ones first.

        As many as take so many seconds. Unless `wide`, only those that run the function.
        """
        folder = f"tests/{beside(path)}/"
        tiers = (
            self.of_function.get(f"{path}:{function}", []),
            self.of_file.get(path, []),
            [test for test in self.seconds if test.startswith(folder)],  # of what ran at import
        )
        used = tiers if wide else tiers[:1]
        ordered = dict.fromkeys(t for tier in used for t in self._spread(tier) if not without(t))
        chosen, left = list[str](), budget
        for test in ordered:
            if not chosen or self.seconds[test] <= left:
                chosen.append(test)
                left -= self.seconds[test]
        return chosen

    def _spread(self, tests: list[str]) -> list[str]:
        """Focused and cheap ones first; a few of each file before the rest of any."""
        files: dict[str, list[str]] = {}
        for test in sorted(tests, key=lambda t: (0.2 + self.seconds[t]) * self.breadth[t]):
            files.setdefault(test.partition("::")[0], []).append(test)
        first = [test for own in files.values() for test in own[:_EVERY_FILE]]
        return [*first, *(test for own in files.values() for test in own[_EVERY_FILE:])]

    def limits(self, tests: list[str]) -> tuple[float, float]:
        """Processor time and time of the clock after which these tests hang."""
        spent = sum(self.seconds.get(test, 1.0) for test in tests)
        waited = sum(max(self.seconds.get(t, 1.0), self.clock.get(t, 1.0)) for t in tests)
        return 40 + 3 * spent, 90 + 6 * waited
