"""Lemmas from a file that the user names. Running it runs its code: nothing else names a file."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from dataclasses import replace
from pathlib import Path

from ..core import BadArgument, float64
from ._claim import Claim


def is_lemma_file(name: str) -> bool:
    """Whether `name` means a file (my_lemma.py, folder/my_lemma.py:name) and no registered claim.

    >>> is_lemma_file("my_lemma.py:name"), is_lemma_file("arda2026/lemma-3")
    (True, False)
    """
    return split_name(name)[0].suffix == ".py"


def split_name(name: str) -> tuple[Path, str | None]:
    """The file and the lemma's own name, None for all of the file."""
    if name.endswith(".py") or ".py:" not in name:
        return Path(name), None
    file, _, own = name.rpartition(":")
    return Path(file), own


def outside_here(file: Path) -> bool:
    """Whether a file lies outside the current folder."""
    return not file.resolve().is_relative_to(Path.cwd().resolve())


def lemmas_of(name: str) -> list[Claim]:
    """The lemmas of my_lemma.py, or the one of my_lemma.py:name. This runs the file."""
    file, own = split_name(name)
    found = _run(file)
    if not found:
        fix = "decorate a function with @lemma(...)"
        raise BadArgument("file", str(file), "declares no lemma", fix=fix)
    if own is None:
        return list(found.values())
    if own not in found:
        raise BadArgument("lemma", own, f"is not in {file.name}", fix=f"use {', '.join(found)}")
    return [found[own]]


def _run(file: Path) -> dict[str, Claim]:
    if not file.is_file():
        raise BadArgument("file", str(file), "does not exist", fix="name a file with lemmas")
    spec = importlib.util.spec_from_file_location(f"headcount_lemmas_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    folder = str(file.resolve().parent)
    sys.path.insert(0, folder)  # as Python does for a script: it may import its neighbours
    try:
        with float64():
            spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        where = traceback.extract_tb(error.__traceback__)
        lines = [str(f.lineno) for f in where if Path(f.filename).name == file.name]
        lines += [str(error.lineno)] if isinstance(error, SyntaxError) and error.lineno else []
        place = f" in line {lines[-1]}" if lines else ""
        words = (str(error).splitlines() or [""])[0]
        problem = f"raises {type(error).__name__}{place}: {words}"
        raise BadArgument("file", str(file), problem, fix="mend the file") from error
    finally:
        sys.path.remove(folder)
    own = {n: v for n, v in vars(module).items() if isinstance(v, Claim) and v.raw}
    # One imported from a neighbour belongs to that file, unless this one has none.
    here = {n: v for n, v in own.items() if Path(v.source).resolve() == file.resolve()}
    return {n: replace(v, id=f"{file.name}:{n}") for n, v in (here or own).items()}
