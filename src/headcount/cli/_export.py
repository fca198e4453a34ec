"""`--export FILE`: a counterexample with its statement as a program, and what the checker says."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any


def export_to(file: Path | None, claim: Any, certificate: Any) -> None:
    """Write the portable certificate, if one is asked for."""
    from ..theory import export

    if file is None:
        return
    if certificate is None:
        print(f"headcount: {file} is not written: nothing was found false", file=sys.stderr)
        return
    for line in export(claim, certificate, file):
        print(line, file=sys.stderr)
    print(f"check it: python check_certificate.py {file}", file=sys.stderr)
