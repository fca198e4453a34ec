"""Progress of a sweep: a live display on a terminal, now and then a line elsewhere."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ..lab import Reporter, Sweep, Trial

_LINE_SECONDS = 10.0


def make_reporter(
    console: Console, title: str = "", ahead: Callable[[], float] | None = None
) -> Reporter:
    """The reporter that suits the console; `title` names what runs, such as a figure.

    `ahead` tells how many seconds the figures after this one will take.
    """
    kind = LiveReporter if console.is_terminal else LineReporter
    return kind(console, title, ahead)


def duration(seconds: float) -> str:
    """A time for people: "0.4 s", "12 s", "3 min 5 s", "2 h 10 min", "40 days", "3.5 years"."""
    if not math.isfinite(seconds):
        return "?"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    days = seconds / 86400
    if days < 4:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return f"{days:.0f} days" if days < 400 else f"{days / 365.25:,.1f} years"


def time_left(sweep: Sweep) -> str:
    """The time left with its own error: "2 min 5 s left", "3 to 8 s left", "over 40 s left"."""
    low, high = sweep.seconds_left()
    if math.isnan(low):
        return "? left"
    if math.isinf(high):
        return f"over {duration(low)} left (a running trial is far beyond its estimate)"
    if duration(low) == duration(high):
        return f"{duration(high)} left"
    return f"{duration(low)} to {duration(high)} left"


def all_left(sweep: Sweep, ahead: Callable[[], float] | None) -> str:
    """The time left of this figure and those after it, in words; empty where there are none."""
    low, high = sweep.seconds_left()
    if ahead is None or math.isnan(low):
        return ""
    middle = low if math.isinf(high) else (low + high) / 2
    return f"all figures: about {duration(middle + ahead())} left"


def estimate_error(sweep: Sweep) -> str:
    """How good the estimates of this sweep were; empty before there are three trials."""
    low, high = sweep.ratio_range()
    if math.isnan(low):
        return ""
    first, last = (f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.2g}" for ratio in (low, high))
    return f"trials took {first} to {last} times their estimate"


class LineReporter(Reporter):
    """Plain lines, at most one every ten seconds besides messages and problems."""

    def __init__(
        self, console: Console, title: str = "", ahead: Callable[[], float] | None = None
    ) -> None:
        self._console = console
        self._ahead = ahead
        self._title = f"{title}: " if title else ""
        self._last = -math.inf

    def begin(self, sweep: Sweep) -> None:
        """How much there is to do."""
        self._last = time.monotonic()
        todo = sweep.planned - sweep.cached
        counts = f"{sweep.planned} trials: {sweep.cached} stored, {todo} to run"
        self._print(self._title + counts)

    def tick(self, sweep: Sweep) -> None:
        """A line when the last one is old."""
        if time.monotonic() - self._last >= _LINE_SECONDS:
            self._status(sweep)

    def finished(self, sweep: Sweep, trial: Trial, answer: dict[str, Any]) -> None:
        """Problems are told at once."""
        if answer["outcome"] != "ok":
            self._print(f"{_named(trial)}: {answer['outcome']}: {answer['reason']}")

    def message(self, text: str) -> None:
        """Passed on."""
        self._print(text)

    def end(self, sweep: Sweep) -> None:
        """The closing line."""
        self._status(sweep)

    def _status(self, sweep: Sweep) -> None:
        self._last = time.monotonic()
        fraction = sweep.fraction()
        done = sweep.cached + sweep.run
        line = f"{self._title}{done}/{sweep.planned} trials, {fraction:.0%} of the work"
        if fraction < 1 and not sweep.interrupted:
            line += f", {time_left(sweep)}"
        if error := estimate_error(sweep):
            line += f", {error}"
        if left := all_left(sweep, self._ahead):
            line += f"; {left}"
        running = [
            f"{_named(trial)} {_share(note):.0%} {_values(note, ' ')}".rstrip()
            for trial, note in sweep.running()
        ]
        self._print(line + (f" ({'; '.join(running)})" if running else ""))

    def _print(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


class LiveReporter(Reporter):
    """Overall and per-trial bars, time left and current values, redrawn four times a second."""

    def __init__(
        self, console: Console, title: str = "", ahead: Callable[[], float] | None = None
    ) -> None:
        self._console = console
        self._ahead = ahead
        self._title = f"{title}: " if title else ""
        self._live: Live | None = None

    def begin(self, sweep: Sweep) -> None:
        """Start drawing."""
        self._sweep = sweep
        self._live = Live(
            console=self._console,
            get_renderable=self._render,
            refresh_per_second=4,
            transient=True,
        )
        self._live.start()

    def finished(self, sweep: Sweep, trial: Trial, answer: dict[str, Any]) -> None:
        """Problems stay on the screen."""
        if answer["outcome"] != "ok":
            self.message(f"{_named(trial)}: {answer['outcome']}: {answer['reason']}")

    def message(self, text: str) -> None:
        """Shown above the display."""
        self._console.print(escape(text), highlight=False)

    def end(self, sweep: Sweep) -> None:
        """Remove the display."""
        if self._live is not None:
            self._live.stop()

    def _render(self) -> Group:
        sweep = self._sweep
        fraction = sweep.fraction()
        problems = f", {sweep.failed} not ok" if sweep.failed else ""
        head = Text(
            f"{self._title}{sweep.cached + sweep.run}/{sweep.planned} trials{problems}, "
            f"{fraction:.0%} of the work"
        )
        left = "; ".join(filter(None, (time_left(sweep), all_left(sweep, self._ahead))))
        table = Table.grid(padding=(0, 2))
        for _ in range(2):
            table.add_column(no_wrap=True)
        table.add_column(no_wrap=True, overflow="ellipsis")
        bar = ProgressBar(total=1.0, completed=fraction, width=20)
        table.add_row(bar, Text(f"{fraction:.0%}"), Text("all"))
        for trial, note in sweep.running():
            bar = ProgressBar(total=1.0, completed=_share(note), width=20)
            # The share in figures: without colour a bar does not show it.
            said = f"{_named(trial)}  {_values(note, '  ')}".rstrip()
            table.add_row(bar, Text(f"{_share(note):.0%}"), Text(said))
        return Group(head, Text(left), table)


def _named(trial: Trial) -> str:
    """What is measured, and where: "training m=8 seed=0"."""
    return f"{trial.measurement.name} {trial.label}"


def _values(note: dict[str, Any], separator: str) -> str:
    """What the trial says of itself, such as its current loss."""
    return separator.join(f"{name} {float(value):.4g}" for name, value in note["values"].items())


def _share(note: dict[str, Any]) -> float:
    return min(note["done"] / note["total"], 1.0) if note["total"] > 0 else 0.0
