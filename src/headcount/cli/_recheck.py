"""`headcount recheck`: verify a certificate by an independent evaluation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ._output import print_json

REJECTED = 1


def recheck_command(file: Path, /, *, json: Annotated[bool, Parameter(negative=())] = False) -> int:
    """Prove or refute a certificate in ball arithmetic, by two independent evaluations.

    Exit code 0: the violation is proved; 1: refuted or undecided; 2: not a certificate.

    Parameters
    ----------
    file
        A certificate, as `headcount falsify` writes it.
    json
        Print one JSON object: claim, variant, confirmed, outcome, ratio, arithmetic, hypotheses,
        message.
    """
    from ..theory import recheck

    result = recheck(file)
    if json:
        print_json(result.to_json())
    else:
        print(f"{result.claim} ({result.variant}): {result.message}")
        if result.confirmed:
            form = "printed" if result.variant == "printed" else f"in the form {result.variant!r}"
            print(f"  {result.claim} is false as {form}")
        print(f"  evaluated by {result.arithmetic}")
        for check in result.hypotheses:
            state = "holds" if check.holds else "fails"
            print(f"  {check.name}: {check.value:.6g} <= {check.threshold:.6g} {state}")
    return 0 if result.confirmed else REJECTED
