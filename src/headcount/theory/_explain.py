"""A claim explained: what it says, what it needs, its forms, its errata, how tight it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ._asked import claim_of
from ._claim import Claim
from ._errata import Erratum, errata
from ._forms import Form
from ._shipped import read_shipped
from ._tightest import Tightest, tightest


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


def explain(claim: Claim | str) -> Explanation:
    """What is known of a claim, or of the claim of this name; nothing is searched."""
    claim = claim_of(claim)
    named = {*claim.errata, *(v.erratum for v in claim.variants.values() if v.erratum)}
    notes = [
        erratum for erratum in errata.of_paper(claim.paper) if erratum.id.split("/")[1] in named
    ]
    shipped = [
        (path.stem, certificate.variant)
        for path, certificate in read_shipped(claim.id.replace("/", "-"))
        if certificate.claim == claim.id
    ]
    return Explanation(claim, tuple(notes), tuple(shipped), tightest(claim))
