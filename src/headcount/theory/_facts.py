"""Facts: small lemmas of the papers that `verify` proves on their whole domain.

The modules that a manifest lists under `facts` register them. What `verify` said is on file beside
the paper, so that a list can show it; a test verifies every fact again.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

from ..core import papers
from ..core._files import json_text, write_atomically
from ..core._outside import left_out_if_broken
from ..core._papers import PaperRegistry
from ._claim import Claim
from ._verification import Verification

FILE = "verified.json"


class FactRegistry(PaperRegistry[Claim]):
    """Facts by id, such as "paper/sigma-2-tanh"."""

    def __init__(self) -> None:
        super().__init__("fact", lambda paper: paper.facts, Claim)

    def named(self, name: str) -> Callable[[Claim], Claim]:
        """Register the lemma below under a name: @facts.named("paper/name")."""
        return lambda lemma: self.register(name, dataclasses.replace(lemma, id=name))


facts = FactRegistry()
"""Every fact that Headcount knows."""


def _file(paper: str) -> Path | None:
    return papers[paper].file(FILE) if paper in papers else None


def recorded_answers() -> dict[str, str]:
    """The answers on file, by fact: "proved", or "not verified" where there is none."""
    stored = {key: _stored(key) for key in dict.fromkeys(name.split("/")[0] for name in facts)}
    return {name: stored[name.split("/")[0]].get(name, "not verified") for name in facts}


def _stored(paper: str) -> dict[str, str]:
    answers: dict[str, str] = {}
    with left_out_if_broken(f"{FILE} of paper {paper!r}", ours=paper in papers.ours):
        file = _file(paper)
        if file is not None and file.exists():
            rows = json.loads(file.read_text(encoding="utf-8"))
            answers |= {name: str(row["answer"]) for name, row in rows.items()}
    return answers


def record(paper: str, answers: list[Verification]) -> Path:
    """Write down what `verify` said about the facts of a paper."""
    file = _file(paper)
    if file is None:
        raise FileNotFoundError(f"{paper} keeps no files")
    rows = {a.claim: {"answer": str(a.answer), "message": a.message} for a in answers}
    write_atomically(file, f"{json_text(rows, indent=1)}\n".encode())
    return file
