"""The results folder: where everything lies, and who may touch it when."""

from __future__ import annotations

import contextlib
import errno
import math
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeVar

from ..core import BadArgument
from ..core._checks import check_kind
from ..core._files import check_folder_is_writable
from ..core._inside import follow_no_link_below, inside
from ..core._owner import owner
from ._errors import CorruptFile, NewerFormat, StorageError
from ._files import FORMAT, read_file, read_note, write_file, write_note
from ._index import Index, State, free_name, in_short
from ._leftovers import remove_leftovers, remove_ours, running_addresses
from ._locks import Holder, claim, holder, is_claimed
from ._stored import Signature, StoredTrial, checked, signature

DEFAULT_FOLDER = Path("headcount-results")
"""Where results go unless somebody says otherwise."""
_MARKER = "headcount-results.json"
_FOLDERS = ("trials", "checkpoints", "running", "plans", "index")
_NOTED_AT_A_TIME = 1000
_T = TypeVar("_T")


def _ignore(message: str) -> None:
    """Nobody listens."""


class Store:
    """A results folder.

    trials/ab/<address>.h5      finished trials, also the failed ones
    checkpoints/<address>.h5    states inside unfinished trials
    running/                    locks and progress of trials under way
    plans/                      what was asked for, read by `headcount status`
    index/                      copies of small trials, to be read at once
    figures/<figure>/<scale>/   data set, table and plots

    Only `prepare` makes folders: when one vanishes during a run, that is noticed and not mended.
    """

    def __init__(
        self, folder: Path = DEFAULT_FOLDER, message: Callable[[str], None] = _ignore
    ) -> None:
        self.folder = Path(check_kind("folder", folder, (str, Path), fix="give a folder"))
        self._message = message
        follow_no_link_below(self.folder)
        self.index = Index(self.folder / "index" / "trials.sqlite3")
        self._seen: dict[str, tuple[Signature, State]] = {}
        self._damaged_marker = _check_marker(self.folder)

    def prepare(self) -> None:
        """Create the folder, and find out now rather than later that it cannot be written.

        The marker comes first: a folder that holds anything else without it is none of ours.
        """
        marker = self.folder / _MARKER
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            check_folder_is_writable(self.folder)
            if self._damaged_marker:
                self._message(f"{_MARKER} was damaged and is written again")
            if self._damaged_marker or not marker.exists():
                write_note(marker, {"format": FORMAT, "program": "headcount"}, sync=True)
            for name in _FOLDERS:
                with inside(self.folder / name, make=True):
                    pass
            self._remove_what_kills_left()
        except OSError as error:
            raise BadArgument(
                "out",
                str(self.folder),
                f"cannot be written ({_in_words(error)})",
                fix="choose another folder with --out",
            ) from error

    def trial_path(self, address: str) -> Path:
        """Where the result of a trial lies."""
        return self.folder / "trials" / address[:2] / f"{address}.h5"

    def checkpoint_path(self, address: str) -> Path:
        """Where the state of an unfinished trial lies."""
        return self.folder / "checkpoints" / f"{address}.h5"

    def progress_path(self, address: str) -> Path:
        """Where a running trial tells how far it is."""
        return self.folder / "running" / f"{address}.json"

    def trace_path(self, address: str) -> Path:
        """Where a trial that took too long leaves what it was doing."""
        return self.folder / "running" / f"{address}.trace"

    def new_stop_path(self) -> Path:
        """The file whose existence asks the trials of a sweep to save and stop."""
        return self.folder / "running" / f"sweep.{owner()}-{secrets.token_hex(4)}.stop"

    def plan_folder(self) -> Path:
        """Where the plans that were asked for are noted."""
        return self.folder / "plans"

    def figure_folder(self, figure: str, scale: str) -> Path:
        """Where a figure's data set, table and plots go."""
        return self.folder / "figures" / figure.replace("/", "-") / scale

    def claim(self, address: str) -> AbstractContextManager[bool]:
        """Own a trial while computing it; yields False when another process does."""
        return claim(self._lock_path(address))

    def holder(self, address: str) -> Holder | None:
        """Who computes a trial, as far as that can be told."""
        return holder(self._lock_path(address))

    def has(self, address: str) -> bool:
        """Whether there is a result, whatever is in it."""
        return os.path.exists(self._file(address))

    def read(self, address: str) -> StoredTrial | None:
        """A finished trial, or None; a damaged file counts as none and is left where it is."""
        try:
            return self._read(address)
        except CorruptFile as error:
            self._message(f"damaged result {error}; it will not be used")
            return None

    def read_or_set_aside(self, address: str) -> StoredTrial | None:
        """Like `read`, but a damaged file is renamed, so that the trial can be recomputed."""
        try:
            return self._read(address)
        except CorruptFile as error:
            path = self.trial_path(address)
            aside = free_name(path)
            with contextlib.suppress(FileNotFoundError), inside(path.parent) as held:
                held.move(path.name, aside.name)
            self._message(
                f"damaged result {error}; set aside as {aside.name}, the trial is recomputed"
            )
            return None

    def read_all(self, addresses: Iterable[str]) -> dict[str, StoredTrial | None]:
        """Many trials, with records in short; of small ones the copies in the index."""
        addresses = list(addresses)
        shared: dict[str, Any] = {}
        known = self.index.copies(addresses)
        return self._verified(addresses, known, lambda trial: in_short(trial, shared), None)

    def states(self, addresses: Iterable[str]) -> dict[str, State]:
        """(outcome, reason) of many trials, ("missing", "") without one.

        Every byte of a file is checked when it is first seen, and again when it has changed.
        """
        addresses = list(addresses)
        known = {address: (found, state) for address, found, state in self.index.states(addresses)}
        known |= self._seen
        rows = ((address, *known[address]) for address in addresses if address in known)
        return self._verified(
            addresses, rows, lambda trial: (trial.outcome, trial.reason), ("missing", "")
        )

    def state(self, address: str) -> State:
        """(outcome, reason) of one trial."""
        return self.states([address])[address]

    def _verified(
        self,
        addresses: list[str],
        known: Iterable[tuple[str, Signature, _T]],
        of: Callable[[StoredTrial], _T],
        none: _T,
    ) -> dict[str, _T]:
        """What is known of unchanged files, and what the others say; that is noted."""
        found = {a: fact for a, before, fact in known if signature(self._file(a)) == before}
        fresh: dict[str, tuple[Signature, StoredTrial]] = {}
        for address in addresses:
            if address in found:
                continue
            now = signature(self._file(address))
            trial = None if now is None else self.read(address)
            found[address] = none if trial is None else of(trial)
            if now is None or trial is None:
                continue
            fresh[address] = now, trial
            self._seen[address] = now, (trial.outcome, trial.reason)
            if len(fresh) == _NOTED_AT_A_TIME:
                self.index.add(fresh)
                fresh.clear()
        if fresh:
            self.index.add(fresh)
        return {address: found[address] for address in addresses}

    def write(self, address: str, payload: Mapping[str, Any], record: Mapping[str, Any]) -> None:
        """Store a finished trial; call while owning it."""
        path = self.trial_path(address)
        try:
            with inside(path.parent.parent) as held:  # not its parents: see the class
                held.make(path.parent.name)
        except OSError as error:
            raise StorageError.at(path, error) from error
        write_file(path, "trial", address, payload, record)

    def tidy(self, addresses: Iterable[str]) -> None:
        """Remove what processes killed right after storing these trials left behind."""
        left = {path.stem for path in (self.folder / "checkpoints").glob("*.h5")}
        for address in (left | set(self._noted_running())) & set(addresses):
            with self.claim(address) as mine:
                if mine:
                    remove_ours(self.checkpoint_path(address))
                    remove_ours(self.progress_path(address))

    def forget_progress(self, address: str) -> None:
        """Remove what a trial that nobody computes any more told about itself."""
        with self.claim(address) as mine:
            if mine:
                remove_leftovers(self.folder / "running", f"{address}.")
                remove_ours(self.progress_path(address))
                remove_ours(self.trace_path(address))

    def running(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Address and progress of the trials that some process computes now."""
        for path in sorted((self.folder / "running").glob("*.json")):
            note = self.progress(path.stem)
            if note is not None and is_claimed(path.with_suffix(".lock")):
                yield path.stem, note

    def progress(self, address: str) -> dict[str, Any] | None:
        """What a running trial last told about itself; None when that makes no sense."""
        try:
            note = read_note(self.progress_path(address))
            numbers = [float(note[name]) for name in ("done", "total", "seconds")]
            values = {str(name): str(float(value)) for name, value in note["values"].items()}
            label = str(note["label"])
        except (OSError, CorruptFile, KeyError, TypeError, ValueError, AttributeError):
            return None
        if not all(map(math.isfinite, numbers)):
            return None
        done, total, seconds = numbers
        return {"label": label, "done": done, "total": total, "values": values, "seconds": seconds}

    def _read(self, address: str) -> StoredTrial | None:
        path = self.trial_path(address)
        try:
            payload, record, _ = read_file(path, "trial", address)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return checked(path, address, StoredTrial(payload, record))

    def _file(self, address: str) -> str:
        """The same as `trial_path`, ten times as fast."""
        return f"{self.folder}/trials/{address[:2]}/{address}.h5"

    def _lock_path(self, address: str) -> Path:
        return self.folder / "running" / f"{address}.lock"

    def _noted_running(self) -> list[str]:
        return running_addresses(self.folder / "running")

    def _remove_what_kills_left(self) -> None:
        """Unfinished files, locks, progress and stop signs of processes that are gone."""
        folders = [self.folder, *(self.folder / name for name in _FOLDERS if name != "trials")]
        for name in ("trials", "figures"):
            folders += [Path(each) for each, _, _ in os.walk(self.folder / name)]
        for folder in folders:
            remove_leftovers(folder)
        for address in self._noted_running():
            if not is_claimed(self._lock_path(address)):
                with contextlib.suppress(OSError):  # in the place of a lock is something else
                    self.forget_progress(address)


def _check_marker(folder: Path) -> bool:
    """Refuse what is no results folder or a newer one; whether its marker is damaged.

    Every file tells its own format, so that a damaged marker endangers nothing.
    """
    if folder.exists() and not folder.is_dir():
        raise BadArgument("out", str(folder), "is not a folder", fix="choose a folder with --out")
    try:
        found = int(read_note(folder / _MARKER)["format"])
    except FileNotFoundError:
        _check_nobody_is_in(folder)
        return False
    except (CorruptFile, ValueError, KeyError, TypeError):
        return True
    except OSError as error:
        raise _unreadable(folder, error) from error
    if found > FORMAT:
        raise NewerFormat(folder, found, FORMAT)
    return False


def _check_nobody_is_in(folder: Path) -> None:
    """Refuse a folder without our marker that holds anything but the beginning of one."""
    try:
        names = os.listdir(folder) if folder.exists() else []
    except OSError as error:
        raise _unreadable(folder, error) from error
    others = [name for name in names if not name.startswith(f"{_MARKER}.")]
    if others and not (folder / _MARKER).exists():  # another sweep may just have made it
        raise BadArgument(
            "out",
            str(folder),
            "holds other files and is no results folder",
            fix=f"choose another folder with --out; if only its {_MARKER} was lost, make an empty "
            "file of that name",
        )


def _unreadable(folder: Path, error: OSError) -> BadArgument:
    problem = f"cannot be read ({_in_words(error)})"
    return BadArgument("out", str(folder), problem, fix="choose another --out")


def _in_words(error: OSError) -> str:
    """The reason, with the name of what is a link."""
    reason = error.strerror or str(error)
    return f"{error.filename} {reason}" if error.errno == errno.ELOOP else reason
