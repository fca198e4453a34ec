"""How results show themselves: one line at the prompt; tables, formulas, curves in a notebook.

Whatever is shown is escaped: names and messages may come from files of other people.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any

LINE = 119
"""Characters of a `repr`, at most."""
_CURVE = (260, 60)
"""Width and height of a curve, in pixels."""
_POINTS = 130


class Shown:
    """A result that shows itself by `summary()`; its dataclass is declared with repr=False."""

    def summary(self) -> dict[str, Any]:
        """What is worth showing, by name; arrays appear as dtype and shape."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore

    def pictures(self) -> str:
        """What a notebook shows below the table: HTML."""
        return ""

    def __repr__(self) -> str:
        parts = [f"{name}={brief(value)}" for name, value in self.summary().items()]
        return one_line(type(self).__name__, parts)

    def _repr_html_(self) -> str:
        shown = self.summary().items()
        rows = [(name, value if isinstance(value, str) else brief(value)) for name, value in shown]
        return html_table(rows, caption=type(self).__name__) + self.pictures()


def one_line(name: str, parts: Sequence[str]) -> str:
    """`Name(part, part, ...)` on one line: the parts that fit, the first cut if it must be.

    >>> one_line("Claim", ["smith2030/lemma-1", "x" * 200])
    'Claim(smith2030/lemma-1, ...)'
    """
    parts = [" ".join(part.split()) for part in parts]
    whole = f"{name}({', '.join(parts)})"
    if len(whole) <= LINE:
        return whole
    kept = list(parts)
    while len(kept) > 1 and len(f"{name}({', '.join(kept)}, ...)") > LINE:
        kept.pop()
    return f"{name}({', '.join(kept)[: LINE - len(name) - 7]}, ...)"


def html_table(rows: Iterable[Sequence[Any]], heads: Sequence[str] = (), caption: str = "") -> str:
    """A small table; without heads the first column is one. Every cell is escaped.

    >>> html_table([("a", "<b>")])
    '<table><tr><th>a</th><td>&lt;b&gt;</td></tr></table>'
    """
    top = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    if heads:
        top += f"<tr>{''.join(f'<th>{html.escape(head)}</th>' for head in heads)}</tr>"
    body = ""
    for row in rows:
        cells = [html.escape(brief(cell, 10_000)) for cell in row]
        tags = ["td" if heads or place else "th" for place in range(len(cells))]
        body += "<tr>"
        body += "".join(f"<{tag}>{cell}</{tag}>" for tag, cell in zip(tags, cells, strict=True))
        body += "</tr>"
    return f"<table>{top}{body}</table>"


def html_words(*paragraphs: str) -> str:
    """Paragraphs of plain words, escaped; empty ones are left out."""
    return "".join(f"<p>{html.escape(words)}</p>" for words in paragraphs if words)


def html_formula(latex: str) -> str:
    """A displayed formula as MathML, which browsers typeset themselves; empty for no formula."""
    from latex2mathml.converter import convert

    return convert(latex, display="block") if latex else ""


def html_curve(values: Any, says: str) -> str:
    """Numbers in their order as a small line, logarithmic where all are positive.

    Of many numbers some are drawn; those that are not finite end the line.
    """
    import numpy as np

    numbers = np.asarray(values, dtype=float).ravel()
    numbers = numbers[np.isfinite(numbers)]
    if numbers.size < 2:
        return ""
    first, last = numbers[0], numbers[-1]
    some = numbers[np.unique(np.linspace(0, numbers.size - 1, _POINTS).astype(int))]
    heights = np.log10(some) if some.min() > 0 else some
    low, span = heights.min(), max(float(np.ptp(heights)), 1e-12)
    width, height = _CURVE
    across = np.linspace(2, width - 2, some.size)
    up = height - 2 - (height - 4) * (heights - low) / span
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(across, up, strict=True))
    words = f"{says}: {first:.3g} to {last:.3g}{', logarithmic' if some.min() > 0 else ''}"
    return (
        f'<figure style="margin:.3em 0"><svg width="{width}" height="{height}" role="img" '
        f'aria-label="{html.escape(words)}"><polyline fill="none" stroke="currentColor" '
        f'stroke-width="1.5" points="{line}"/></svg>'
        f"<figcaption><small>{html.escape(words)}</small></figcaption></figure>"
    )


def brief(value: Any, most: int = 60) -> str:
    """A value in a few characters.

    >>> import numpy as np
    >>> brief(np.zeros((3, 2))), brief({"a": np.zeros(2)}), brief(0.123456789)
    ('float64[3, 2]', '{a: float64[2]}', '0.123457')
    """
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        if value.ndim == 0:
            return brief(value.item())
        return f"{value.dtype}{list(value.shape)}"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {brief(v)}" for k, v in value.items()) + "}"
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= most else text[: most - 3] + "..."


def brief_nested(value: Any) -> str:
    """Nested lists of numbers with six digits each.

    >>> brief_nested([[1.0, 2.5], [1 / 3, 0.0]])
    '[[1, 2.5], [0.333333, 0]]'
    """
    if isinstance(value, list):
        return f"[{', '.join(map(brief_nested, value))}]"
    return brief(value)
