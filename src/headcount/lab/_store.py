"""The results folder: where everything lies, and who may touch it when."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..core import BadArgument
from ._errors import CorruptFile, NewerFormat
from ._files import FORMAT, read_file, remove_leftovers, write_atomically, write_file
from ._locks import claim, is_claimed

DEFAULT_FOLDER = Path("headcount-results")
_MARKER = "headcount-results.json"


@dataclass(frozen=True)
class StoredTrial:
    """A finished trial: its numbers, and the record of how they came about."""

    payload: dict[str, np.ndarray]
    record: dict[str, Any]

    @property
    def outcome(self) -> str:
        """ "ok", "diverged" or "failed"."""
        return str(self.record["outcome"])

    @property
    def reason(self) -> str:
        """Why it diverged or failed; empty when it is ok."""
        return str(self.record.get("reason") or "")


def _ignore(message: str) -> None:
    """Nobody listens."""


class Store:
    """A results folder.

    trials/ab/<address>.h5      finished trials, also the failed ones
    checkpoints/<address>.h5    states inside unfinished trials
    running/                    locks and progress of trials under way
    plans/                      what was asked for, read by `headcount status`
    figures/<figure>/<scale>/   data set, table and plots
    """

    def __init__(self, folder: Path, message: Callable[[str], None] = _ignore) -> None:
        self.folder = Path(folder)
        self._message = message
        _check_format(self.folder)

    def prepare(self) -> None:
        """Create the folder, and find out now rather than later that it cannot be written."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            probe = self.folder / f".probe-{os.getpid()}"
            probe.write_bytes(b"")
            probe.unlink()
            if not (self.folder / _MARKER).exists():
                marker = json.dumps({"format": FORMAT, "program": "headcount"}) + "\n"
                write_atomically(self.folder / _MARKER, marker.encode())
        except OSError as error:
            raise BadArgument(
                "out",
                str(self.folder),
                f"cannot be written ({error.strerror})",
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

    def stop_path(self, sweep: str) -> Path:
        """The file whose existence asks the trials of a sweep to save and stop."""
        return self.folder / "running" / f"{sweep}.stop"

    def figure_folder(self, figure: str, scale: str) -> Path:
        """Where a figure's data set, table and plots go."""
        return self.folder / "figures" / figure.replace("/", "-") / scale

    def claim(self, address: str) -> AbstractContextManager[bool]:
        """Own a trial while computing it; yields False when another process does."""
        return claim(self.folder / "running" / f"{address}.lock")

    def read(self, address: str) -> StoredTrial | None:
        """A finished trial, or None; a damaged file counts as none and is left where it is."""
        try:
            return StoredTrial(*read_file(self.trial_path(address), "trial"))
        except FileNotFoundError:
            return None
        except CorruptFile as error:
            self._message(f"damaged result {error}; it will not be used")
            return None

    def read_or_set_aside(self, address: str) -> StoredTrial | None:
        """Like `read`, but a damaged file is renamed, so that the trial can be recomputed."""
        path = self.trial_path(address)
        try:
            return StoredTrial(*read_file(path, "trial"))
        except FileNotFoundError:
            return None
        except CorruptFile as error:
            aside = _free_name(path)
            with contextlib.suppress(FileNotFoundError):
                path.rename(aside)
            self._message(
                f"damaged result {error}; set aside as {aside.name}, the trial is recomputed"
            )
            return None

    def write(self, address: str, payload: Mapping[str, Any], record: Mapping[str, Any]) -> None:
        """Store a finished trial; call while owning it."""
        path = self.trial_path(address)
        remove_leftovers(path)
        write_file(path, "trial", payload, record)

    def tidy(self, address: str) -> None:
        """Remove what a process killed right after storing this trial left behind."""
        checkpoint, progress = self.checkpoint_path(address), self.progress_path(address)
        if checkpoint.exists() or progress.exists():
            with self.claim(address) as mine:
                if mine:
                    remove_leftovers(checkpoint)
                    checkpoint.unlink(missing_ok=True)
                    progress.unlink(missing_ok=True)

    def forget_progress(self, address: str) -> None:
        """Remove what a trial that nobody computes any more told about itself."""
        with self.claim(address) as mine:
            if mine:
                remove_leftovers(self.progress_path(address))
                self.progress_path(address).unlink(missing_ok=True)

    def running(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Address and progress of the trials that some process computes now."""
        for path in sorted((self.folder / "running").glob("*.json")):
            note = self.progress(path.stem)
            if note is not None and is_claimed(path.with_suffix(".lock")):
                yield path.stem, note

    def progress(self, address: str) -> dict[str, Any] | None:
        """What a running trial last told about itself."""
        try:
            note: dict[str, Any] = json.loads(self.progress_path(address).read_bytes())
        except (FileNotFoundError, json.JSONDecodeError):
            return None
        return note


def _check_format(folder: Path) -> None:
    marker = folder / _MARKER
    if folder.exists() and not folder.is_dir():
        raise BadArgument("out", str(folder), "is not a folder", fix="choose a folder with --out")
    try:
        text = marker.read_text()
    except FileNotFoundError:
        return
    except OSError as error:
        raise BadArgument(
            "out", str(folder), f"cannot be read ({error.strerror})", fix="choose another --out"
        ) from error
    try:
        found = int(json.loads(text)["format"])
    except (ValueError, KeyError, TypeError) as error:
        raise BadArgument(
            "out",
            str(marker),
            "is damaged",
            fix="delete this file when the folder is a results folder, else choose another --out",
        ) from error
    if found > FORMAT:
        raise NewerFormat(folder, found, FORMAT)


def _free_name(path: Path) -> Path:
    k = 1
    while (aside := path.with_name(f"{path.name}.corrupt-{k}")).exists():
        k += 1
    return aside
