"""The hardest known instance of every form of a claim, evaluated once and kept beside the paper.

`tightest.json` has a row for each claim. It saves `explain` from compiling what its known instances
need. Who writes into the corpus writes its row, `python -m tools.tightest` the missing ones, and a
test compares them with the corpus.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core import papers
from ..core._files import json_text, write_atomically
from ._claim import Claim
from ._corpus import known_instances
from ._verdict import judge


@dataclass(frozen=True)
class Tightest:
    """The hardest known instance of one form of a claim: left over right side, and its sizes."""

    variant: str
    ratio: float
    outcome: str
    sizes: dict[str, tuple[int, ...]]


def tightest(claim: Claim) -> tuple[Tightest, ...]:
    """One for each form that has a known instance: what is on file, else evaluated now."""
    rows = rows_of(claim.paper).get(claim.id.split("/")[-1], {})
    if set(rows) != set(claim.variants):
        return tuple(filter(None, evaluated(claim).values()))
    return tuple(_read(v, rows[v]) for v in claim.variants if rows[v] is not None)


def _read(variant: str, row: dict[str, Any]) -> Tightest:
    sizes = {name: tuple(shape) for name, shape in row["sizes"].items()}
    return Tightest(variant, float(row["ratio"]), row["outcome"], sizes)


def evaluated(claim: Claim) -> dict[str, Tightest | None]:
    """The hardest of the instances on file and of the known constructions, by form."""
    known = (*known_instances(claim), *claim.targets())
    return {variant: _hardest(claim, known, variant) for variant in claim.variants}


def _hardest(claim: Claim, known: Iterable[Any], variant: str) -> Tightest | None:
    best: Tightest | None = None
    for instance in known:
        verdict = judge(claim, instance, variant)
        if best is None or verdict.ratio > best.ratio:
            arrays = {k: getattr(v, "shape", ()) for k, v in vars(instance).items()}
            sizes = {k: tuple(shape) for k, shape in arrays.items() if shape}
            best = Tightest(variant, verdict.ratio, str(verdict.outcome), sizes)
    return best


def _file(paper: str) -> Path | None:
    return papers[paper].file("tightest.json") if paper in papers.ours else None


def rows_of(paper: str) -> dict[str, Any]:
    """What is on file for the claims of a paper, by their names within it."""
    file = _file(paper)
    if file is None or not file.exists():
        return {}
    rows: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return rows


def write_row(claim: Claim) -> None:
    """Evaluate a claim and keep what was found."""
    file = _file(claim.paper)
    if file is None:
        raise FileNotFoundError(f"{claim.paper} is no paper of ours")
    found = evaluated(claim).items()
    row = {v: None if best is None else _row(best) for v, best in found}
    rows = rows_of(claim.paper) | {claim.id.split("/")[-1]: row}
    lines = [f'"{name}": {json_text(rows[name], indent=None)}' for name in sorted(rows)]
    write_atomically(file, ("{\n" + ",\n".join(lines) + "\n}\n").encode())


def _row(found: Tightest) -> dict[str, Any]:
    return {"ratio": str(found.ratio), "outcome": found.outcome, "sizes": found.sizes}
