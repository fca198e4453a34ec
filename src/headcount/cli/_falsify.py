"""`headcount falsify`: search for a counterexample to a claim, or to a lemma of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from ._export import export_to
from ._flags import Whole
from ._meaning import called, meaning
from ._output import check_file, check_writable, print_json, say, say_command

VIOLATED = 3


def falsify_command(
    claim: str,
    /,
    *,
    variant: str | None = None,
    budget: str = "default",
    seed: Whole = 0,
    out: Path = Path("certificates"),
    export: Path | None = None,
    cold: Annotated[bool, Parameter(negative=())] = False,
    strict: Annotated[bool, Parameter(negative=())] = False,
    trust: Annotated[bool, Parameter(negative=())] = False,
    json: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """Maximise left over right side of a claim over admissible instances.

    What exceeds 1 is made as simple as possible, proved in ball arithmetic and written as a
    certificate; `headcount recheck` proves it again. Exit code 3 with --strict on a violation.

    Parameters
    ----------
    claim
        Id such as arda2026/lemma-3; or a file with lemmas of your own, my_lemma.py or
        my_lemma.py:name. The file is run.
    variant
        printed, corrected, sharp, ...; by default the one that Headcount uses, and all of a lemma.
    budget
        small, default, large, or a number of evaluations per family of instances.
    seed
        Seed of the search.
    out
        Folder for a certificate.
    export
        File for a portable certificate, of the last violation that is found: `python
        check_certificate.py FILE` proves it with python-flint alone.
    cold
        Search alone: leave out known constructions and the worst instances on file.
    strict
        Exit with code 3 when a violation was found.
    trust
        Do not ask before a file outside the current folder is run.
    json
        Print one JSON object: claim, variant, worst_ratio, violated, instances, certificate,
        proved, sizes, instance, called (what a violation means); for a lemma also per_size
        and growth. Several lemmas or variants of a file make a list.
    """
    from rich.console import Console

    from ..theory import Claim, claims, falsify
    from ..theory.lemma_files import is_lemma_file
    from ._lemmas import lemmas_from

    asked: list[tuple[Claim, str | None]] = []
    if is_lemma_file(claim):
        for own in lemmas_from(claim, trust=trust):
            asked += [(own, form) for form in ([variant] if variant else own.variants)]
    else:
        asked.append((claims[claim], variant))
    check_writable("out", out)
    check_file("export", export)
    notes, shown, code = Console(stderr=True), [], 0
    last: tuple[Any, Any] = (None, None)
    for chosen, form in asked:
        with notes.status("searching") as status:
            result = falsify(
                chosen, form, budget=budget, seed=seed, cold=cold, progress=status.update
            )
        path = None
        if result.certificate is not None:
            last = chosen, result.certificate
            path = str(result.certificate.write(out / result.certificate.file_name))
        code = VIOLATED if strict and result.violated else code
        if json:
            words = called(chosen, result.variant) if result.violated else ""
            shown.append({**result.to_json(path), "called": words})
        else:
            _print(chosen, result, path, claim if is_lemma_file(claim) else None)
    export_to(export, *last)
    if json:
        print_json(shown[0] if len(shown) == 1 else shown)
    return code


def _print(chosen: Any, result: Any, path: str | None, file: str | None) -> None:
    """The outcome for a reader."""
    from rich.console import Console
    from rich.text import Text

    console = Console()
    title = Text(f"{chosen.id} ({result.variant}): {chosen.title}")
    title.stylize("bold", 0, len(chosen.id))
    console.print(title)
    say(console, chosen.statement, indent=2)
    form = chosen.variants[result.variant]
    say(console, f"form: {form.text}", indent=2)
    counted = f"{result.instances} instances"
    told = result.message if counted in result.message else f"{result.message}, {counted}"
    say(console, f"{told}, {result.seconds:.1f} s", indent=2)
    for row in result.per_size:
        sizes = ", ".join(f"{name}={value}" for name, value in row.sizes.items()) or "all sizes"
        console.print(f"    {sizes}: {row.shown}", highlight=False)
    for sentence in result.growth:
        say(console, sentence, indent=2)
    if result.proved or (result.violated and result.certificate is not None):
        for line in meaning(chosen, result.variant, unicode="utf" in console.encoding):
            say(console, line, indent=2)
    if result.shown is not None:
        _show_paste(console, result)
    elif result.violated:
        _show_instance(console, result)
    if path is not None:
        place = "" if file is None else file.rpartition(".py")[0]
        own = chosen.id.rpartition(":")[2]
        lemma = f" --lemma {place}.py:{own}" if place else ""
        say_command(console, f"certificate: {path}", indent=2)
        say_command(console, f"prove it again: headcount recheck {path}{lemma}", indent=2)


def _show_paste(console: Any, result: Any) -> None:
    """A lemma's counterexample to read, and to paste into a report."""
    plain = {"highlight": False, "markup": False, "soft_wrap": True}
    console.print(f"  {result.proof.status}: {result.proof.reason}", **plain)
    console.print(f"  counterexample: {result.shown.text}", **plain)
    console.print(f"  LaTeX: {result.shown.latex}", **plain)
    console.print("  Python:", **plain)
    for line in result.shown.python.splitlines():
        console.print(f"    {line}", **plain)


def _show_instance(console: Any, result: Any) -> None:
    """The counterexample itself, one line for each array: small enough to be read."""
    if result.proof is not None:
        console.print(f"  {result.proof.status}: {result.proof.reason}", highlight=False)
    for name, value in result.points.items():
        console.print(f"    {name} = {str(value)[:200]}", highlight=False, markup=False)
