"""Opening, making, moving and removing files without following links that Headcount did not make.

Headcount makes no links. In a folder of results, which others may write to or which came in an
archive, a link in the place of a lock or of a folder would lead a write to any file of the user.
A folder is therefore opened name by name, and what happens in it happens through its handle. The
folder itself, as the user named it, may be a link.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_AT_ONCE = getattr(os, "O_NONBLOCK", 0)  # a named pipe is told, not waited for
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
_HAS_HANDLES = bool(_NO_LINK) and {os.open, os.mkdir, os.unlink, os.rename} <= os.supports_dir_fd
_guarded: set[Path] = set()


def follow_no_link_below(folder: Path) -> None:
    """From now on this process goes through no link below `folder`."""
    _guarded.add(folder)


@dataclass(frozen=True)
class Inside:
    """A folder that is held: its names stay in it, whatever takes its place meanwhile."""

    folder: Path
    handle: int | None
    """None where the system has no handles of folders; paths are used then."""

    def open(self, name: str, flags: int) -> int:
        """A descriptor of the ordinary file `name`."""
        if not _NO_LINK and (self.folder / name).is_symlink():
            raise _is_link(self.folder / name)
        try:
            flags |= _NO_LINK | _AT_ONCE
            descriptor = os.open(self.place(name), flags, 0o666, dir_fd=self.handle)
        except OSError as error:
            raise _told(error, self.folder / name) from error
        if not stat.S_ISREG(mode := os.fstat(descriptor).st_mode):
            os.close(descriptor)
            number = errno.EISDIR if stat.S_ISDIR(mode) else errno.EBADMSG
            raise OSError(number, "is no ordinary file", str(self.folder / name))
        return descriptor

    def make(self, name: str) -> None:
        """A folder in this one; it may be there already."""
        with contextlib.suppress(FileExistsError):
            os.mkdir(self.place(name), dir_fd=self.handle)

    def move(self, name: str, to: str) -> None:
        """Give a file another name, in the place of what has it."""
        os.replace(self.place(name), self.place(to), src_dir_fd=self.handle, dst_dir_fd=self.handle)

    def remove(self, name: str) -> None:
        """Remove a file, if there is one."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.place(name), dir_fd=self.handle)

    def names(self) -> list[str]:
        """What is in the folder."""
        return os.listdir(self.folder if self.handle is None else self.handle)

    def sync(self) -> None:
        """Wait until the names are on the disk; Windows cannot."""
        if self.handle is not None:
            os.fsync(self.handle)

    def place(self, name: str) -> str:
        """How the system is told of a name, beside `dir_fd=handle`."""
        return str(self.folder / name) if self.handle is None else name


@contextlib.contextmanager
def inside(folder: Path, *, make: bool = False) -> Iterator[Inside]:
    """Hold `folder`; below a guarded folder no name on the way to it may be a link."""
    base = next((each for each in (folder, *folder.parents) if each in _guarded), folder)
    if make:
        base.mkdir(parents=True, exist_ok=True)
    held = Inside(base, os.open(base, _FOLDER) if _HAS_HANDLES else None)
    try:
        for name in folder.relative_to(base).parts:
            held = _deeper(held, name, make)
        yield held
    finally:
        if held.handle is not None:
            os.close(held.handle)


def open_inside(path: Path, flags: int) -> int:
    """A descriptor of an ordinary file; its folder must exist."""
    with inside(path.parent) as held:
        return held.open(path.name, flags)


def read_inside(path: Path) -> bytes:
    """All bytes of an ordinary file, which is not reached through a link."""
    with open(open_inside(path, os.O_RDONLY), "rb") as file:
        return file.read()


def remove_inside(path: Path) -> None:
    """Remove a file, if it is there."""
    with contextlib.suppress(FileNotFoundError), inside(path.parent) as held:
        held.remove(path.name)


def _deeper(held: Inside, name: str, make: bool) -> Inside:
    """The folder `name` in a held one, which is let go."""
    path = held.folder / name
    if make:
        held.make(name)
    if held.handle is None:
        if path.is_symlink():
            raise _is_link(path)
        return Inside(path, None)
    try:
        deeper = os.open(name, _FOLDER | _NO_LINK, dir_fd=held.handle)
    except OSError as error:
        raise _told(error, path) from error
    os.close(held.handle)
    return Inside(path, deeper)


def _told(error: OSError, path: Path) -> OSError:
    """The error with the whole path; systems disagree on the number of one about a link."""
    if path.is_symlink():
        return _is_link(path)
    return OSError(error.errno, error.strerror, str(path))


def _is_link(path: Path) -> OSError:
    return OSError(errno.ELOOP, "is a link, and links are not followed", str(path))
