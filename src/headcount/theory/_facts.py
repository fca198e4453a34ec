"""Facts: small lemmas of the papers that `verify` proves on their whole domain.

The modules that a manifest lists under `facts` register them. What `verify` said is on file beside
the paper, so that a list can show it; a test verifies every fact again.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from importlib import resources
from pathlib import Path

from ..core import PaperRegistry, json_text, papers
from ._lemma import Lemma
from ._verify import Verification

FILE = "verified.json"


class FactRegistry(PaperRegistry[Lemma]):
    """Facts by id, such as "paper/sigma-2-tanh"."""

    def __init__(self) -> None:
        super().__init__("fact", lambda paper: paper.facts)

    def named(self, name: str) -> Callable[[Lemma], Lemma]:
        """Register the lemma below under a name: @facts.named("paper/name")."""
        return lambda lemma: self.register(name, dataclasses.replace(lemma, id=name))


facts = FactRegistry()
"""Every fact that Headcount knows."""


def _file(paper: str) -> Path | None:
    package = papers[paper].certificates
    if package is None:
        return None
    with resources.as_file(resources.files(package) / FILE) as file:
        return Path(file)


def recorded_answers() -> dict[str, str]:
    """The answers on file, by fact: "proved", or "not verified" where there is none."""
    answers = {}
    for name in facts:
        file = _file(name.split("/")[0])
        stored = json.loads(file.read_text()) if file is not None and file.exists() else {}
        answers[name] = stored.get(name, {}).get("answer", "not verified")
    return answers


def record(paper: str, answers: list[Verification]) -> Path:
    """Write down what `verify` said about the facts of a paper."""
    file = _file(paper)
    if file is None:
        raise FileNotFoundError(f"{paper} keeps no files")
    rows = {a.claim: {"answer": str(a.answer), "message": a.message} for a in answers}
    file.write_text(f"{json_text(rows, indent=1)}\n", encoding="utf-8")
    return file
