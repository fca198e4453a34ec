"""`headcount falsify`: search for a counterexample to a claim."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ._output import print_json


def falsify_command(
    claim: str,
    /,
    *,
    variant: str | None = None,
    budget: str = "default",
    seed: int = 0,
    out: Path = Path("certificates"),
    json: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """Maximise left over right side of a claim over admissible instances.

    Writes a certificate when the claim fails; `headcount recheck` verifies it.

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
    json
        Print one JSON object: claim, variant, worst_ratio, violated, instances, certificate.
    """
    from rich.console import Console

    from ..theory import claims, falsify

    notes = Console(stderr=True)
    chosen = claims[claim]
    with notes.status("searching") as status:
        result = falsify(chosen, variant, budget=budget, seed=seed, progress=status.update)
    path = None
    if result.certificate is not None:
        path = str(result.certificate.write(out / result.certificate.file_name))
    if json:
        print_json(result.to_json(path))
        return 0
    console = Console()
    console.print(f"[bold]{chosen.id}[/bold] ({result.variant}): {chosen.title}")
    console.print(f"  {chosen.statement}", highlight=False)
    form = chosen.variants[result.variant]
    console.print(f"  variant: {form.text}", highlight=False)
    console.print(f"  {result.message}, {result.instances} instances, {result.seconds:.1f} s")
    if path is not None:
        console.print(f"  certificate: {path} (verify it with `headcount recheck {path}`)")
    return 0
