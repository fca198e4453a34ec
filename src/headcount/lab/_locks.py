"""One owner per trial, by the kernel's own file locks.

A kernel lock vanishes with its process, also after kill -9 or a power cut: there is nothing to
expire, no clock to compare and no process id to guess about. Where the file system has no locks
the claim is granted to everyone; two sweeps then may compute a trial twice, which is harmless
because results are deterministic and moved into place atomically.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: fall back to harmless double computing.
    fcntl = None  # type: ignore[assignment]

_UNSUPPORTED = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL}


@contextlib.contextmanager
def claim(path: Path) -> Iterator[bool]:
    """Hold the lock file `path`; yields False at once when another process holds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = _try_lock(path)
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            # Unlinked while still locked: whoever opened the old file notices in _try_lock.
            path.unlink(missing_ok=True)
            os.close(descriptor)


def is_claimed(path: Path) -> bool:
    """Whether some process holds the lock now (False where locks are not supported)."""
    if fcntl is None or not path.exists():
        return False
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
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


def _try_lock(path: Path) -> int | None:
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
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
            return descriptor
        os.close(descriptor)


def _is_same_file(descriptor: int, path: Path) -> bool:
    """Whether the locked file is still the one of that name, not one just unlinked."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
