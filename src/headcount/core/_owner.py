"""Which process made a temporary file, and whether it can still be at work on it."""

import functools
import hashlib
import os
import platform
import re
import time
from pathlib import Path

ABANDONED_AFTER_SECONDS = 86400.0
"""A temporary file of another machine is taken for abandoned when it is this old."""

_OWNED = re.compile(r"\.([0-9a-f]{8})-(\d+)-[0-9a-f]{8}\.[a-z]+$")


@functools.cache
def _machine() -> str:
    """Equal for two processes exactly when their process ids mean the same.

    After a restart, in another container and on another machine they do not.
    """
    parts = [platform.node()]
    for read in (
        lambda: Path("/proc/sys/kernel/random/boot_id").read_text(),
        lambda: os.readlink("/proc/self/ns/pid"),
    ):
        try:
            parts.append(read())
        except OSError:
            parts.append("")
    return hashlib.sha256("|".join(parts).encode()).hexdigest()[:8]


def owner() -> str:
    """This process, as it stands in the names of its temporary files; no host name to read."""
    return f"{_machine()}-{os.getpid()}"


def is_abandoned(path: Path) -> bool:
    """Whether `path` has the name of a temporary file, and who made it is surely gone.

    A name that does not tell who made the file is none of ours, however old it is.
    """
    named = _OWNED.search(path.name)
    if named is None:
        return False
    if named[1] == _machine() and os.name != "nt":
        return not _is_alive(int(named[2]))
    try:
        return time.time() - path.lstat().st_mtime > ABANDONED_AFTER_SECONDS
    except FileNotFoundError:
        return False


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
