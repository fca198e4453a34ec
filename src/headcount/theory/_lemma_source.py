"""Where a lemma's constant was made: the line of its file."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ._ball_value import Equation
from ._claim import Claim


def line_of(lemma: Claim, variant: str, value: float, step: Equation | None) -> str:
    """ " in line 3 of my_lemma.py": where the constant was made or, failing that, taken."""
    code = lemma.function.__code__
    file = Path(code.co_filename)
    closed_over = inspect.getclosurevars(lemma.function)
    line = _assigned(file, value, {**closed_over.globals, **closed_over.nonlocals})
    declared = [*lemma.constants.get(variant, {}).values(), *(h.threshold for h in lemma.given)]
    if line is None and value not in [part for part in declared if not callable(part)]:
        line = _traced(file, step)
    return f" in line {line or code.co_firstlineno} of {file.name}"


def _assigned(file: Path, value: float, names: Mapping[str, Any]) -> int | None:
    """The line that binds a name to the constant, or to an array that has it."""
    holders = {name for name, held in names.items() if _holds(held, value)}
    if not holders or not file.is_file():
        return None
    lines = (
        node.lineno
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in holders
    )
    return next(lines, None)


def _holds(held: Any, value: float) -> bool:
    if not isinstance(held, (int, float)) and not hasattr(held, "__array__"):
        return False
    array = np.asarray(held)
    return array.dtype.kind == "f" and bool(np.any(array == value))


def _traced(file: Path, step: Equation | None) -> int | None:
    """The line of the file at which an equation was traced."""
    traceback = getattr(getattr(step, "source_info", None), "traceback", None)
    frames = getattr(traceback, "frames", ())
    return next((f.line_num for f in frames if Path(f.file_name) == file), None)
