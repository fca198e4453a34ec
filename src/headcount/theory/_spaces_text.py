"""Points of spaces in LaTeX."""

from __future__ import annotations

import re
from typing import Any

from ..core import Array


def put(formula: str, name: str) -> str:
    """The formula with a name in it."""
    return formula.replace("{x}", name)


def latex_name(name: str) -> str:
    """z, or \\mathrm{long}_{0}."""
    head, _, rest = name.partition("_")
    if _GREEK.fullmatch(head):
        head = rf"\{head}"
    elif len(head) != 1:
        head = rf"\mathrm{{{head}}}"
    below = rest.replace("_", r"\_")
    return rf"{head}_{{{below}}}" if rest else head


_GREEK = re.compile(
    "[Gg]amma|[Dd]elta|[Tt]heta|[Ll]ambda|[Xx]i|[Pp]i|[Ss]igma|[Uu]psilon|[Pp]hi|[Pp]si|[Oo]mega|"
    "alpha|beta|epsilon|zeta|eta|iota|kappa|mu|nu|rho|tau|chi"
)


def latex_text(text: str) -> str:
    r"""Text in which no character means something to LaTeX.

    >>> print(latex_text("my_lemma: 5 % of {x}"))
    my\_lemma: 5 \% of \{x\}
    """
    words = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    return "".join(words.get(c, f"\\{c}" if c in "_%#&${}" else c) for c in text)


def latex_number(shown: str) -> str:
    """A number that is shown as Python does, such as 1e-05 or inf.

    >>> print(latex_number("1e-05"), latex_number("-inf"), latex_number("2.5"))
    10^{-5} -\\infty 2.5
    """
    if shown.lstrip("+-") in ("inf", "nan"):
        return shown.replace("inf", r"\infty").replace("nan", r"\mathrm{nan}")
    digits, _, power = shown.partition("e")
    if not power:
        return shown
    factor = {"1": "", "-1": "-"}.get(digits, rf"{digits}\cdot ")
    return f"{factor}10^{{{int(power)}}}"


def _digits(value: Any) -> str:
    """The shortest decimal that reads back to the same float64."""
    return latex_number(repr(float(value)).removesuffix(".0"))


def latex_array(x: Array) -> str:
    """A number, a column in a line, or a matrix; of more axes, one matrix after another."""
    if x.size == 1:
        return _digits(x.item())
    if x.ndim == 1:
        entries = ",".join(_digits(v) for v in x)
        return rf"({entries})^\top"
    if x.ndim > 2:
        return rf"\left({','.join(latex_array(part) for part in x)}\right)"
    rows = r"\\".join("&".join(_digits(v) for v in row) for row in x)
    return rf"\begin{{pmatrix}}{rows}\end{{pmatrix}}"
