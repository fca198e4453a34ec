"""`headcount verify`: prove a lemma on its whole domain."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ._export import export_to
from ._flags import Whole
from ._output import check_file, print_json

NOT_PROVED, FALSE = 1, 3


def verify_command(
    lemma: str,
    /,
    *,
    variant: str | None = None,
    boxes: Whole = 20_000,
    tolerance: float = 1e-9,
    export: Path | None = None,
    trust: Annotated[bool, Parameter(negative=())] = False,
    json: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """Prove lhs <= rhs on the whole domain by interval branch and bound, or find a counterexample.

    For lemmas with one to six real variables in a bounded space (signs and integers besides).
    Exit code 0: proved; 1: some of the domain stays open, or no point of it meets the hypotheses;
    3: false.

    Parameters
    ----------
    lemma
        my_lemma.py or my_lemma.py:name (the file is run), a fact of `headcount list` such as
        arda2026/sigma-2-tanh, or a paper for all of its facts.
    variant
        One variant of a lemma; all by default.
    boxes
        Boxes looked at before the rest is called open.
    tolerance
        Where the sides meet, lhs <= (1 + tolerance) rhs is what can be proved, and is said.
    export
        File for a portable certificate, of the last counterexample that is found: `python
        check_certificate.py FILE` proves it with python-flint alone.
    trust
        Do not ask before a file outside the current folder is run.
    json
        Print one JSON object: claim, variant, answer, boxes, open_share, touching, tolerance,
        instance, admissible, message; a list if there are several.
    """
    from ..core import BadArgument, papers
    from ..theory import claims, facts, verify
    from ..theory._portable import certificate_of
    from ..theory.lemma_files import is_lemma_file
    from ._lemmas import lemmas_from

    check_file("export", export)
    if is_lemma_file(lemma):
        chosen = lemmas_from(lemma, trust=trust)
    else:
        one = claims if lemma in claims else facts
        chosen = facts.of_paper(lemma) if lemma in papers else [one[lemma]]
        if not chosen:
            having = ", ".join(dict.fromkeys(name.split("/")[0] for name in facts))
            raise BadArgument("lemma", lemma, "is a paper without facts", fix=f"choose {having}")
    asked = [(own, form) for own in chosen for form in ([variant] if variant else own.variants)]
    found = [verify(own, form, boxes=boxes, tolerance=tolerance) for own, form in asked]
    false = [
        (own, result)
        for (own, _), result in zip(asked, found, strict=True)
        if result.answer == "false"
    ]
    own, certificate = (None, None) if not false else (false[-1][0], certificate_of(*false[-1]))
    export_to(export, own, certificate)
    if json:
        shown = [result.to_json() for result in found]
        print_json(shown[0] if len(shown) == 1 else shown)
    else:
        for result in found:
            print(f"{result.claim} ({result.variant}): {result.message}")
            counted = f"{result.boxes} box{'es' if result.boxes != 1 else ''}"
            print(f"  {counted}, {result.seconds:.1f} s")
    answers = {str(result.answer) for result in found}
    return FALSE if "false" in answers else NOT_PROVED if answers - {"proved"} else 0
