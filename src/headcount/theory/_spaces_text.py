"""Points of spaces in LaTeX."""

from __future__ import annotations

from typing import Any

from ..core import Array


def put(formula: str, name: str) -> str:
    """The formula with a name in it."""
    return formula.replace("{x}", name)


def latex_name(name: str) -> str:
    """z, or \\mathrm{long}_{0}."""
    head, _, rest = name.partition("_")
    head = head if len(head) == 1 else rf"\mathrm{{{head}}}"
    below = rest.replace("_", r"\_")
    return rf"{head}_{{{below}}}" if rest else head


def _digits(value: Any) -> str:
    """The shortest decimal that reads back to the same float64."""
    return repr(float(value)).removesuffix(".0")


def latex_array(x: Array) -> str:
    """A number, a column in a line, or a matrix; of more axes, one matrix after another."""
    if x.ndim == 0:
        return _digits(x)
    if x.ndim == 1:
        entries = ",".join(_digits(v) for v in x)
        return rf"({entries})^\top"
    if x.ndim > 2:
        return rf"\left({','.join(latex_array(part) for part in x)}\right)"
    rows = r"\\".join("&".join(_digits(v) for v in row) for row in x)
    return rf"\begin{{pmatrix}}{rows}\end{{pmatrix}}"
