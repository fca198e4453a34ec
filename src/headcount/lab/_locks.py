"""One owner per trial, by the kernel's own file locks.

A kernel lock vanishes with its process, also after kill -9 or a power cut: there is nothing to
expire, no clock to compare and no process id to guess about. Where the file system has no locks
the claim is granted to everyone; two sweeps then may compute a trial twice, which is harmless
because results are deterministic and moved into place atomically.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import platform
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ..core._inside import open_inside, read_inside, remove_inside

try:
    import fcntl
except ImportError:  # Windows: fall back to harmless double computing.
    fcntl = None  # type: ignore[assignment]

BEGINNING = b"["
"""How the content of a lock begins; it may be empty, too."""
_NO_LOCK = {errno.ENOENT, errno.EACCES, errno.EPERM, errno.ELOOP, errno.EISDIR, errno.EBADMSG}
_UNSUPPORTED = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL}


class Holder(NamedTuple):
    """Who holds a lock, as that process wrote it into the lock file."""

    pid: int
    host: str
    since: float

    def __str__(self) -> str:
        minutes = max(time.time() - self.since, 0.0) / 60
        clock = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.since))
        return f"process {self.pid} on {self.host} since {clock} ({minutes:.1f} min)"


@contextlib.contextmanager
def claim(path: Path) -> Iterator[bool]:
    """Hold the lock file `path`; yields False at once when another process holds it.

    The folder must exist: whoever removed it does not want it back.
    """
    descriptor = _try_lock(path)
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            if fcntl is None:
                os.close(descriptor)  # Windows unlinks no open file
            with contextlib.suppress(OSError):
                # Unlinked while still locked: whoever opened the old file notices in _try_lock.
                remove_inside(path)
            if fcntl is not None:
                os.close(descriptor)


def is_claimed(path: Path) -> bool:
    """Whether some process holds the lock now (False where that cannot be known); writes nothing.

    Opened for reading only, so that it works on a read-only disk.
    """
    if fcntl is None:
        return False
    try:
        descriptor = open_inside(path, os.O_RDONLY)
    except OSError as error:
        if error.errno in _NO_LOCK:
            return False
        raise
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError as error:
        if error.errno in _UNSUPPORTED:
            return False
        raise
    finally:
        os.close(descriptor)
    return False


def holder(path: Path) -> Holder | None:
    """Who holds the lock, when that can be read."""
    try:
        pid, host, since = json.loads(read_inside(path))
        return Holder(int(pid), str(host), float(since))
    except (OSError, ValueError, TypeError):
        return None


def _try_lock(path: Path) -> int | None:
    while True:
        descriptor = open_inside(path, os.O_RDWR | os.O_CREAT)
        if os.read(descriptor, len(BEGINNING)) not in (b"", BEGINNING):
            os.close(descriptor)
            raise OSError(errno.EEXIST, "is in the place of a lock", str(path))
        if fcntl is None:
            return descriptor
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except OSError as error:
            if error.errno in _UNSUPPORTED:
                return descriptor
            os.close(descriptor)
            raise
        if _is_same_file(descriptor, path):
            _sign(descriptor)
            return descriptor
        os.close(descriptor)


def _sign(descriptor: int) -> None:
    """Write who holds the lock into it; a full disk is no reason not to hold it."""
    text = json.dumps([os.getpid(), platform.node(), time.time()])
    with contextlib.suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, text.encode(), 0)


def _is_same_file(descriptor: int, path: Path) -> bool:
    """Whether the locked file is still the one of that name, not one just unlinked."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False
