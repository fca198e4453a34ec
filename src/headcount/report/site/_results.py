"""What a results folder holds, read for the report; nothing is computed."""

from __future__ import annotations

import csv
import functools
import io
import json
import re
import shlex
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...core import BadArgument
from ...core._inside import read_inside
from ...lab import SCALES, Figure, Store, figures
from ...lab._findings import KINDS
from ...lab._readings import tally
from .._tables import seeds_text
from ._pictures import harmless_svg

FILES = (
    "figure.svg",
    "readings.svg",
    "figure.pdf",
    "figure.png",
    "plotted.csv",
    "verdicts.json",
    "data.nc",
)
"""What `headcount reproduce` leaves for a figure; the site offers them for download."""


@dataclass(frozen=True)
class FigureResult:
    """One reproduction of a figure: its folder, and what verdicts.json says."""

    folder: Path
    content: Mapping[str, Any]

    @property
    def id(self) -> str:
        """Such as "paper/fig1"."""
        return str(self.content["figure"])

    @property
    def paper(self) -> str:
        """The part of the id before the slash."""
        return self.id.split("/")[0]

    @property
    def scale(self) -> str:
        """smoke, quick or paper."""
        return str(self.content["scale"])

    @property
    def figure(self) -> Figure | None:
        """The declared figure; None for one of a package that is not installed."""
        return dict(figures.items()).get(self.id)

    @property
    def title(self) -> str:
        """The figure's title, or its id."""
        return self.figure.title if self.figure else self.id

    @property
    def reference(self) -> str:
        """Where it is in the paper."""
        return self.figure.reference if self.figure else ""

    @property
    def slug(self) -> str:
        """A file name for its page, unique among the results."""
        place = self.folder.parts[self.folder.parts.index("figures") + 1 :]
        return re.sub(r"[^A-Za-z0-9._-]+", "-", "-".join(place))

    @property
    def unusual(self) -> dict[str, str]:
        """Options and seeds that differ from the defaults of the scale."""
        if self.figure is None:
            return {}
        found = {
            name: str(value)
            for name, value in self.content["options"].items()
            if value != self.figure.options.get(name, ("",))[0]
        }
        seeds = self.content["seeds"]
        if seeds and seeds != list(range(self.figure.scales[self.scale]["seeds"])):
            found["seeds"] = seeds_text(seeds)
        return found

    @property
    def command(self) -> str:
        """What to type to get these numbers."""
        words = ["headcount", "reproduce", self.id, "--scale", self.scale]
        for name, value in self.unusual.items():
            words += ["--seeds", value] if name == "seeds" else ["--option", f"{name}={value}"]
        return shlex.join(words)

    def is_reading_of(self, other: Mapping[str, Any]) -> bool:
        """Whether it differs from another reproduction in open choices of the text alone."""
        keys = ("figure", "scale", "seeds")
        axes = self.figure.axes if self.figure else ()
        mine, theirs = self.content["options"], other["options"]
        fixed = (set(mine) | set(theirs)) - set(axes)
        return all(self.content[key] == other[key] for key in keys) and all(
            mine.get(name) == theirs.get(name) for name in fixed
        )

    @property
    def tally(self) -> dict[str, Counter[str]]:
        """How many verdicts of each outcome, by whose sentence was judged."""
        return tally(self.content["verdicts"])

    @property
    def sentence(self) -> Mapping[str, str]:
        """The first sentence of the paper that was judged, with its place; empty for none."""
        sources = [verdict["source"] for verdict in self.content["verdicts"]]
        ours = {"kind": "ours", "says": "", "where": ""}
        return next((source for source in sources if source["kind"] == "paper"), ours)

    @property
    def p_values(self) -> list[float | None]:
        """Of the verdicts; none for exact and undecided ones."""
        found = (verdict.get("p") for verdict in self.content["verdicts"])
        return [p if isinstance(p, float | int) else None for p in found]

    @property
    def smaller_than_paper(self) -> list[tuple[str, Any, Any]]:
        """The settings in which this scale differs from the paper's: (name, here, paper)."""
        if self.figure is None:
            return []
        paper = json.loads(json.dumps(self.figure.scales["paper"]))
        here = self.content["settings"]
        return [
            (name, here.get(name), paper[name]) for name in paper if here.get(name) != paper[name]
        ]

    @functools.cached_property
    def files(self) -> dict[str, bytes]:
        """What is offered for download: name -> content, pictures without what could run."""
        found = {}
        for name in FILES:
            path = self.folder / name
            try:
                content = read_inside(path)
                found[name] = harmless_svg(content) if name.endswith(".svg") else content
            except FileNotFoundError:
                continue
            except (OSError, ValueError, RecursionError) as error:
                raise _damaged(path, error) from error
        return found

    @property
    def drawn(self) -> bool:
        """Whether there is a plot."""
        return "figure.svg" in self.files

    @property
    def made_with(self) -> dict[str, str]:
        """Versions, device and dtype of the trials, from the data set."""
        import h5py

        if "data.nc" not in self.files:
            return {}
        try:
            with h5py.File(io.BytesIO(self.files["data.nc"]), "r") as data:
                records = json.loads(data.attrs.get("records", "{}"))
            return {k: ", ".join(_plainly(value) for value in v) for k, v in records.items()}
        except Exception as error:  # the library raises all kinds of them over what is no such file
            raise _damaged(self.folder / "data.nc", error) from error

    def rows(self) -> tuple[list[str], list[list[str]]]:
        """Every plotted number: the heading of plotted.csv and its rows."""
        try:
            text = self.files.get("plotted.csv", b"quantity\n").decode()
            heading, *rows = csv.reader(io.StringIO(text))
        except (ValueError, csv.Error) as error:
            raise _damaged(self.folder / "plotted.csv", error) from error
        return heading, rows


def _damaged(path: Path, error: Exception) -> BadArgument:
    """One line that names the file."""
    problem = f"is damaged or none of ours ({error})"
    return BadArgument("out", str(path), problem, fix="remove it; headcount show writes it again")


def _plainly(value: str) -> str:
    """A record, which is stored as JSON text, for people."""
    found = json.loads(value)
    if isinstance(found, dict):
        return ", ".join(f"{name} {version}" for name, version in found.items())
    return "not recorded" if found is None else str(found)


def figure_results(store: Store) -> list[FigureResult]:
    """All reproductions in the folder, by figure; paper scale first, default options first."""
    found = [
        FigureResult(path.parent, _checked(path, _read(path, "headcount show")))
        for path in (store.folder / "figures").rglob("verdicts.json")
    ]
    order = {scale: place for place, scale in enumerate(reversed(SCALES))}
    return sorted(found, key=lambda r: (_natural(r.id), order[r.scale], len(r.unusual), r.slug))


_OLDER = {
    "notes": "",
    "stand_in": "",
    "missing_trials": 0,
    "options": {},
    "settings": {},
    "seeds": [],
}
"""What files of earlier versions may lack."""
_KINDS = {"figure": str, "scale": str, "verdicts": list, "options": dict, "settings": dict,
          "seeds": list}  # fmt: skip


def _checked(path: Path, content: Any) -> Mapping[str, Any]:
    """The content of verdicts.json, if it can be one."""
    content = _OLDER | content if isinstance(content, dict) else {}
    verdicts = content.get("verdicts")
    if (
        not all(isinstance(content.get(name), kind) for name, kind in _KINDS.items())
        or content["scale"] not in SCALES
        or not all(isinstance(each, dict) for each in verdicts)
        or not all({"claim", "outcome", "sentence"} <= each.keys() for each in verdicts)
        or not all(type(seed) is int for seed in content["seeds"])
    ):
        raise _damaged(path, ValueError("it holds no verdicts"))
    return {**content, "verdicts": [_with_source(verdict) for verdict in verdicts]}


def _with_source(verdict: Mapping[str, Any]) -> Mapping[str, Any]:
    """Whose sentence it is; what does not say so is ours."""
    found = verdict.get("source")
    source = found if isinstance(found, dict) and found.get("kind") in KINDS else {}
    return {**verdict, "source": {"kind": "ours", "says": "", "where": "", **source}}


def _natural(name: str) -> list[Any]:
    """fig10 after fig9."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def stored_json(store: Store, name: str) -> Any:
    """A JSON file of the results folder; None where there is none."""
    path = store.folder / name
    return _read(path, "headcount reproduce --all") if path.exists() else None


def _read(path: Path, command: str) -> Any:
    try:
        return json.loads(read_inside(path))
    except (OSError, ValueError, RecursionError) as error:
        fix = f"remove it; {command} writes it again"
        raise BadArgument("out", str(path), "is no JSON file", fix=fix) from error
