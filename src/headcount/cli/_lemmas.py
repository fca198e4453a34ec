"""Lemma files on the command line: what is said before somebody's file is run."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..theory import Claim


def lemmas_from(name: str, *, trust: bool) -> list[Claim]:
    """The lemmas that `file.py` or `file.py:name` means; running the file runs its code.

    A file outside the current folder is announced first, and on a terminal we ask.
    """
    from ..core import BadArgument
    from ..theory.lemma_files import lemmas_of, outside_here, split_name

    file, _ = split_name(name)
    if not trust and file.is_file() and outside_here(file):
        text = f"{file} is outside the current folder: testing its lemmas runs its code"
        print(f"headcount: {text}", file=sys.stderr, flush=True)
        if sys.stdin.isatty() and sys.stderr.isatty():
            print("headcount: run it? [y/N] ", end="", file=sys.stderr, flush=True)
            if sys.stdin.readline().strip().lower() not in ("y", "yes"):
                raise BadArgument("file", str(file), "was not run", fix="say y, or use --trust")
    return lemmas_of(name)
