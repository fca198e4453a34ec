"""What each paper's page says of the sentences that the data do not confirm, from docs/verdicts.

Which readings were tried, in how many the sentence holds, and which choice decides. Written by
`python -m tools.verdicts` between two marks of docs/figures*.md; a test keeps it true.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headcount.lab import CONFIRMED, figures
from headcount.lab._readings import robustness_sentence
from tools.docs_gallery import picture_of
from tools.docs_site import escape

ROOT = Path(__file__).parents[1]
PAGES = {
    "arda2026": "docs/figures.md",
    "deora2024": "docs/figures-deora2024.md",
    "wu2023": "docs/figures-wu2023.md",
}
START, END = "<!-- not confirmed -->", "<!-- end of not confirmed -->"
WORDS = (
    "Every sentence of the paper that a figure judges and that its default reading does not "
    "confirm: what decided, which other readings of the text were tried, and in how many it holds. "
    "Made from [docs/verdicts](verdicts/README.md)."
)

FEW = 6
"""So many readings are listed by name."""

Entry = Mapping[str, Any]


def sections(entries: Mapping[str, Entry], paper: str) -> str:
    """The part of a paper's page between the marks."""
    lines = [WORDS, ""]
    whole, waiting = [], []
    for name in sorted((n for n in figures if n.split("/")[0] == paper), key=_natural):
        entry = entries.get(name)
        if entry is None:
            waiting.append(f"`{name}`")
            continue
        judged = [v for v in entry["verdicts"] if v["source"]["kind"] == "paper"]
        missed = [v for v in judged if v["outcome"] != CONFIRMED]
        if missed:
            lines += [f"### {name}", "", _tried(entry), ""]
            if curve := picture_of(name, kind="-readings"):
                lines += [f"![Every sentence under every reading tried]({curve})", ""]
            lines += [line for verdict in missed for line in _sentence(entry, verdict)]
            lines.append("")
        elif judged:
            whole.append(f"`{name}`")
    if whole:
        lines += [f"All that the paper says is confirmed: {', '.join(whole)}.", ""]
    if waiting:
        lines += [f"Not run since verdicts have sources: {', '.join(waiting)}.", ""]
    return "\n".join(lines).rstrip()


def choices_tried(entry: Entry) -> dict[str, list[str]]:
    """The choices that differ between the readings of a figure, with their values."""
    values: dict[str, list[str]] = {}
    for reading in entry["readings"]:
        for name, value in reading["options"].items():
            if value not in values.setdefault(name, []):
                values[name].append(value)
    axes = figures[entry["figure"]].axes
    known = {name: list(axes[name].values) if name in axes else own for name, own in values.items()}
    return {
        name: sorted(own, key=[*known[name], *own].index)
        for name, own in values.items()
        if len(own) > 1
    }


def _tried(entry: Entry) -> str:
    seeds = f"{len(entry['seeds'])} seeds"
    where = f"At {entry['scale']} scale, {seeds}, in the default reading."
    tried, axes = choices_tried(entry), figures[entry["figure"]].axes
    at = entry.get("readings_scale", entry["scale"])
    if tried:
        listed = "; ".join(f"`{name}`: {', '.join(values)}" for name, values in tried.items())
        where += f" {len(entry['readings'])} readings were tried, at {at} scale ({listed})."
    if untried := [f"`{name}`" for name in axes if name not in tried]:
        where += f" Open and not tried: {', '.join(untried)}."
    return where


def _sentence(entry: Entry, verdict: Mapping[str, Any]) -> list[str]:
    source = verdict["source"]
    lines = [
        f"- **{escape(verdict['claim'])}**: {verdict['outcome']}.",
        f'  The paper: "{escape(source["says"])}" ({escape(source["where"])}).',
        f"  Here: {escape(verdict['sentence'])}.",
    ]
    row = next((r for r in entry["robustness"] if r["claim"] == verdict["claim"]), None)
    if row is not None and row["readings"] > 1:
        words = escape(robustness_sentence(row))
        at = entry.get("readings_scale", entry["scale"])
        words = f"at {at} scale {words}" if at != entry["scale"] else words
        lines.append(f"  {words[0].upper()}{words[1:]}.{_where(entry, verdict)}")
    return lines


def _where(entry: Entry, verdict: Mapping[str, Any]) -> str:
    """The readings in which a sentence holds, or does not, where either are few."""
    default = entry["readings"][0]["options"]
    named: dict[bool, list[str]] = {True: [], False: []}
    for reading in entry["readings"]:
        changed = [f"`{k}={v}`" for k, v in reading["options"].items() if default.get(k) != v]
        for own in reading["verdicts"]:
            if own["claim"] == verdict["claim"]:
                named[own["outcome"] == CONFIRMED].append(" ".join(changed) or "the default")
    held, failed = named[True], named[False]
    if 0 < len(held) <= FEW:
        return f" It holds with {'; '.join(held)}."
    return f" It does not with {'; '.join(failed)}." if held and len(failed) <= FEW else ""


def with_sections(page: str, entries: Mapping[str, Entry], paper: str) -> str:
    """A page with its part between the marks made anew."""
    before, _, rest = page.partition(START)
    return f"{before}{START}\n{sections(entries, paper)}\n{END}{rest.partition(END)[2]}"


def write_pages(entries: Mapping[str, Entry]) -> None:
    """Every paper's page."""
    for paper, name in PAGES.items():
        path = ROOT / name
        text = with_sections(path.read_text(encoding="utf-8"), entries, paper)
        path.write_text(text, encoding="utf-8")


def _natural(name: str) -> list[Any]:
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]
