"""What a sweep is at any moment, and who is told."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ._costs import CostModel
from ._figure import Trial
from ._store import Store


@dataclass(frozen=True)
class Problem:
    """A trial that failed, diverged or gave NaN or infinity, and why."""

    label: str
    outcome: str
    reason: str


@dataclass
class Sweep:
    """The state of a sweep; reporters read it while it runs, the caller gets it at the end.

    `cached` trials were there before, `run` were computed now (by this sweep or by another one
    meanwhile), `problems` lists all among both that are not ok.
    """

    planned: int
    cached: int = 0
    run: int = 0
    problems: list[Problem] = field(default_factory=list)
    seconds: float = 0.0
    interrupted: bool = False
    stalled: bool = False
    """Whether no worker is at work, so that nobody knows how long it takes."""
    work_total: float = 0.0
    work_done: float = 0.0
    in_flight: dict[str, Trial] = field(default_factory=dict)
    store: Store | None = None
    ratios: list[float] = field(default_factory=list)
    """Of every trial computed here: seconds it took over seconds it was estimated."""
    started: float = field(default_factory=time.monotonic)
    costs: CostModel = field(default_factory=CostModel)

    @property
    def failed(self) -> int:
        """How many trials are not ok."""
        return len(self.problems)

    def expected(self, trial: Trial) -> float:
        """How many seconds a trial will take, by what past ones took."""
        return self.costs.seconds(trial)

    def running(self) -> Iterator[tuple[Trial, dict[str, Any]]]:
        """The trials of this sweep under way, with what they tell about themselves."""
        for trial in list(self.in_flight.values()):
            note = None if self.store is None else self.store.progress(trial.address)
            if note is not None:
                yield trial, note

    def fraction(self) -> float:
        """The share of the work of this sweep that is done, by what trials are expected to take."""
        done = self.work_done
        for trial, note in self.running():
            done += self.expected(trial) * min(note["done"] / max(note["total"], 1e-300), 1.0)
        return min(done / self.work_total, 1.0) if self.work_total else 1.0

    def ratio_range(self) -> tuple[float, float]:
        """What 8 of 10 finished trials took, over their estimate; NaN before the third one."""
        if len(self.ratios) < 3:
            return math.nan, math.nan
        low, high = np.quantile(self.ratios[-1000:], (0.1, 0.9))
        return float(low), float(high)

    def seconds_left(self) -> tuple[float, float]:
        """The time left, from and to; the second is infinite when the estimates give no bound.

        From the share of the work done since the beginning. How far single trials are from their
        estimates widens it, and a running trial far beyond its own leaves it open.
        """
        fraction = self.fraction()
        if self.stalled or fraction <= 0.005:
            return math.nan, math.nan
        left = (time.monotonic() - self.started) * (1 - fraction) / fraction
        low, high = self.ratio_range()
        if any(self._overdue(trial, note) for trial, note in self.running()):
            return left, math.inf
        if math.isnan(low):
            return left, left
        middle = float(np.median(self.ratios[-1000:]))
        return left * low / middle, left * high / middle

    def _overdue(self, trial: Trial, note: dict[str, Any]) -> bool:
        """Whether a trial took three times as long as estimates and its own progress allow."""
        usual = float(np.median(self.ratios)) if self.ratios else 1.0
        share = min(max(note["done"] / max(note["total"], 1e-300), 0.0), 1.0)
        expected = max(self.expected(trial) * usual, 1.0)
        return share == 0 and note["seconds"] > 3 * expected


class Reporter:
    """What a sweep tells while it runs. This one is silent; `headcount.report` has displays."""

    def begin(self, sweep: Sweep) -> None:
        """Called once, before the first trial."""

    def tick(self, sweep: Sweep) -> None:
        """Called a few times per second."""

    def finished(self, sweep: Sweep, trial: Trial, answer: dict[str, Any]) -> None:
        """Called after every trial."""

    def message(self, text: str) -> None:
        """Something a person should know."""

    def end(self, sweep: Sweep) -> None:
        """Called once, also after an interruption."""


class Steady(Reporter):
    """Passes everything on; a terminal that has gone away does not end a sweep."""

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter

    def begin(self, sweep: Sweep) -> None:
        """Passed on."""
        with contextlib.suppress(OSError):
            self._reporter.begin(sweep)

    def tick(self, sweep: Sweep) -> None:
        """Passed on."""
        with contextlib.suppress(OSError):
            self._reporter.tick(sweep)

    def finished(self, sweep: Sweep, trial: Trial, answer: dict[str, Any]) -> None:
        """Passed on."""
        with contextlib.suppress(OSError):
            self._reporter.finished(sweep, trial, answer)

    def message(self, text: str) -> None:
        """Passed on."""
        with contextlib.suppress(OSError):
            self._reporter.message(text)

    def end(self, sweep: Sweep) -> None:
        """Passed on."""
        with contextlib.suppress(OSError):
            self._reporter.end(sweep)
