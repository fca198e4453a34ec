"""`headcount recheck`: verify a certificate by an independent evaluation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ._export import export_to
from ._output import check_file, print_json, say

REJECTED = 1


def recheck_command(
    file: str,
    /,
    *,
    lemma: str | None = None,
    export: Path | None = None,
    trust: Annotated[bool, Parameter(negative=())] = False,
    json: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """Prove or refute a certificate in ball arithmetic, by two independent evaluations.

    Exit code 0: the violation is proved; 1: refuted or undecided; 2: not a certificate.

    Parameters
    ----------
    file
        A certificate, as `headcount falsify` writes it; or the name of one that Headcount brings
        along, such as arda2026-lemma-5-printed (`headcount explain` names them).
    lemma
        For a certificate about a lemma of your own: its file and name, as my_lemma.py:name. The
        file is run; one that only the certificate names never is.
    export
        File for the portable form of what is proved, which `python check_certificate.py FILE`
        proves again with python-flint alone.
    trust
        Do not ask before a file outside the current folder is run.
    json
        Print one JSON object: claim, variant, confirmed, outcome, ratio, arithmetic, hypotheses,
        message, called (what the violation means).
    """
    from rich.console import Console

    from ..core import BadArgument
    from ..theory import claims, read_certificate, recheck
    from ..theory._shipped import certificate_named
    from ._lemmas import lemmas_from
    from ._meaning import called, meaning
    from ._unicode import unicode_words

    check_file("export", export)
    chosen = None
    if lemma is not None:
        (chosen, *more) = lemmas_from(lemma, trust=trust)
        if more:
            raise BadArgument("lemma", lemma, "has several lemmas", fix="write file.py:name")
    certificate = read_certificate(certificate_named(file))
    result = recheck(certificate, chosen)
    own = claims[certificate.claim] if chosen is None else chosen
    export_to(export, own, certificate if result.confirmed else None)
    if json:
        words = called(own, result.variant) if result.confirmed else ""
        print_json({**result.to_json(), "called": words})
    else:
        console = Console()
        say(console, f"{result.claim} ({result.variant}): {result.message}")
        utf = "utf" in console.encoding
        lines = meaning(own, result.variant, unicode=utf) if result.confirmed else []
        if result.confirmed and "/" in own.id:
            compared = f"What is compared: {own.statement}"
            lines.append(unicode_words(compared) if utf else compared)
        lines += [f"evaluated by {result.arithmetic}", *(c.shown for c in result.hypotheses)]
        for line in lines:
            say(console, line, indent=2)
    return 0 if result.confirmed else REJECTED
