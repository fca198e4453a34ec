"""Words and tables as Markdown, for the pages that are generated."""

from __future__ import annotations

import html
import re

from headcount.report.site._claims import prose


def escape(text: str) -> str:
    """Prose as Markdown that shows exactly these characters; `names` in backticks stay code."""
    parts = re.split(r"(`[^`\n]+`)", text)
    plain = (re.sub(r"([\\*_\[\]#|{}])", r"\\\1", html.escape(p, quote=False)) for p in parts[::2])
    return "".join(a + b for a, b in zip(plain, [*parts[1::2], ""], strict=True))


def typeset(text: str) -> str:
    """Prose with its powers, indices and formulas typeset, as in the report."""
    parts = re.split(r"(<[^>]*>)", str(prose(text)))
    parts[::2] = (re.sub(r"([\\*_\[\]#|{}])", r"\\\1", words) for words in parts[::2])
    return "".join(parts)


def table(headings: list[str], rows: list[list[str]]) -> list[str]:
    """A Markdown table."""
    lines = [headings, ["---"] * len(headings), *rows]
    return ["| " + " | ".join(cell.replace("\n", " ") for cell in line) + " |" for line in lines]
