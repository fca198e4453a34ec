"""`python -m tools.verdicts RESULTS...`: docs/verdicts/<figure>.json, and what goes with them.

Reads results folders. The file of a figure holds its best reproduction in the default reading
(paper scale before quick) with every sentence, number, interval, outcome and source, and beside it
`readings`: what the same sentences gave under every other reading, at `readings_scale`, the one
with most of them. What is on file stays where the folders have nothing at its scale or above.
README's table and the pages of figures are made from the files; tests keep them equal. The pictures
of each run that is on file, and of its readings, go to docs/pictures, small enough for a page.
"""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

from headcount.core import papers
from headcount.core._files import json_text
from headcount.lab import SCALES, Store, figures, robustness
from headcount.lab._findings import KINDS, OUTCOMES
from headcount.lab._readings import tally
from headcount.report._readings import specification_curve
from headcount.report._tables import chance_sentence
from headcount.report.site import FigureResult, figure_results
from tools import unconfirmed

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "verdicts"
PICTURES = ROOT / "docs" / "pictures"
BYTES = 40_000
SIZES = ((800, 80), (800, 50), (640, 50), (640, 25), (480, 25), (360, 25))
"""Widths and qualities of a picture, the best first; at most so many bytes are shipped of each."""
README = ROOT / "README.md"
START, END = "<!-- verdicts -->", "<!-- end of verdicts -->"
NUMBERS = ("claim", "outcome", "value", "interval")
KEPT = ("figure", "scale", "seeds", "options", "settings", "stand_in", "verdicts")


def collect(folders: list[Path]) -> dict[str, Any]:
    """Figure -> its best reproduction in the default reading, and the others beside it."""
    return {name: _entry(own) for name, own in reproductions(folders).items()}


def reproductions(folders: list[Path]) -> dict[str, list[FigureResult]]:
    """Figure -> what the folders hold above smoke scale, the largest in the default reading first.

    A figure without one in the default reading is left out: what it would tell was looked for.
    """
    found = [r for folder in folders for r in figure_results(Store(folder)) if r.scale != "smoke"]
    found.sort(key=lambda r: (not _default(r), -SCALES.index(r.scale), len(r.unusual)))
    best: dict[str, list[FigureResult]] = {}
    for result in found:
        if result.id in best or _default(result):
            best.setdefault(result.id, []).append(result)
    return dict(sorted(best.items()))


def _entry(own: list[FigureResult]) -> dict[str, Any]:
    readings = _readings(own)
    found = {name: own[0].content[name] for name in KEPT}
    found |= {"readings_scale": readings[0]["scale"], "robustness": robustness(readings)}
    return {**found, "readings": [_short(reading) for reading in readings]}


def _readings(own: list[FigureResult]) -> list[dict[str, Any]]:
    """The readings of a figure, the default first, at the scale that has most of them."""
    most: list[dict[str, Any]] = []
    for first in filter(_default, own):
        listed: dict[tuple[Any, ...], dict[str, Any]] = {}
        for one in (first, *(r for r in own if r.is_reading_of(first.content))):
            options = _options(one)
            listed.setdefault(
                tuple(sorted(options.items())),
                {"options": options, "verdicts": one.content["verdicts"], "scale": one.scale},
            )
        if len(listed) > len(most):
            most = list(listed.values())
    return most


def _default(result: FigureResult) -> bool:
    """Whether every open choice is ours."""
    axes = result.figure.axes if result.figure else {}
    return all(_options(result)[name] == axis.ours for name, axis in axes.items())


def _short(reading: dict[str, Any]) -> dict[str, Any]:
    """A reading with the numbers of its verdicts alone: words and sources are those above."""
    own = [{name: v.get(name) for name in NUMBERS} for v in reading["verdicts"]]
    return {"options": reading["options"], "verdicts": own}


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
    """Pictures of every run that an entry was made from, and of its readings; its figures."""
    place.mkdir(exist_ok=True)
    drawn: list[str] = []
    for name, (best, *others) in reproductions(folders).items():
        source, entry = best.folder / "figure.png", entries.get(name)
        if entry is None or not source.is_file():
            continue
        if all(json.loads(json_text(best.content[kept])) == entry[kept] for kept in KEPT):
            path = place / f"{name.replace('/', '-')}.webp"
            path.write_bytes(small(source.read_bytes()))
            if len(readings := _readings([best, *others])) > 1:
                curve = specification_curve(readings)["png"]
                path.with_stem(f"{path.stem}-readings").write_bytes(small(curve))
            drawn.append(name)
    return drawn


def small(png: bytes) -> bytes:
    """A picture within BYTES, as wide and as good as that allows."""
    from PIL import Image

    with Image.open(io.BytesIO(png)) as image:
        drawn = image.convert("RGB")
    for width, quality in SIZES:
        made, size = io.BytesIO(), (width, round(drawn.height * width / drawn.width))
        scaled = drawn.resize(size, Image.Resampling.LANCZOS)
        scaled.save(made, "WEBP", quality=quality, method=6)
        if made.tell() <= BYTES:
            break
    return made.getvalue()


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
