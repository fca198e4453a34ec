"""The hardest known instance of every form of a claim, evaluated once and kept beside the paper.

`tightest.json` has a row for each claim. It saves `explain` from compiling what its known instances
need. Who writes into the corpus writes its row, `python -m tools.tightest` the missing ones, and a
test compares them with the corpus.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core import papers
from ..core._files import json_text, write_atomically
from ._claim import Claim, Instance
from ._corpus import known_instances
from ._outcome import Outcome, Verdict
from ._pytree import instance_from
from ._shipped import read_shipped
from ._verdict import judge

FAILING = {"informal": "exceeded", "assumption": "not met"}
"""What is said of the hardest instance where nothing that could be violated is printed."""


@dataclass(frozen=True)
class Tightest:
    """The hardest known instance of one form of a claim, and its sizes.

    `ratio` is left over right side; an equality has none, but the `difference` of its sides.
    """

    variant: str
    ratio: float | None
    difference: float | None
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
    return Tightest(variant, row["ratio"], row["difference"], row["outcome"], sizes)


def evaluated(claim: Claim, variants: Iterable[str] = ()) -> dict[str, Tightest | None]:
    """The hardest of the instances on file, the known constructions and the counterexamples."""
    known = (*known_instances(claim), *claim.targets())
    kind, shipped = claim.instance_class, dict[str, list[Instance]]()
    if kind is not None:  # a counterexample that is shipped is the hardest instance of its form
        for _, one in read_shipped(claim.id.replace("/", "-")):
            if one.claim == claim.id and one.kind != "frequency":
                shipped.setdefault(one.variant, []).append(instance_from(kind, one.instance))
    return {
        v: _hardest(claim, v, (*known, *shipped.get(v, ()))) for v in variants or claim.variants
    }


def _hardest(claim: Claim, variant: str, instances: Iterable[Instance]) -> Tightest | None:
    """The hardest of those that meet the hypotheses."""
    best: tuple[Verdict, Instance] | None = None
    for instance in instances:
        verdict = judge(claim, instance, variant)
        if verdict.outcome is Outcome.NOT_APPLICABLE or math.isnan(verdict.ratio):
            continue
        if best is None or verdict.ratio > best[0].ratio:
            best = verdict, instance
    return None if best is None else _told(claim, variant, *best)


def _told(claim: Claim, variant: str, verdict: Verdict, instance: Instance) -> Tightest:
    arrays = {k: getattr(v, "shape", ()) for k, v in vars(instance).items()}
    sizes = {k: tuple(shape) for k, shape in arrays.items() if shape}
    same = verdict.direction == "equality"
    ratio = verdict.ratio if math.isfinite(verdict.ratio) and not same else None
    outcome = str(verdict.outcome)
    if verdict.outcome is Outcome.VIOLATED:
        outcome = FAILING.get(claim.forms[variant].role, outcome)
    return Tightest(variant, ratio, verdict.difference if same else None, outcome, sizes)


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
    row = {v: None if one is None else _row(one) for v, one in found}
    rows = rows_of(claim.paper) | {claim.id.split("/")[-1]: row}
    lines = [f'"{name}": {json_text(rows[name], indent=None)}' for name in sorted(rows)]
    write_atomically(file, ("{\n" + ",\n".join(lines) + "\n}\n").encode())


def _row(found: Tightest) -> dict[str, Any]:
    return {name: value for name, value in vars(found).items() if name != "variant"}
