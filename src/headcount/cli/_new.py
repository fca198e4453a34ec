"""`headcount new`: a working starting point for a lemma, a figure or a paper."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from keyword import iskeyword
from pathlib import Path
from string import Template
from typing import Literal

from ._output import check_writable

_FIRST = {
    "lemma": "headcount falsify {name}.py",
    "figure": "python {name}.py",
    "paper": "pip install -e {name}, then headcount falsify {name}/softmax-norm",
}
EXAMPLE = "smith2030"
"""The paper that the example of a room is about."""


def new_command(
    what: Literal["lemma", "figure", "paper"], name: str, /, *, out: Path = Path()
) -> int:
    """Write a lemma file, a figure or the package of a paper that works as it is, with its tests.

    Nothing that exists is overwritten.

    Parameters
    ----------
    what
        lemma, figure or paper (an installable package with its entry point).
    name
        A Python name, such as my_lemma or smith2030.
    out
        Folder to write into.
    """
    from ..core import BadArgument, papers
    from ..core._files import write_atomically

    known = iskeyword(name) or name == "headcount"
    if not (name.isidentifier() and name.isascii()) or known:
        plain = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_")
        usable = plain.isidentifier() and plain != name
        fix = f"use {plain}" if usable else "use letters, digits and _"
        raise BadArgument("name", name, "is no Python name", fix=fix)
    if what == "paper" and not re.fullmatch(r"[a-z][a-z0-9]*", name):
        raise BadArgument("name", name, "is no citation key", fix="use one such as smith2030")
    if what == "paper" and name in papers:
        raise BadArgument("name", name, "is a paper that is there", fix="choose another key")
    files = scaffold(what, name)
    check_writable("out", out / name)
    taken = [str(out / file) for file in files if os.path.lexists(out / file)]
    if taken:
        raise BadArgument("name", name, f"{taken[0]} exists", fix="choose another name")
    for file, text in files.items():
        write_atomically(out / file, text.encode())
        print(out / file)
    print(f"Try it: {_FIRST[what].format(name=name)}; test it: pytest")
    return 0


def scaffold(what: str, name: str) -> dict[str, str]:
    """The files, as path: text."""
    here = resources.files("headcount.cli") / "scaffolds" / what
    if what == "paper":
        return dict(_room(here, name))
    values = {"name": name, "id": name.lower().replace("_", "-")}
    return {
        entry.name.replace("NAME", name).removesuffix(".txt"): Template(
            entry.read_text(encoding="utf-8")
        ).substitute(values)
        for entry in here.iterdir()
    }


def _room(here: Traversable, key: str, folder: str = "") -> Iterator[tuple[str, str]]:
    """The example of a paper under another key."""
    for entry in here.iterdir():
        if entry.is_dir():
            yield from _room(entry, key, f"{folder}/{entry.name}")
        elif entry.name.endswith(".txt"):
            place = f"{key}{folder}/{entry.name}".replace("/package", f"/{EXAMPLE}")
            text = entry.read_text(encoding="utf-8")
            yield place.replace(EXAMPLE, key).removesuffix(".txt"), text.replace(EXAMPLE, key)
