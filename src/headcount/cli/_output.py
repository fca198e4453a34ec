"""Where results and notes of a command go."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

PICTURES = (".png", ".pdf", ".svg")
"""What a picture that is asked for may be."""


def consoles(json: bool) -> tuple[Console, Console]:
    """Where results go and where notes go: with --json, standard output is for JSON alone."""
    from rich.console import Console

    notes = Console(stderr=True)
    return (notes if json else Console()), notes


def say(console: Console, text: str, style: str = "", indent: int = 0) -> None:
    """One paragraph; lines that wrap stay under what they belong to."""
    from rich.text import Text

    for line in Text(text, style=style).wrap(console, console.width - indent):
        line.rstrip()
        console.print(Text(" " * indent) + line)


def say_command(console: Console, command: str, indent: int = 0) -> None:
    """A command to paste: on one line, however long it is."""
    line = " " * indent + command
    console.print(line, markup=False, highlight=False, soft_wrap=True)


def check_writable(argument: str, path: Path) -> None:
    """Found out before the work: `path` can be made, in the nearest folder that exists."""
    from ..core import BadArgument
    from ..core._files import check_folder_is_writable

    folder = path.parent
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        check_folder_is_writable(path if path.is_dir() else folder)
    except OSError as error:
        problem = f"cannot be written ({error.strerror})"
        raise BadArgument(argument, str(path), problem, fix="choose another place") from None


def check_file(argument: str, path: Path | None) -> None:
    """The same of a file, where one is asked for: no folder stands in its place."""
    from ..core import BadArgument

    if path is not None:
        check_writable(argument, path)
        if path.is_dir():
            raise BadArgument(argument, str(path), "is a folder", fix="name a file in it")


def check_picture(path: Path | None) -> None:
    """The file of --plot, where one is asked for, is of a kind that can be drawn."""
    from ..core import BadArgument

    if path is not None and path.suffix.lower() not in PICTURES:
        fix = f"end it in {', '.join(PICTURES)}"
        raise BadArgument("plot", str(path), "is no name for a picture", fix=fix)
    check_file("plot", path)


def now_and_then(quiet: bool, seconds: float = 10.0) -> Callable[[str], None]:
    """A line on standard error when the last one is old; for long work without a terminal."""
    last = time.monotonic()

    def tell(text: str) -> None:
        nonlocal last
        if not quiet and time.monotonic() - last >= seconds:
            last = time.monotonic()
            print(text, file=sys.stderr, flush=True)

    return tell


def print_json(content: Any, *, line: bool = False) -> None:
    """One JSON text on standard output, on one `line` where there are several.

    Numbers that are not finite are null.
    """
    from ..core._files import json_text

    print(json_text(content, indent=None if line else 2), flush=True)
