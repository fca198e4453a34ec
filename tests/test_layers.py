"""Engines know no paper by its name; few tests know a module by its underscore."""

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "headcount"
KEYS = [path.parent.name for path in (SOURCE / "papers").glob("*/paper.py")]
KEY = re.compile("|".join(key for key in KEYS if key[-1].isdigit()))
MOST_EXAMPLES = 9
MOST_OF_INTERNALS = 70
"""Files of tests that import private modules: a redesign may rewrite these, and no others."""


def elsewhere() -> Iterator[tuple[str, str]]:
    """Every text file of the package that is in no room, with what is in it."""
    for path in sorted(SOURCE.rglob("*")):
        if path.is_file() and "papers" not in path.parts and "__pycache__" not in path.parts:
            yield str(path.relative_to(SOURCE)), path.read_bytes().decode("utf-8", "ignore")


def docstrings(code: str) -> list[str]:
    holders = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = (node for node in ast.walk(ast.parse(code)) if isinstance(node, holders))
    return [ast.get_docstring(node, clean=False) or "" for node in nodes]


def test_no_file_outside_the_rooms_names_a_paper_but_as_an_example():
    assert len(KEYS) >= 4
    found = {name: len(KEY.findall(text)) for name, text in elsewhere()}
    examples = {
        name: sum(len(KEY.findall(words)) for words in docstrings(text))
        for name, text in elsewhere()
        if name.endswith(".py")
    }
    named = {name: count for name, count in found.items() if count > examples.get(name, 0)}
    assert not named
    assert 0 < sum(found.values()) <= MOST_EXAMPLES


def private_imports(code: str) -> list[str]:
    """What a test imports of ours whose path has an underscore in it."""
    found = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("headcount"):
            found += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.startswith("headcount")]
    return [path for path in found if re.search(r"\._(?!_)", path)]


def test_few_tests_import_private_modules():
    told = "import headcount.lab._x\nfrom headcount.lab import _x, Plan\nfrom headcount import lab"
    assert private_imports(told) == ["headcount.lab._x"] * 2
    files = (ROOT / "tests").rglob("*.py")
    of_internals = sorted(str(path) for path in files if private_imports(path.read_text()))
    assert len(of_internals) <= MOST_OF_INTERNALS, of_internals


def test_make_quick_has_tests_of_every_layer_and_of_every_room():
    asked = subprocess.run(
        ["make", "--dry-run", "quick"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    paths = [word for word in asked.stdout.split() if word.startswith("tests/")]
    assert all((ROOT / path).exists() for path in paths)
    layers = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()}
    rooms = {f"papers/{key}" for key in KEYS if (ROOT / "tests" / "papers" / key).exists()}
    assert len(rooms) >= 3
    missing = [part for part in layers | rooms if not any(f"tests/{part}" in p for p in paths)]
    assert not missing
