"""`python -m tools.verdicts RESULTS...`: docs/verdicts/<figure>.json and README's table from them.

Reads results folders. The file of a figure holds its best reproduction in the default reading
(paper scale before quick) with every sentence, number, interval, outcome and source, and beside it
`readings`: what the same sentences gave under every other reading at that scale. What is on file
stays where the folders have nothing at its scale or above. A test keeps README equal to the files.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from headcount.core import papers
from headcount.core._files import json_text
from headcount.lab import KINDS, SCALES, Store, figures, robustness, tally
from headcount.lab._findings import OUTCOMES
from headcount.report.site import FigureResult, figure_results

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "verdicts"
README = ROOT / "README.md"
START, END = "<!-- verdicts -->", "<!-- end of verdicts -->"
KEPT = ("figure", "scale", "seeds", "options", "settings", "stand_in", "verdicts")


def collect(folders: list[Path]) -> dict[str, Any]:
    """Figure -> its best reproduction in the default reading, and the others beside it."""
    found = [r for folder in folders for r in figure_results(Store(folder)) if r.scale != "smoke"]
    found.sort(key=lambda r: (-SCALES.index(r.scale), len(r.unusual)))
    best: dict[str, Any] = {}
    for result in found:
        entry = best.setdefault(result.id, _kept(result))
        if result.is_reading_of(entry):
            reading = {k: result.content[k] for k in ("options", "verdicts")}
            if reading["options"] not in [one["options"] for one in entry["readings"]]:
                entry["readings"].append(reading)
    for entry in best.values():
        entry["robustness"] = robustness(entry["readings"])
    return dict(sorted(best.items()))


def _kept(result: FigureResult) -> dict[str, Any]:
    return {name: result.content[name] for name in KEPT} | {"readings": []}


def merged(before: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """What is on file, with what was found in its place where that is of its scale or larger."""

    def scale(entry: dict[str, Any]) -> int:
        return SCALES.index(entry["scale"])

    kept = {name: e for name, e in before.items() if scale(e) > scale(found.get(name, e))}
    return dict(sorted((before | found | kept).items()))


def on_file(folder: Path = FOLDER) -> dict[str, Any]:
    """Every figure's file, by figure."""
    stored = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json")]
    return {entry["figure"]: entry for entry in sorted(stored, key=lambda e: str(e["figure"]))}


def write(entries: dict[str, Any], folder: Path = FOLDER) -> None:
    """One file for each figure."""
    folder.mkdir(exist_ok=True)
    for name, entry in entries.items():
        path = folder / f"{name.replace('/', '-')}.json"
        path.write_text(json_text(entry) + "\n", encoding="utf-8")


def table(entries: dict[str, Any]) -> str:
    """One row for each figure, in Markdown: outcomes by whose sentence was judged."""
    short = " / ".join(OUTCOMES)
    rows = [
        f"Verdicts are counted as {short}, apart for the paper's sentences and our own "
        "expectations; checks of the runs count for neither. A row without numbers was not run "
        "since verdicts have sources.",
        "",
        "| figure | what it shows | scale, seeds | the paper's | ours | readings |",
        "|---|---|---|---|---|---|",
    ]
    ours = {name: f for name, f in figures.items() if name.split("/")[0] in papers.ours}
    for name, figure in sorted(ours.items()):
        entry = entries.get(name)
        if entry is None:
            rows.append(f"| `{name}` | {figure.title} | - | - | - | - |")
            continue
        counted = tally(entry["verdicts"])
        paper, ours = (
            " / ".join(str(counted[kind][outcome]) for outcome in OUTCOMES) for kind in KINDS[:2]
        )
        where = f"{entry['scale']}, {len(entry['seeds'])}"
        cells = (f"`{name}`", figure.title, where, paper, ours, str(len(entry["readings"])))
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def with_table(readme: str, entries: dict[str, Any]) -> str:
    """The README with this table between its marks."""
    before, _, rest = readme.partition(START)
    return f"{before}{START}\n{table(entries)}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    chosen = merged(on_file(), collect([Path(f) for f in sys.argv[1:]]))
    write(chosen)
    README.write_text(with_table(README.read_text(encoding="utf-8"), chosen), encoding="utf-8")
