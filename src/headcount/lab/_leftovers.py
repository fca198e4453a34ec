"""What killed processes leave behind: removed when name and content say that we made it.

A results folder may hold a user's own files, whatever they are called. Who made a file stands in
its name or, where one address has one file, its owner holds a lock; how our files begin is in the
tables below. What is empty has no content to lose.
"""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

from ..core._inside import Inside, inside
from ..core._owner import is_abandoned
from . import _files, _locks

STOP = b"headcount"
"""What is in the files by which a sweep tells something to its workers."""
_ADDRESS = re.compile(r"[0-9a-f]{64}")
_BEGINNINGS = {
    ".h5": _files.BEGINNING,
    ".json": b"{",
    ".csv": b"quantity,",
    ".nc": b"\x89HDF\r\n\x1a\n",
    ".png": b"\x89PNG\r\n\x1a\n",
    ".pdf": b"%PDF-",
    ".svg": b"<?xml ",
}
"""Of unfinished files, by the last part of the name that they were to get."""
_SIGNS = (".tmp", ".stop", ".probe")
_RUNNING = {".lock": _locks.BEGINNING, ".json": b'{"label": ', ".trace": b"Timeout ("}
"""Of what a trial under way has beside it, by the last part of the name."""


def remove_leftovers(folder: Path, prefix: str = "") -> None:
    """Delete the unfinished files and signs of processes that are gone; those of others stay."""
    with contextlib.suppress(FileNotFoundError), inside(folder) as held:
        for name in held.names():
            if not name.endswith(_SIGNS) or not name.startswith(prefix):
                continue
            path = folder / name
            if path.suffix == ".tmp":
                beginning = _BEGINNINGS.get(path.with_suffix("").with_suffix("").suffix)
            else:
                beginning = STOP
            if beginning is not None and is_abandoned(path):
                _remove(held, name, beginning)


def remove_ours(path: Path) -> None:
    """Delete a result, a state or what a running trial had beside it, if it is ours and there."""
    beginning = _RUNNING.get(path.suffix, _files.BEGINNING)
    with contextlib.suppress(FileNotFoundError), inside(path.parent) as held:
        _remove(held, path.name, beginning)


def running_addresses(folder: Path) -> list[str]:
    """The trials that have something in `running`, whether or not they run."""
    with inside(folder) as held:
        names = [Path(name) for name in held.names()]
    found = {name.stem for name in names if name.suffix in _RUNNING}
    return sorted(filter(_ADDRESS.fullmatch, found))


def _remove(held: Inside, name: str, beginning: bytes) -> None:
    """Delete the file if it begins so, as far as it goes."""
    try:
        with open(held.open(name, os.O_RDONLY), "rb") as file:
            found = file.read(len(beginning))
    except OSError:  # gone, no file, or not ours to read
        return
    if beginning.startswith(found):
        held.remove(name)
