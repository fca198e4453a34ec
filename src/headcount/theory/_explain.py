"""A claim explained: what it says, what it needs, its forms, its errata, how tight it is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ._claim import Claim, Instance
from ._corpus import known_instances
from ._errata import Erratum, errata
from ._forms import Form
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


@dataclass(frozen=True)
class Explanation:
    """Everything that Headcount knows about one claim, without searching."""

    claim: Claim
    errata: tuple[Erratum, ...]
    certificates: tuple[tuple[str, str], ...]
    """(name, variant) of the shipped counterexamples."""
    tightest: tuple[Tightest, ...]

    def to_json(self) -> dict[str, Any]:
        """One object for machines."""
        claim = self.claim
        return {
            "claim": claim.id,
            "title": claim.title,
            "kind": str(claim.kind),
            "equations": claim.equations,
            "statement": claim.statement,
            "latex": claim.latex,
            "hypotheses": [hypothesis.name for hypothesis in claim.hypotheses],
            "default": claim.default,
            "forms": {name: _told(form) for name, form in claim.forms.items()},
            "errata": [vars(erratum) for erratum in self.errata],
            "certificates": [name for name, _ in self.certificates],
            "tightest": [vars(found) for found in self.tightest],
        }


def _told(form: Form) -> dict[str, Any]:
    """One form for machines: whose words it is, and what its refutation is called."""
    kept = {name: value for name, value in vars(form).items() if name != "fails"}
    return {**kept, "refuted": form.fails, "called": form.called}


def explain(claim: Claim) -> Explanation:
    """Look everything up; the known hardest instances are evaluated, nothing is searched."""
    named = {*claim.errata, *(v.erratum for v in claim.variants.values() if v.erratum)}
    notes = [
        erratum for erratum in errata.of_paper(claim.paper) if erratum.id.split("/")[1] in named
    ]
    own = [
        (path.stem, certificate)
        for path, certificate in read_shipped(claim.id.replace("/", "-"))
        if certificate.claim == claim.id
    ]
    known = (*known_instances(claim), *claim.targets())
    kind, points = claim.instance_class, dict[str, list[Instance]]()
    if kind is not None:  # a counterexample that is shipped is the hardest instance of its form
        for _, one in own:
            if one.kind != "frequency":
                points.setdefault(one.variant, []).append(instance_from(kind, one.instance))
    found = [_tightest(claim, name, (*known, *points.get(name, ()))) for name in claim.variants]
    told = tuple(one for one in found if one is not None)
    return Explanation(claim, tuple(notes), tuple((stem, one.variant) for stem, one in own), told)


def _tightest(claim: Claim, variant: str, instances: tuple[Instance, ...]) -> Tightest | None:
    """The hardest of those that meet the hypotheses: on file, known constructions, shipped."""
    best: tuple[Verdict, Instance] | None = None
    for instance in instances:
        verdict = judge(claim, instance, variant)
        if verdict.outcome is Outcome.NOT_APPLICABLE or math.isnan(verdict.ratio):
            continue
        if best is None or verdict.ratio > best[0].ratio:
            best = verdict, instance
    if best is None:
        return None
    verdict, instance = best
    arrays = {k: getattr(v, "shape", ()) for k, v in vars(instance).items()}
    sizes = {k: tuple(shape) for k, shape in arrays.items() if shape}
    same = verdict.direction == "equality"
    ratio = verdict.ratio if math.isfinite(verdict.ratio) and not same else None
    outcome = str(verdict.outcome)
    if verdict.outcome is Outcome.VIOLATED:
        outcome = FAILING.get(claim.forms[variant].role, outcome)
    return Tightest(variant, ratio, verdict.difference if same else None, outcome, sizes)
