"""Below and above `papers/` nothing knows a paper by its name."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "headcount"
KEYS = [path.parent.name for path in (SOURCE / "papers").glob("*/paper.py")]
KEY = re.compile("|".join(key for key in KEYS if key[-1].isdigit()))
MOST_EXAMPLES = 9


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
