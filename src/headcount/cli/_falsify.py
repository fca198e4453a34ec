"""`headcount falsify`: search for a counterexample to a claim."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from ._flags import Whole
from ._output import print_json

VIOLATED = 3


def falsify_command(
    claim: str,
    /,
    *,
    variant: str | None = None,
    budget: str = "default",
    seed: Whole = 0,
    out: Path = Path("certificates"),
    cold: Annotated[bool, Parameter(negative=())] = False,
    strict: Annotated[bool, Parameter(negative=())] = False,
    json: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """Maximise left over right side of a claim over admissible instances.

    What exceeds 1 is made as simple as possible, proved in ball arithmetic and written as a
    certificate; `headcount recheck` proves it again. Exit code 3 with --strict on a violation.

    Parameters
    ----------
    claim
        Id such as arda2026/lemma-3.
    variant
        printed, corrected, sharp, ...; by default the one that Headcount uses.
    budget
        small, default, large, or a number of evaluations per family of instances.
    seed
        Seed of the search.
    out
        Folder for a certificate.
    cold
        Search alone: leave out known constructions and the worst instances on file.
    strict
        Exit with code 3 when a violation was found.
    json
        Print one JSON object: claim, variant, worst_ratio, violated, instances, certificate,
        proved.
    """
    from rich.console import Console

    from ..theory import claims, falsify

    notes = Console(stderr=True)
    chosen = claims[claim]
    with notes.status("searching") as status:
        result = falsify(
            chosen, variant, budget=budget, seed=seed, cold=cold, progress=status.update
        )
    path = None
    if result.certificate is not None:
        path = str(result.certificate.write(out / result.certificate.file_name))
    code = VIOLATED if strict and result.violated else 0
    if json:
        print_json(result.to_json(path))
        return code
    console = Console()
    console.print(f"[bold]{chosen.id}[/bold] ({result.variant}): {chosen.title}")
    console.print(f"  {chosen.statement}", highlight=False)
    form = chosen.variants[result.variant]
    console.print(f"  variant: {form.text}", highlight=False)
    console.print(f"  {result.message}, {result.instances} instances, {result.seconds:.1f} s")
    if result.violated:
        _show_instance(console, result)
    if path is not None:
        console.print(f"  certificate: {path}")
        console.print(f"  prove it again: headcount recheck {path}")
    return code


def _show_instance(console: Any, result: Any) -> None:
    """The counterexample itself, one line for each array: small enough to be read."""
    from dataclasses import fields

    import numpy as np

    if result.proof is not None:
        console.print(f"  {result.proof.status}: {result.proof.reason}", highlight=False)
    if result.worst is None:
        return
    for field in fields(result.worst):
        value = getattr(result.worst, field.name)
        text = value if isinstance(value, (str, int)) else np.asarray(value).tolist()
        shown = str(text)
        console.print(f"    {field.name} = {shown[:200]}", highlight=False, markup=False)
