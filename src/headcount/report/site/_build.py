"""Building the site: pages from templates, files for download, and nothing left from last time."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2

from ... import __version__
from ...core import BadArgument, papers
from ...core._files import json_text
from ...core._inside import follow_no_link_below, read_inside, remove_inside
from ...lab import Store, figures, robustness, surviving
from ...lab._files import write_atomically
from ...lab._readings import robustness_sentence, tally
from ...theory import Claim, errata
from .._tables import WHOSE, chance_sentence
from ._claims import ClaimRow, LogAxis, claim_rows, proof, prose, shown
from ._results import FigureResult, figure_results, stored_json

MARKER = "headcount-report.json"
SHOWN_ROWS = 60
"""Rows of a figure's table that its page shows; the files have all."""


@dataclass
class Site:
    """A folder of pages under construction: file name -> bytes."""

    folder: Path
    files: dict[str, bytes] = field(default_factory=dict)

    def write(self) -> None:
        """Write all files; remove those of an earlier report that are no longer part of it."""
        follow_no_link_below(self.folder)
        old = self._earlier()
        for name, content in self.files.items():
            write_atomically(self.folder / name, content, sync=False)
        for name in set(old) - set(self.files):
            remove_inside(self.folder / name)
        marker = {
            "program": "headcount",
            "files": {name: _hash(content) for name, content in sorted(self.files.items())},
        }
        write_atomically(self.folder / MARKER, json_text(marker).encode(), sync=False)

    def check(self) -> None:
        """Refuse a folder with other people's files."""
        if self.folder.is_file() or (
            self.folder.is_dir()
            and any(self.folder.iterdir())
            and not (self.folder / MARKER).exists()
        ):
            raise BadArgument(
                "to", str(self.folder), "exists and is no report", fix="choose another folder"
            )

    def _earlier(self) -> list[str]:
        """What an earlier report wrote and nobody has changed since."""
        try:
            listed = json.loads(read_inside(self.folder / MARKER))["files"]
        except (OSError, ValueError, KeyError, TypeError):
            return []
        root, found = self.folder.resolve(), []
        for name, digest in listed.items() if isinstance(listed, dict) else ():
            with contextlib.suppress(OSError):
                inside = root in (root / name).resolve().parents
                if inside and _hash(read_inside(self.folder / name)) == digest:
                    found.append(name)
        return found


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def build_site(results: Path, folder: Path) -> Site:
    """Turn a results folder into a site and write it; the index is `folder/index.html`."""
    site = Site(Path(folder))
    site.check()
    store = Store(results)
    found = figure_results(store)
    audits = {
        key: a for key, _ in papers.items() if (a := stored_json(store, f"audits/{key}.json"))
    }
    templates = _templates(found)

    def page(name: str, template: str, depth: str = "", **values: Any) -> None:
        text = templates.get_template(template).render(root=depth, page=name, **values)
        site.files[name] = text.encode()

    for name in ("style.css", "page.js"):
        source, _, _ = _loader().get_source(templates, name)
        site.files[name] = source.encode()
    front = _shown(found)
    total = tally([verdict for result in front for verdict in result.content["verdicts"]])
    chance = chance_sentence([p for result in front for p in result.p_values])
    tried = {r.slug: len(_readings(r, found)) for r in found}
    groups = _groups(found)
    page("index.html", "index.html", groups=groups, total=total, chance=chance, tried=tried)
    marks = _surviving(found)
    for result in found:
        same = [r for r in found if r.id == result.id]
        beside = _beside(result, front)
        _figure_page(site, page, result, same, marks[result.slug], beside)
    rows = claim_rows(audits)
    _claims_pages(page, rows, audits)
    page("errata.html", "errata.html", rows=rows, notes=[note for _, note in _sorted_errata()])
    counts, compared = stored_json(store, "counts.json"), stored_json(store, "comparison.json")
    shipped = not counts and not compared
    if shipped:
        counts, compared = _shipped("counts.json"), _shipped("comparison.json")
    told = {"counts": (counts or {}).get("counts"), "compared": compared, "shipped": shipped}
    page("heads.html", "heads.html", **told)
    site.write()
    return site


def _claims_pages(page: Any, rows: list[ClaimRow], audits: Mapping[str, Any]) -> None:
    """A page for the claims of each paper, and one that leads to them."""
    pages: dict[str, list[ClaimRow]] = {}
    for row in rows:
        pages.setdefault(row.claim.paper, []).append(row)
    counts = {key: Counter(mark for row in own for mark in row.marks) for key, own in pages.items()}
    known = dict(papers.items())
    page("claims.html", "claims.html", pages=pages, counts=counts, papers=known)
    loose = [row.looseness for row in rows if row.looseness is not None]
    for key, own in pages.items():
        page(
            f"claims-{key}.html",
            "claims-of.html",
            key=key,
            paper=known.get(key),
            rows=own,
            audit=audits.get(key),
            others=list(pages),
            axis=LogAxis.over(loose),
        )


def _shipped(name: str) -> Any:
    """What the theorems alone ask for, as `tools/theory_counts.py` wrote it beside the papers."""
    folders = [Path(str(room)) / "theory" for room in files("headcount.papers").iterdir()]
    (file,) = [folder / name for folder in folders if (folder / name).exists()]
    return json.loads(file.read_text(encoding="utf-8"))


def _figure_page(
    site: Site,
    page: Any,
    result: FigureResult,
    same: list[FigureResult],
    kept: list[bool],
    beside: dict[str, FigureResult | None],
) -> None:
    heading, rows = result.rows()
    for name, content in result.files.items():
        site.files[f"figures/{result.slug}/{name}"] = content
    numbers = {"columns": heading, "rows": rows}
    site.files[f"figures/{result.slug}/plotted.json"] = json_text(numbers, indent=None).encode()
    page(
        f"figures/{result.slug}.html",
        "figure.html",
        "../",
        result=result,
        kept=kept,
        whose=WHOSE,
        robust=_robust(result, same),
        tried=len(_readings(result, same)),
        **beside,
        others=[other for other in same if other is not result],
        heading=heading,
        rows=rows,
        shown_rows=SHOWN_ROWS,
        downloads=[*result.files, "plotted.json"],
        choices=papers[result.paper].readings if result.paper in papers else (),
    )


def _groups(found: list[FigureResult]) -> list[dict[str, Any]]:
    """For each paper its figures: those with results (the best first) and those without."""
    best: dict[str, FigureResult] = {}
    for result in found:
        best.setdefault(result.id, result)
    keys = list(dict.fromkeys([*papers, *(result.paper for result in found)]))
    groups = []
    for key in keys:
        own = [result for result in best.values() if result.paper == key]
        missing = [figure for figure in figures.of_paper(key) if figure.id not in best]
        if own or missing:
            paper = dict(papers.items()).get(key)
            groups.append({"key": key, "paper": paper, "results": own, "missing": missing})
    # The papers first; what stands beside them (the comparison) last.
    return sorted(groups, key=lambda group: not (group["paper"] and group["paper"].claims))


def _shown(found: list[FigureResult]) -> list[FigureResult]:
    """The results that the front page shows."""
    best: dict[str, FigureResult] = {}
    for result in found:
        best.setdefault(result.id, result)
    return list(best.values())


def _beside(result: FigureResult, front: list[FigureResult]) -> dict[str, FigureResult | None]:
    """The figures before and after this one, in the order of the front page."""
    ids = [one.id for one in front]
    place = ids.index(result.id)
    before = front[place - 1] if place else None
    return {"before": before, "after": front[place + 1] if place + 1 < len(front) else None}


def _readings(result: FigureResult, found: list[FigureResult]) -> list[FigureResult]:
    """All reproductions that differ from this one in open choices of the text alone."""
    return [
        other for other in found if other.id == result.id and other.is_reading_of(result.content)
    ]


def _surviving(found: list[FigureResult]) -> dict[str, list[bool]]:
    """Page -> which verdicts survive among all that the front page sums; else among its own."""
    together = _shown(found)
    kept = iter(surviving([p for result in together for p in result.p_values]))
    marks = {r.slug: [next(kept) for _ in r.p_values] for r in together}
    return {r.slug: marks.get(r.slug) or surviving(r.p_values) for r in found}


def _sorted_errata() -> list[Any]:
    """E2 before E10."""
    return sorted(errata.items(), key=lambda pair: (pair[1].paper, len(pair[0]), pair[0]))


def _loader() -> jinja2.PackageLoader:
    return jinja2.PackageLoader("headcount.report.site", "templates")


def _templates(found: list[FigureResult]) -> jinja2.Environment:
    """Everything shown is escaped; a name that is missing is an error."""
    environment = jinja2.Environment(
        loader=_loader(),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        shown=shown,
        prose=prose,
        proof=proof,
        slug=_slug,
        whose=WHOSE.get,
        zip=zip,
        dictvalues=_values,
    )
    environment.tests["concerns"] = _is_about
    environment.globals.update(version=__version__, results=found)
    return environment


def _slug(text: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in str(text).lower())


def _values(row: Mapping[str, Any], names: list[str]) -> list[Any]:
    return [row[name] for name in names]


def _is_about(claim: Claim, note: str) -> bool:
    """Whether a note on the text concerns a claim or one of its forms."""
    return note in claim.errata or any(v.erratum == note for v in claim.variants.values())


def _robust(result: FigureResult, same: list[FigureResult]) -> list[dict[str, str]]:
    """In how many readings of this scale and these seeds each claim holds, if there are several."""
    beside = [other.content for other in _readings(result, same)]
    rows = robustness(beside) if len(beside) > 1 else []
    return [{"claim": row["claim"], "sentence": robustness_sentence(row)} for row in rows]
