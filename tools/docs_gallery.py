"""The gallery of the documentation: every figure as a card, from the verdicts that ship.

A card has the picture `docs/pictures/<paper>-<figure>.webp`, from tools.verdicts. Where there is
none, one is drawn here from docs/verdicts: for each sentence the expected range as a band, the
interval as a line, and a mark for the outcome. A figure without a file of verdicts says so.
"""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from headcount.core import papers
from headcount.lab import CONFIRMED, INCONCLUSIVE, NOT_CONFIRMED, NOT_JUDGED
from headcount.lab._findings import KINDS
from headcount.lab._readings import tally

from .docs_words import escape, table, typeset

DOCS = Path(__file__).parents[1] / "docs"
MARKS = {CONFIRMED: "●", NOT_CONFIRMED: "✕", INCONCLUSIVE: "■", NOT_JUDGED: "○"}
"""Of each outcome, so that nothing hangs on colour alone."""
WHOSE = {"paper": "the paper's sentence", "ours": "our expectation", "sanity": "check of the run"}
_WIDTH, _ROW, _SHOWN, _LETTERS = 340, 44, 5, 58

LEGEND = (
    "In a drawing each row is a sentence with an axis of its own: the band is what the sentence "
    "expects, the line the 95 % interval of what was measured, the mark the outcome: "
    + ", ".join(f"{mark} {outcome}" for outcome, mark in MARKS.items())
    + "."
)

Entry = Mapping[str, Any]


def on_file(folder: Path = DOCS / "verdicts") -> dict[str, Entry]:
    """Every figure's shipped verdicts, by figure."""
    stored = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json")]
    return {entry["figure"]: entry for entry in stored}


def picture_of(figure: str, folder: Path = DOCS, kind: str = "") -> str:
    """The file in docs/ that shows a figure, or its "-readings"; empty where none ships."""
    names = (f"pictures/{figure.replace('/', '-')}{kind}.{made}" for made in ("webp", "png"))
    return next((name for name in names if (folder / name).is_file()), "")


def sorted_verdicts(entry: Entry) -> list[Entry]:
    """The paper's sentences first, then ours, then checks of the run."""
    return sorted(entry["verdicts"], key=lambda verdict: KINDS.index(verdict["source"]["kind"]))


def drawing(verdicts: Sequence[Entry]) -> str:
    """Numbers of the first few verdicts as one SVG: band expected, line interval, mark outcome."""
    shown = verdicts[:_SHOWN]
    rows = "".join(_row(verdict, number) for number, verdict in enumerate(shown))
    height = _ROW * len(shown)
    return (
        f'<svg class="verdicts" viewBox="0 0 {_WIDTH} {height}" role="img" '
        f'aria-label="{len(shown)} verdicts with intervals">{rows}</svg>'
    )


def _row(verdict: Entry, number: int) -> str:
    top, outcome = number * _ROW, verdict["outcome"]
    words = str(verdict["claim"])
    short = words if len(words) <= _LETTERS else words[: _LETTERS - 1].rstrip() + "…"
    css = outcome.replace(" ", "-")
    parts = [
        f"<g><title>{_literal(verdict.get('sentence') or words)}</title>",
        f'<text x="0" y="{top + 13}">{_literal(short)}</text>',
        f'<rect class="axis" x="0" y="{top + 27}" width="{_WIDTH - 20}" height="1"/>',
    ]
    place = _axis(verdict)
    if place is not None:
        least, most = verdict["expected"]
        low = place(-math.inf if least is None else least)
        high = place(math.inf if most is None else most)
        band = f'x="{low:.1f}" y="{top + 20}" width="{max(high - low, 1.5):.1f}" height="15"'
        parts.append(f'<rect class="band" {band}/>')
        ends = verdict["interval"]
        if None not in ends:
            left, right = (place(end) for end in ends)
            line = f'x="{left:.1f}" y="{top + 26}" width="{max(right - left, 1.5):.1f}" height="3"'
            parts.append(f'<rect class="{css}" {line}/>')
    at = place(verdict["value"]) if place is not None else 0.0
    mark = f'<text class="mark {css}" x="{at:.1f}" y="{top + 33}">{MARKS[outcome]}</text>'
    return "".join([*parts, mark, "</g>"])


def _literal(text: str) -> str:
    """These characters in the midst of Markdown, which would read U* and W* as emphasis."""
    return re.sub(r"[\\*_`\[\]~^]", lambda c: f"&#{ord(c[0])};", html.escape(text))


def _axis(verdict: Entry) -> Callable[[float], float] | None:
    """A number's place along the row, infinite ones at its ends; None without a value."""
    if verdict["value"] is None:
        return None
    ends = (verdict["value"], *verdict["interval"], *verdict["expected"])
    usable = [x for x in ends if x is not None and math.isfinite(x)]
    if not usable:
        return None
    # Slopes and changes of logarithms are compared on logarithms too, and are often negative.
    log = verdict["scale"] == "log" and min(usable) > 0

    def seen(number: float) -> float:
        return math.log10(number) if log else float(number)

    low, high = min(map(seen, usable)), max(map(seen, usable))
    margin = 0.15 * (high - low) or 1.0
    low, high = low - margin, high + margin

    def place(number: float) -> float:
        if not math.isfinite(number) or (log and number <= 0):
            return float(number > 0) * (_WIDTH - 20)
        return min(max((seen(number) - low) / (high - low), 0.0), 1.0) * (_WIDTH - 20)

    return place


def outcome_line(entry: Entry) -> str:
    """Scale, seeds, outcomes by whose sentence, and how many readings."""
    counted = tally(entry["verdicts"])
    parts = []
    for kind, name in (("paper", "the paper's"), ("ours", "ours")):
        found = [f"{counted[kind][o]} {o}" for o in MARKS if counted[kind][o]]
        if found:
            parts.append(f"{name}: {', '.join(found)}")
    size = f"{entry['scale']} scale, {len(entry['seeds'])} seeds"
    count = len(entry.get("readings") or [1])
    readings = f"{count} reading{'s' * (count != 1)}"
    return f"{'; '.join(parts) or 'no sentence judged'} ({size}, {readings})"


def card(figure: Any, entry: Entry | None) -> list[str]:
    """One figure: picture, the paper's sentence, outcome, readings, command."""
    page = f"reference/figures/{figure.id}.md"
    lines = [f"-   **[{figure.id}]({page})** {typeset(figure.title)}", ""]
    shipped = picture_of(figure.id)
    verdicts = sorted_verdicts(entry) if entry else []
    if shipped:
        look = "{ .whole loading=lazy }" if figure.layout == (1, 1) else "{ loading=lazy }"
        lines += [f"    [![{escape(figure.title)}]({shipped}){look}]({page})", ""]
    elif verdicts:
        lines += [f"    {drawing(verdicts)}", ""]
    quoted = [v["source"] for v in verdicts if v["source"]["kind"] == "paper"]
    if quoted:
        says, where = typeset(quoted[0]["says"]), escape(quoted[0]["where"])
        lines += [f"    *“{says}”* ({where})", ""]
    elif figure.reference:
        lines += [f"    {escape(figure.reference)}", ""]
    if entry:
        lines += [f"    {escape(outcome_line(entry))}", ""]
    else:
        lines += ["    Not run yet since verdicts have sources.", ""]
    return [*lines, f"    `headcount reproduce {figure.id}`", ""]


def gallery_page(figures: Mapping[str, Any], stored: Mapping[str, Entry]) -> str:
    """Every figure of every paper as a card."""
    lines = ["---", "hide: [navigation, toc]", "---", "", "# Gallery", ""]
    lines += [
        "Every figure of the three papers and beyond them, at the largest scale that was run, with "
        "a sentence of the paper about it and what the data say. A figure's page has every "
        "sentence with its numbers.",
    ]
    if any(name in figures and not picture_of(name) for name in stored):
        lines += ["", LEGEND]
    for key, paper in papers.items():
        own = [figure for name, figure in figures.items() if name.startswith(f"{key}/")]
        if own:
            lines += ["", f"## {key}", "", escape(f"{paper.citation}: {paper.title}")]
            lines += ["", '<div class="grid cards gallery" markdown>', ""]
            for figure in own:
                lines += card(figure, stored.get(figure.id))
            lines += ["</div>"]
    return "\n".join([*lines, ""])


def verdicts_section(figure: str, entry: Entry | None) -> list[str]:
    """What a figure's own page shows: the picture, and every sentence with its numbers."""
    lines = []
    if shipped := picture_of(figure):
        lines += [f"![What was measured](../../../{shipped})", ""]
    if curve := picture_of(figure, kind="-readings"):
        lines += [f"![Every sentence under every reading tried](../../../{curve})", ""]
    if entry is None:
        return [*lines, "Not run yet since verdicts have sources.", ""]
    verdicts = sorted_verdicts(entry)
    robust = {row["claim"]: row for row in entry.get("robustness", ())}
    rows = []
    for verdict in verdicts:
        source, row = verdict["source"], robust.get(verdict["claim"])
        quoted = f"“{typeset(source['says'])}” ({escape(source['where'])})" * bool(source["says"])
        held = f"{row['confirmed']} of {row['readings']}" if row else "-"
        rows.append(
            [
                escape(verdict["claim"]),
                f"{WHOSE[source['kind']]} {quoted}".strip(),
                f"{MARKS[verdict['outcome']]} {verdict['outcome']}",
                escape(verdict.get("sentence") or "-"),
                held,
            ]
        )
    heads = ["sentence", "whose", "outcome", "numbers", "readings that confirm"]
    lines += ["## Verdicts", "", escape(outcome_line(entry)), "", drawing(verdicts), "", LEGEND, ""]
    return [*lines, *table(heads, rows), ""]
