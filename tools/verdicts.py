"""`python -m tools.verdicts RESULTS...`: docs/verdicts/<figure>.json, and what goes with them.

Reads results folders. The file of a figure holds its best reproduction in the default reading
(paper scale before quick) with every sentence, number, interval, outcome and source, and beside it
`readings`: what the same sentences gave under every other reading, at `readings_scale`, the largest
at which there are others. What is on file stays where the folders have nothing at its scale or
above. README's table and the pages of figures are made from the files; tests keep them equal. The
picture of each run that is on file goes to docs/pictures, small enough for a page.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from headcount.core import papers
from headcount.core._files import json_text
from headcount.lab import SCALES, Store, figures, robustness
from headcount.lab._findings import KINDS, OUTCOMES
from headcount.lab._readings import tally
from headcount.report._tables import chance_sentence
from headcount.report.site import FigureResult, figure_results
from tools import unconfirmed

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "verdicts"
PICTURES = ROOT / "docs" / "pictures"
PIXELS, COLOURS = 1035, 128
"""Half the size at which figures are drawn, and enough colours for lines and maps: 40 kB each."""
README = ROOT / "README.md"
START, END = "<!-- verdicts -->", "<!-- end of verdicts -->"
NUMBERS = ("claim", "outcome", "value", "interval")
KEPT = ("figure", "scale", "seeds", "options", "settings", "stand_in", "verdicts")


def collect(folders: list[Path]) -> dict[str, Any]:
    """Figure -> its best reproduction in the default reading, and the others beside it."""
    found = reproductions(folders)
    best: dict[str, Any] = {}
    for result in found:
        if result.id not in best:
            own = [one for one in found if one.id == result.id]
            best[result.id] = {name: result.content[name] for name in KEPT} | _readings(own)
    return dict(sorted(best.items()))


def reproductions(folders: list[Path]) -> list[FigureResult]:
    """What the folders hold above smoke scale, the largest in the default reading first."""
    found = [r for folder in folders for r in figure_results(Store(folder)) if r.scale != "smoke"]
    return sorted(found, key=lambda r: (-SCALES.index(r.scale), len(r.unusual)))


def _readings(own: list[FigureResult]) -> dict[str, Any]:
    """The readings of a figure at the largest scale that has more than one; the best first."""
    chosen: list[FigureResult] = []
    for scale in dict.fromkeys(result.scale for result in own):
        first = next(result for result in own if result.scale == scale)
        found = [result for result in own if result.is_reading_of(first.content)]
        if not chosen or len(found) > 1:
            chosen = found
        if len(chosen) > 1:
            break
    listed: list[dict[str, Any]] = []
    for result in chosen:
        reading = {"options": _options(result), "verdicts": result.content["verdicts"]}
        if reading["options"] not in [one["options"] for one in listed]:
            listed.append(reading)
    found = {"readings_scale": chosen[0].scale, "robustness": robustness(listed)}
    return {**found, "readings": [_short(reading) for reading in listed]}


def _short(reading: dict[str, Any]) -> dict[str, Any]:
    """A reading with the numbers of its verdicts alone: words and sources are those above."""
    own = [{name: v.get(name) for name in NUMBERS} for v in reading["verdicts"]]
    return {**reading, "verdicts": own}


def _options(result: FigureResult) -> dict[str, str]:
    """The options of a run, our value where it is older than a choice."""
    axes = result.figure.axes if result.figure else {}
    return {name: axis.ours for name, axis in axes.items()} | result.content["options"]


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


def write_pictures(
    folders: list[Path], entries: dict[str, Any], place: Path = PICTURES
) -> list[str]:
    """The picture of every run that an entry was made from; returns the figures."""
    from PIL import Image

    place.mkdir(exist_ok=True)
    drawn: list[str] = []
    for result in reproductions(folders):
        source, entry = result.folder / "figure.png", entries.get(result.id)
        if entry is None or result.id in drawn or not source.is_file():
            continue
        if all(json.loads(json_text(result.content[name])) == entry[name] for name in KEPT):
            with Image.open(source) as image:
                small = image.convert("RGB").resize(
                    (PIXELS, round(image.height * PIXELS / image.width)), Image.Resampling.LANCZOS
                )
            name = f"{result.id.replace('/', '-')}.png"
            small.quantize(COLOURS).save(place / name, optimize=True)
            drawn.append(result.id)
    return drawn


def table(entries: dict[str, Any]) -> str:
    """One row for each figure, in Markdown: outcomes by whose sentence was judged."""
    short = " / ".join(OUTCOMES)
    known = {name: f for name, f in figures.items() if name.split("/")[0] in papers.ours}
    words = f"Verdicts are counted as {short}, apart for the paper's sentences and our own "
    words += "expectations; checks of the runs count for neither."
    if not set(known) <= set(entries):
        words += " A row without numbers was not run since verdicts have sources."
    rows = [
        words,
        "",
        "| figure | what it shows | scale, seeds | the paper's | ours | readings |",
        "|---|---|---|---|---|---|",
    ]
    for name, figure in sorted(known.items()):
        entry = entries.get(name)
        if entry is None:
            rows.append(f"| `{name}` | {figure.title} | - | - | - | - |")
            continue
        counted = tally(entry["verdicts"])
        paper, ours = (
            " / ".join(str(counted[kind][outcome]) for outcome in OUTCOMES) for kind in KINDS[:2]
        )
        where = f"{entry['scale']}, {len(entry['seeds'])}"
        readings, at = str(len(entry["readings"])), entry.get("readings_scale", entry["scale"])
        readings += f" ({at})" if at != entry["scale"] else ""
        cells = (f"`{name}`", figure.title, where, paper, ours, readings)
        rows.append(f"| {' | '.join(cells)} |")
    found = [v.get("p") for name in known for v in entries.get(name, {"verdicts": ()})["verdicts"]]
    chance = chance_sentence(found)
    return "\n".join([*rows, "", chance] if chance else rows)


def with_table(readme: str, entries: dict[str, Any]) -> str:
    """The README with this table between its marks."""
    before, _, rest = readme.partition(START)
    return f"{before}{START}\n{table(entries)}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    chosen = merged(on_file(), collect([Path(f) for f in sys.argv[1:]]))
    write(chosen)
    write_pictures([Path(f) for f in sys.argv[1:]], chosen)
    README.write_text(with_table(README.read_text(encoding="utf-8"), chosen), encoding="utf-8")
    unconfirmed.write_pages(chosen)
