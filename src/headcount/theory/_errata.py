"""The errata page, generated from the registered errata, the claims and the certificates."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..core import BadArgument
from ..core._checks import check_kind
from ..core._entries import entry_of, read_tables
from ..core._papers import PaperRegistry
from ..core._rounding import round_down
from ._certificate import Certificate
from ._claim import Claim
from ._forms import BRIEFLY
from ._refuted import refuted_by_role
from ._registry import claims
from ._shipped import read_shipped


@dataclass(frozen=True)
class Erratum:
    """One place where a paper's text and what is true differ, or where the text is ambiguous."""

    id: str
    where: str
    printed: str
    problem: str
    used: str
    harmless: bool = True
    """Whether the paper's main results stand with no or with the stated change of constants."""
    checked: str = ""
    """What a second look at the paper's text alone found; of a counterexample, its form says it."""

    def __post_init__(self) -> None:
        for name in ("id", "where", "printed", "problem", "used", "checked"):
            check_kind(name, getattr(self, name), str, fix="write it as text")
        check_kind("harmless", self.harmless, bool, fix="use true or false")
        if "/" not in self.id:
            raise BadArgument("id", self.id, "does not name its paper", fix="use paper/E1")

    @property
    def paper(self) -> str:
        """The citation key, the part of the id before the slash."""
        return self.id.split("/")[0]


class _Errata(PaperRegistry[Erratum]):
    def _load(self, key: str, reference: str) -> None:
        if reference.endswith(".toml"):
            add_notes(key, reference)
        else:
            super()._load(key, reference)


errata: PaperRegistry[Erratum] = _Errata(
    "erratum", lambda paper: (paper.errata,) if paper.errata else (), Erratum, plural="errata"
)
"""Errata by id such as "paper/E1"."""


def add_errata(paper: str, *entries: tuple[str, str, str, str, str]) -> None:
    """Register (id, where, printed, problem, used) entries of one paper."""
    for name, where, printed, problem, used in entries:
        identifier = f"{paper}/{name}"
        errata.register(identifier, Erratum(identifier, where, printed, problem, used))


def add_notes(paper: str, reference: str) -> None:
    """Register the notes of "package:notes.toml": a table [E1] with where, printed, ... for each.

    The keys are the fields of `Erratum` but its id.
    """
    for name, table in read_tables(reference).items():
        identifier = f"{paper}/{name}"
        note = entry_of(Erratum, table, f"{reference} [{name}]", id=identifier)
        errata.register(identifier, note)


def _natural(name: str) -> tuple[str, int]:
    match = re.search(r"(\D*)(\d+)$", name)
    return (match[1], int(match[2])) if match else (name, 0)


def _counterexamples(erratum: Erratum, shipped: list[Certificate]) -> list[str]:
    short = erratum.id.split("/")[1]
    lines = []
    for certificate in shipped:
        claim = claims[certificate.claim]
        if claim.paper != erratum.paper or claim.variants[certificate.variant].erratum != short:
            continue
        told = claim.forms[certificate.variant].called
        words = f"{certificate.note} {_numbers(certificate)}"
        lines.append(f"`{certificate.file_name}` ({told}): {words}")
    return lines


def _numbers(certificate: Certificate) -> str:
    claimed = certificate.claimed
    if certificate.kind == "frequency":
        return (
            f"(failed {int(claimed['exceedances'])} of {int(claimed['repetitions'])} times, "
            f"allowed {claimed['delta']:g})"
        )
    if claims[certificate.claim].kind == "identity":
        return "(the sides differ)"
    if claimed["rhs"] == 0:
        return f"(the left side is {round_down(claimed['lhs'], 5)}, the right side 0)"
    return f"(left/right = {round_down(claimed['ratio'], 5)})"


def _related(erratum: Erratum) -> list[Claim]:
    short = erratum.id.split("/")[1]
    return [
        claim
        for claim in claims.of_paper(erratum.paper)
        if short in claim.errata or any(v.erratum == short for v in claim.variants.values())
    ]


def errata_page() -> str:
    """docs/errata.md as markdown; a test keeps the committed page equal to this."""
    shipped = [certificate for _, certificate in read_shipped()]
    lines = [
        "# Errata",
        "",
        "Notes made while turning the papers into executable claims. They concern details: we are "
        "grateful for the papers, and a note is not a criticism of their results. Each note says "
        "what is printed, what we found, and what Headcount uses. Counterexamples are files; for "
        "each of them `headcount recheck FILE` proves in ball arithmetic, by two independent "
        "evaluations, that the inequality of the form named in the file fails at its point. What "
        "that means for the paper is said beside it, by whose sentence it is: only a numbered "
        "result under its own hypotheses is called false as printed. "
        "[What was refuted](refuted.md) has the quotations.",
        "",
        "This page is generated by `headcount.theory.errata_page()`; do not edit it by hand.",
    ]
    for paper in dict.fromkeys(erratum.paper for _, erratum in errata.items()):
        lines += ["", f"## {paper}"]
        counts = refuted_by_role(paper).items()
        refuted = [f"{count} {BRIEFLY[role]}" for role, count in counts if count]
        lines += ["", f"Forms with a counterexample: {', '.join(refuted)}."] if refuted else []
        own = [erratum for _, erratum in errata.items() if erratum.paper == paper]
        for erratum in sorted(own, key=lambda e: _natural(e.id)):
            lines += _section(erratum, shipped)
    return "\n".join(lines) + "\n"


def _section(erratum: Erratum, shipped: list[Certificate]) -> list[str]:
    lines = [
        "",
        f"### {erratum.id.split('/')[1]}. {erratum.where}",
        "",
        f"- **Printed:** {erratum.printed}",
        f"- **What we found:** {erratum.problem}",
    ]
    for line in _counterexamples(erratum, shipped):
        lines.append(f"- **Counterexample:** {line}")
    lines.append(f"- **Used here:** {erratum.used}")
    if erratum.checked:
        lines.append(f"- **Checked again:** {erratum.checked}")
    related = ", ".join(f"`{claim.id}`" for claim in _related(erratum))
    if related:
        lines.append(f"- **Claims:** {related}")
    return lines
