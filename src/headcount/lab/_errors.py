"""What can go wrong with a results folder, told apart because each needs another answer."""

from __future__ import annotations

import errno
from pathlib import Path

from ..core import HeadcountError


class CorruptFile(Exception):
    """A result or checkpoint that is truncated or altered; it is set aside and recomputed."""

    def __init__(self, path: Path, problem: str) -> None:
        self.path = path
        self.problem = problem
        super().__init__(f"{path.name}: {problem}")

    def __reduce__(self) -> tuple[type[CorruptFile], tuple[Path, str]]:
        return type(self), (self.path, self.problem)


class NewerFormat(HeadcountError):
    """Results written by a later Headcount: never guessed at, never overwritten."""

    def __init__(self, path: Path, found: int, known: int) -> None:
        super().__init__(
            f"{path} has results format {found}, this Headcount reads up to format {known}; "
            "upgrade Headcount or choose another folder with --out"
        )


class StorageError(Exception):
    """A file could not be written: disk full, folder gone, quota reached."""

    @classmethod
    def at(cls, path: Path, error: OSError) -> StorageError:
        """The message for a file that could not be written, and what helps."""
        if error.errno == errno.ENOENT:
            return cls(
                f"could not write {path}: its folder has vanished during the run; "
                "run the same command again, it computes what is missing"
            )
        help_ = _HELP.get(error.errno or 0, "see to the disk")
        where = error.filename if error.errno == errno.ELOOP and error.filename else path
        return cls(
            f"could not write {where}: {error.strerror or error}; what was finished is saved and "
            f"intact, {help_} and run the same command again"
        )


_HELP = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "make room"),
    **dict.fromkeys(
        (errno.EROFS, errno.EACCES, errno.EPERM), "make it writable or name another --out"
    ),
    **dict.fromkeys((errno.ELOOP, errno.EEXIST, errno.EISDIR, errno.EBADMSG), "move it away"),
}
"""What to do about an error of the operating system, by its number."""


class ExecutionError(HeadcountError):
    """The workers cannot run trials at all (as opposed to a trial that fails)."""


class TrialStopped(BaseException):
    """Raised inside a trial when the sweep was interrupted; its state is saved, nothing failed.

    Not an Exception, so that a trial that catches those does not go on by mistake.
    """
