"""The results folder: where everything lies, and who may touch it when."""

from __future__ import annotations

import contextlib
import math
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from ..core import BadArgument, check_folder_is_writable, is_abandoned, owner
from ._errors import CorruptFile, NewerFormat, StorageError
from ._files import (
    FORMAT,
    check_file,
    read_file,
    read_note,
    remove_leftovers,
    write_file,
    write_note,
)
from ._index import Entries, StoredTrial, load_index, save_index, signature
from ._locks import Holder, claim, holder, is_claimed

DEFAULT_FOLDER = Path("headcount-results")
"""Where results go unless somebody says otherwise."""
_MARKER = "headcount-results.json"
_FOLDERS = ("trials", "checkpoints", "running", "plans", "index")
_WORTH_AN_INDEX = 32


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

    def __init__(self, folder: Path, message: Callable[[str], None] = _ignore) -> None:
        self.folder = Path(folder)
        self._message = message
        self._known: Entries = {}
        self._damaged_marker = _check_format(self.folder)

    def prepare(self) -> None:
        """Create the folder, and find out now rather than later that it cannot be written."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            for name in _FOLDERS:
                (self.folder / name).mkdir(exist_ok=True)
            check_folder_is_writable(self.folder)
        except OSError as error:
            raise BadArgument(
                "out",
                str(self.folder),
                f"cannot be written ({error.strerror})",
                fix="choose another folder with --out",
            ) from error
        if self._damaged_marker:
            self._message(f"{_MARKER} was damaged and is written again")
        if self._damaged_marker or not (self.folder / _MARKER).exists():
            write_note(self.folder / _MARKER, {"format": FORMAT, "program": "headcount"}, sync=True)
        self._remove_what_kills_left()

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
        return self.trial_path(address).exists()

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
            aside = _free_name(path)
            with contextlib.suppress(FileNotFoundError):
                path.rename(aside)
            self._message(
                f"damaged result {error}; set aside as {aside.name}, the trial is recomputed"
            )
            return None

    def use_index(self, identity: str) -> Entries:
        """Take small trials from the index of that name, where their files are unchanged."""
        entries = load_index(self._index_path(identity), identity)
        self._known = {**entries, **self._known}
        return entries

    def read_all(self, addresses: Iterable[str], identity: str) -> dict[str, StoredTrial | None]:
        """Many trials, with the help of the index of that name, which is brought up to date."""
        before = self.use_index(identity)
        found = {address: self.read(address) for address in addresses}
        small = {a: self._known[a] for a in found if found[a] is not None and a in self._known}
        new = sum(before.get(address, (None,))[0] != small[address][0] for address in small)
        if new >= _WORTH_AN_INDEX:
            save_index(self._index_path(identity), identity, small)
        return found

    def state(self, address: str) -> tuple[str, str]:
        """(outcome, reason) of a trial, ("missing", "") without one; every byte is checked."""
        path = self.trial_path(address)
        found, known = signature(path), self._known.get(address)
        if found is None:
            return "missing", ""
        if known is None or known[0] != found:
            try:
                if check_file(path, "trial", address)[0].outcome == "ok":
                    return "ok", ""
            except (CorruptFile, FileNotFoundError):
                pass  # told by `read`
        stored = self.read(address)
        return ("missing", "") if stored is None else (stored.outcome, stored.reason)

    def write(self, address: str, payload: Mapping[str, Any], record: Mapping[str, Any]) -> None:
        """Store a finished trial; call while owning it."""
        path = self.trial_path(address)
        try:
            path.parent.mkdir(exist_ok=True)  # not its parents: see the class
        except OSError as error:
            raise StorageError.at(path, error.strerror or str(error)) from error
        write_file(path, "trial", address, payload, record)

    def tidy(self, address: str) -> None:
        """Remove what a process killed right after storing this trial left behind."""
        checkpoint, progress = self.checkpoint_path(address), self.progress_path(address)
        if checkpoint.exists() or progress.exists():
            with self.claim(address) as mine:
                if mine:
                    checkpoint.unlink(missing_ok=True)
                    progress.unlink(missing_ok=True)

    def forget_progress(self, address: str) -> None:
        """Remove what a trial that nobody computes any more told about itself."""
        with self.claim(address) as mine:
            if mine:
                remove_leftovers(self.folder / "running", f"{address}.*")
                self.progress_path(address).unlink(missing_ok=True)
                self.trace_path(address).unlink(missing_ok=True)

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
        found = signature(path)
        if found is None:
            return None
        known = self._known.get(address)
        if known is not None and known[0] == found:
            return known[1]
        try:
            payload, record, _ = read_file(path, "trial", address)
        except FileNotFoundError:
            return None
        trial = StoredTrial(payload, record)
        if trial.is_small:
            self._known[address] = (found, trial)
        return trial

    def _index_path(self, identity: str) -> Path:
        return self.folder / "index" / f"{identity}.h5"

    def _lock_path(self, address: str) -> Path:
        return self.folder / "running" / f"{address}.lock"

    def _remove_what_kills_left(self) -> None:
        """Temporary files, locks, progress and stop signs of processes that are gone."""
        running = self.folder / "running"
        for folder in (
            self.folder,
            *(self.folder / name for name in _FOLDERS),
            *(path for path in (self.folder / "trials").iterdir() if path.is_dir()),
            *(path for path in self.folder.glob("figures/**") if path.is_dir()),
        ):
            remove_leftovers(folder)
        for stop in running.glob("*.stop"):
            if is_abandoned(stop):
                stop.unlink(missing_ok=True)
        for path in [*running.glob("*.lock"), *running.glob("*.json"), *running.glob("*.trace")]:
            if not is_claimed(self._lock_path(path.stem)):
                self.forget_progress(path.stem)


def _check_format(folder: Path) -> bool:
    """Refuse what is no results folder or a newer one; whether its marker is damaged.

    Every file tells its own format, so that a damaged marker endangers nothing.
    """
    if folder.exists() and not folder.is_dir():
        raise BadArgument("out", str(folder), "is not a folder", fix="choose a folder with --out")
    try:
        found = int(read_note(folder / _MARKER)["format"])
    except FileNotFoundError:
        return False
    except (CorruptFile, ValueError, KeyError, TypeError):
        return True
    except OSError as error:
        raise BadArgument(
            "out", str(folder), f"cannot be read ({error.strerror})", fix="choose another --out"
        ) from error
    if found > FORMAT:
        raise NewerFormat(folder, found, FORMAT)
    return False


def _free_name(path: Path) -> Path:
    k = 1
    while (aside := path.with_name(f"{path.name}.corrupt-{k}")).exists():
        k += 1
    return aside
