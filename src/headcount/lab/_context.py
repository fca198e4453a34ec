"""What a running trial may ask of the engine: progress, checkpoints, divergence."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ..core._inside import inside
from ._compiling import compiling_seconds
from ._errors import CorruptFile, NewerFormat, StorageError, TrialStopped
from ._files import read_file, write_file, write_note
from ._leftovers import remove_ours
from ._record import origin

CHECKPOINT_SECONDS = 30.0
PROGRESS_SECONDS = 0.5


class Context(Protocol):
    """Handed to every measuring function.

    A trial that may take more than a minute calls `restore` once, then `checkpoint` in its loop:

        state = context.restore() or {"step": np.int64(0), "params": initial}
        while state["step"] < steps:
            state = advance(state)
            context.checkpoint(state)
            context.progress(int(state["step"]), steps, loss=float(state["loss"]))

    The state must determine the rest of the trial, so that resumed and uninterrupted agree.
    """

    def progress(self, done: float, total: float, **values: float) -> None:
        """Tell how far the trial is, with current values such as the loss; cheap to call."""

    def checkpoint(self, state: Mapping[str, Any]) -> bool:
        """Save named arrays when it is time (about every 30 s); True when saved."""

    def checkpoint_due(self) -> bool:
        """Whether `checkpoint` would save now; ask first when the state is costly to gather."""

    def restore(self) -> dict[str, np.ndarray] | None:
        """The state last saved by an interrupted run of this very trial, or None."""

    def diverged(self, reason: str) -> None:
        """Mark the trial as diverged; its result is kept as data, with this reason."""


class PlainContext:
    """A context without a results folder: for calling a measuring function by hand."""

    def __init__(self) -> None:
        self.divergence: str | None = None

    def progress(self, done: float, total: float, **values: float) -> None:
        """Nobody watches."""

    def checkpoint(self, state: Mapping[str, Any]) -> bool:
        """Nothing is saved."""
        return False

    def checkpoint_due(self) -> bool:
        """Never."""
        return False

    def restore(self) -> dict[str, np.ndarray] | None:
        """There is no earlier state."""
        return None

    def diverged(self, reason: str) -> None:
        """Keep the reason for the caller."""
        self.divergence = reason


class TrialContext:
    """The context of a trial of a sweep, with its files in the results folder."""

    def __init__(
        self,
        *,
        address: str,
        label: str,
        checkpoint_path: Path,
        progress_path: Path,
        stop_path: Path | None,
        checkpoint_seconds: float = CHECKPOINT_SECONDS,
    ) -> None:
        self.divergence: str | None = None
        self.messages: list[str] = []
        self.resumed_after = 0.0
        self.compiled_before = 0.0
        self._address = address
        self._label = label
        self._checkpoint_path = checkpoint_path
        self._progress_path = progress_path
        self._stop_path = stop_path
        self._interval = checkpoint_seconds
        self._started = time.monotonic()
        self._compiled = compiling_seconds()
        self._last_checkpoint = self._started
        self._last_progress = -float("inf")
        self._can_checkpoint = False
        self._show(0, 1, {})

    @property
    def seconds(self) -> float:
        """Computing time of this trial, that before the interruption included."""
        return self.resumed_after + time.monotonic() - self._started

    @property
    def compiling(self) -> float:
        """The part of it that went into compiling programs."""
        return self.compiled_before + compiling_seconds() - self._compiled

    def progress(self, done: float, total: float, **values: float) -> None:
        """Tell the display; at most twice a second anything is written."""
        now = time.monotonic()
        if now - self._last_progress < PROGRESS_SECONDS:
            return
        self._show(done, total, values)
        if self._stop_requested() and not self._can_checkpoint:
            raise TrialStopped

    def checkpoint_due(self) -> bool:
        """Time has come, or the sweep wants to stop."""
        self._can_checkpoint = True
        return time.monotonic() - self._last_checkpoint >= self._interval or self._stop_requested()

    def checkpoint(self, state: Mapping[str, Any]) -> bool:
        """Save `state` when due; stop the trial right after when the sweep was interrupted."""
        if not self.checkpoint_due():
            return False
        record = {"seconds": self.seconds, "compiling": self.compiling}
        write_file(self._checkpoint_path, "checkpoint", self._address, state, record)
        self._last_checkpoint = time.monotonic()
        if self._stop_requested():
            raise TrialStopped
        return True

    def restore(self) -> dict[str, np.ndarray] | None:
        """The last saved state; one that cannot be used is set aside, and the trial starts afresh.

        A state made by other versions or on another CPU would go on, but not bit for bit.
        """
        self._can_checkpoint = True
        try:
            state, record, header = read_file(self._checkpoint_path, "checkpoint", self._address)
            if header.origin in (None, origin()):
                self.resumed_after = float(record["seconds"])
                self.compiled_before = float(record.get("compiling", 0.0))
                return state
            problem = f"made with {header.origin}, here is {origin()}"
        except FileNotFoundError:
            return None
        except CorruptFile as error:
            problem = error.problem
        except NewerFormat:
            problem = "written by a later Headcount"
        except OSError as error:
            raise StorageError(f"could not read {self._checkpoint_path}: {error}") from error
        self._set_aside(problem)
        return None

    def diverged(self, reason: str) -> None:
        """Mark the trial; the first reason counts."""
        self.divergence = self.divergence or reason

    def close(self, *, finished: bool) -> None:
        """Remove the checkpoint once the result is safe, and the progress file.

        In this order: as long as one of the two is there, `Store.tidy` finds what a kill left.
        """
        if finished:
            remove_ours(self._unused_path)
            remove_ours(self._checkpoint_path)
        remove_ours(self._progress_path)

    @property
    def _unused_path(self) -> Path:
        return self._checkpoint_path.with_name(f"{self._checkpoint_path.name}.unused")

    def _set_aside(self, problem: str) -> None:
        self.messages.append(f"checkpoint not used ({problem}); starting afresh")
        try:
            with inside(self._checkpoint_path.parent) as held:
                held.move(self._checkpoint_path.name, self._unused_path.name)
        except OSError as error:
            raise StorageError.at(self._unused_path, error) from error

    def _stop_requested(self) -> bool:
        return self._stop_path is not None and self._stop_path.exists()

    def _show(self, done: float, total: float, values: Mapping[str, float]) -> None:
        self._last_progress = time.monotonic()
        note = {
            "label": self._label,
            "done": float(done),
            "total": float(total),
            "values": {name: repr(float(value)) for name, value in values.items()},
            "seconds": self.seconds,
        }
        try:
            write_note(self._progress_path, note)
        except StorageError:
            # A display that cannot be updated is no reason to lose a trial: the result's own
            # writing reports a full disk.
            self._last_progress = time.monotonic()
