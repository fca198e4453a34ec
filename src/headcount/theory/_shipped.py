"""The certificates that papers bring along: their known counterexamples."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ..core import BadArgument, Paper, check_choice, papers
from ..core._outside import left_out_if_broken
from ..core._registry import suggestion
from ._certificate import Certificate, read_certificate
from ._registry import claims


def certificate_named(name: str) -> Path:
    """The file of this name: a path, or a certificate that a paper brings along.

    A shipped one is named by its file, or by its claim where that has only one.
    """
    file = Path(name)
    if file.exists() or file.suffix == ".json":
        return file
    shipped: dict[str, Path] = {}
    for path in shipped_certificates():
        shipped.setdefault(path.stem, path)  # ours come first: nobody else takes their names
    wanted = name.replace("/", "-")
    found = [stem for stem in shipped if stem == wanted] or [
        stem for stem in shipped if stem.rpartition("-")[0] == wanted
    ]
    if len(found) == 1:
        return shipped[found[0]]
    fix = f"use {' or '.join(found)}" if found else suggestion(wanted, list(shipped))
    problem = "is the start of several certificates" if found else "is no certificate"
    raise BadArgument("certificate", name, problem, fix=fix)


def shipped_certificates() -> list[Path]:
    """The files, paper by paper."""
    return [path for _, path in _shipped()]


def read_shipped(start: str = "") -> list[tuple[Path, Certificate]]:
    """Those whose file name has this start, read; a broken one from outside is left out."""
    found = []
    for paper, path in _shipped():
        if path.name.startswith(start):
            what = f"certificate {path.name} of paper {paper.key!r}"
            with left_out_if_broken(what, ours=paper.key in papers.ours):
                certificate = read_certificate(path)
                check_choice("variant", certificate.variant, claims[certificate.claim].variants)
                found.append((path, certificate))
    return found


def _shipped() -> Iterator[tuple[Paper, Path]]:
    for key, paper in papers.items():
        files: list[Path] = []
        with left_out_if_broken(f"certificates of paper {key!r}", ours=key in papers.ours):
            folder = paper.file("certificates")
            files += sorted(folder.glob("*.json")) if folder is not None else []
        for file in files:
            yield paper, file
