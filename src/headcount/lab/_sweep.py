"""Sweeps: run what is missing of a plan, and survive whatever happens meanwhile."""

from __future__ import annotations

import secrets
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ._context import CHECKPOINT_SECONDS
from ._errors import ExecutionError, StorageError
from ._executors import Hint, TrialExecutor, WorkerDied, open_executor
from ._figure import Trial
from ._plan import Plan, remember
from ._store import DEFAULT_FOLDER, Store
from ._trial import DONE, failure_record, make_task

_DEATHS_ALLOWED = 1
_TICK_SECONDS = 0.2
_BUSY_SECONDS = 0.5
_GRACE_SECONDS = 10.0


@dataclass(frozen=True)
class Problem:
    """A trial that failed or diverged, and why."""

    label: str
    outcome: str
    reason: str


@dataclass
class Sweep:
    """The state of a sweep; reporters read it while it runs, the caller gets it at the end.

    `cached` trials were there before, `run` were computed now (by this sweep or by another one
    meanwhile), `problems` lists all failed and diverged ones among both.
    """

    planned: int
    cached: int = 0
    run: int = 0
    problems: list[Problem] = field(default_factory=list)
    seconds: float = 0.0
    interrupted: bool = False
    work_total: float = 0.0
    work_done: float = 0.0
    in_flight: list[Trial] = field(default_factory=list)
    store: Store | None = None

    @property
    def failed(self) -> int:
        """How many trials failed or diverged."""
        return len(self.problems)

    def running(self) -> Iterator[tuple[Trial, dict[str, Any]]]:
        """The trials of this sweep under way, with what they tell about themselves."""
        for trial in list(self.in_flight):
            note = None if self.store is None else self.store.progress(trial.address)
            if note is not None:
                yield trial, note

    def fraction(self) -> float:
        """The share of the work of this sweep that is done, by the figure's own estimates."""
        done = self.work_done
        for trial, note in self.running():
            done += _work(trial) * min(note["done"] / max(note["total"], 1e-300), 1.0)
        return min(done / self.work_total, 1.0) if self.work_total else 1.0


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


def run_plan(
    plan: Plan,
    out: Path = DEFAULT_FOLDER,
    *,
    executor: str | Executor | TrialExecutor | None = None,
    workers: int | None = None,
    retry_failed: bool = False,
    reporter: Reporter | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
) -> Sweep:
    """Compute the trials of `plan` that the folder `out` lacks.

    `workers` processes (default: one per core; 0: this process), or an `executor`: a name as on
    the command line ("inline", "dask://HOST:PORT", "slurm"), a `TrialExecutor`, or any standard
    one whose workers see the folder and can import the figure's module. Ctrl-C ends the sweep
    cleanly: the answer then has `interrupted` set.
    """
    reporter = Reporter() if reporter is None else reporter
    store = Store(out, reporter.message)
    store.prepare()
    remember(plan, store)
    own = executor is None or isinstance(executor, str)
    if executor is None:
        executor = "inline" if workers == 0 else "processes"
    place = open_executor(executor, workers or None)
    loop: _Loop | None = None
    try:
        place.begin(store.folder, plan.trials)
        loop = _Loop(plan, store, place, reporter, retry_failed, checkpoint_seconds)
        loop.window = place.window or loop.sweep.planned
        return loop.run()
    finally:
        if own:
            place.close(gently=loop is None or not loop.futures)


class _Loop:
    """The one loop of a sweep: submit, wait, take answers, report."""

    def __init__(
        self,
        plan: Plan,
        store: Store,
        executor: TrialExecutor,
        reporter: Reporter,
        retry_failed: bool,
        checkpoint_seconds: float,
    ) -> None:
        self.store, self.executor, self.reporter = store, executor, reporter
        self.stop_path = store.stop_path(secrets.token_hex(8))
        self.retry_failed = retry_failed
        self.checkpoint_seconds = checkpoint_seconds
        self.window = 1
        self.futures: dict[Future[Any], Trial] = {}
        self.busy: deque[tuple[float, Trial]] = deque()
        self.deaths: dict[str, int] = {}
        self.sweep = Sweep(planned=len(plan.unique), store=store)
        self.queue = deque(self._missing(plan))
        self.sweep.work_total = sum(map(_work, self.queue))

    def run(self) -> Sweep:
        started = time.monotonic()
        self.reporter.begin(self.sweep)
        try:
            try:
                self._work_off()
            except KeyboardInterrupt:
                self.sweep.interrupted = True
                self._stop()
        except KeyboardInterrupt:
            self.reporter.message("stopped at once; saved states are kept")
        finally:
            self.sweep.seconds = time.monotonic() - started
            if self.sweep.interrupted:
                self._sweep_up()
            self.reporter.end(self.sweep)
            self.stop_path.unlink(missing_ok=True)
        return self.sweep

    def _missing(self, plan: Plan) -> list[Trial]:
        """What has to be run, the longest first (so that no long trial is left for the end)."""
        missing = []
        for trial in plan.unique.values():
            stored = self.store.read(trial.address)
            if stored is None or (self.retry_failed and stored.outcome != "ok"):
                missing.append(trial)
                continue
            if stored.outcome != "failed":  # a failed one may go on from its state when retried
                self.store.tidy(trial.address)
            self.sweep.cached += 1
            self._note_problem(trial, stored.outcome, stored.reason)
        return sorted(missing, key=lambda trial: (-_work(trial), trial.group))

    def _work_off(self) -> None:
        while self.queue or self.futures or self.busy:
            while self.busy and self.busy[0][0] <= time.monotonic():
                self.queue.append(self.busy.popleft()[1])
            while self.queue and len(self.futures) < self.window:
                self._submit(self.queue.popleft())
            self.executor.flush()
            self._take_answers(_TICK_SECONDS)
            self.reporter.tick(self.sweep)

    def _submit(self, trial: Trial) -> None:
        task = make_task(
            trial,
            self.store.folder,
            stop_path=self.stop_path,
            retry_failed=self.retry_failed,
            checkpoint_seconds=self.checkpoint_seconds,
        )
        self.sweep.in_flight.append(trial)
        try:
            hint = Hint(trial.group, *trial.measurement.estimate(trial.config))
            self.futures[self.executor.submit_trial(task, hint)] = trial
        except BrokenExecutor as error:
            raise _broken(error) from error

    def _take_answers(self, timeout: float) -> None:
        if not self.futures:
            time.sleep(timeout)
            return
        done, _ = wait(self.futures, timeout=timeout, return_when=FIRST_COMPLETED)
        for future in done:
            trial = self.futures.pop(future)
            self.sweep.in_flight.remove(trial)
            if future.cancelled():
                continue
            error = future.exception()
            if isinstance(error, WorkerDied):
                self._bury(trial, error)
            elif isinstance(error, ExecutionError):
                raise error
            elif error is not None:
                raise _broken(error) from error
            else:
                self._take(trial, future.result())

    def _take(self, trial: Trial, answer: dict[str, Any]) -> None:
        for text in answer["messages"]:
            self.reporter.message(f"{trial.label}: {text}")
        status = answer["status"]
        if status == "busy":
            self.busy.append((time.monotonic() + _BUSY_SECONDS, trial))
        elif status == "storage":
            raise StorageError(answer["reason"])
        elif status == "unusable":
            raise ExecutionError(answer["reason"])
        elif status in DONE or status == "cached":
            outcome = answer.get("outcome", status)
            self._note_problem(trial, outcome, answer["reason"])
            self.sweep.run += 1
            self.sweep.work_done += _work(trial)
            self.reporter.finished(self.sweep, trial, {**answer, "outcome": outcome})

    def _bury(self, trial: Trial, error: WorkerDied) -> None:
        """A worker died: run the trial again once, then record it as failed."""
        if self.sweep.interrupted:
            return
        self.deaths[trial.address] = self.deaths.get(trial.address, 0) + 1
        if self.deaths[trial.address] <= _DEATHS_ALLOWED:
            self.reporter.message(f"{trial.label}: {error}; trying once more")
            self.queue.append(trial)
            return
        reason = f"{error}, {self.deaths[trial.address]} times"
        task = make_task(trial, self.store.folder)
        with self.store.claim(trial.address) as mine:
            if mine:
                self.store.progress_path(trial.address).unlink(missing_ok=True)
                self.store.write(trial.address, {}, failure_record(task, reason))
        self._take(trial, {"status": "failed", "reason": reason, "seconds": 0.0, "messages": []})

    def _note_problem(self, trial: Trial, outcome: str, reason: str) -> None:
        if outcome != "ok":
            self.sweep.problems.append(Problem(trial.label, outcome, reason))

    def _sweep_up(self) -> None:
        """Remove the notes of trials that a signal cut off in this very process.

        Ctrl-C may fall on any line of such a trial, also on one that tidies up.
        """
        for trial in self.sweep.in_flight:
            self.store.forget_progress(trial.address)

    def _stop(self) -> None:
        """Ask the trials under way to save their state, and give them a moment."""
        self.queue.clear()
        self.busy.clear()
        for future in list(self.futures):
            if future.cancel():
                self.sweep.in_flight.remove(self.futures.pop(future))
        if not self.futures:
            return
        self.stop_path.touch()
        self.reporter.message("stopping: running trials save their state (Ctrl-C again: at once)")
        deadline = time.monotonic() + _GRACE_SECONDS
        while self.futures and time.monotonic() < deadline:
            self._take_answers(_TICK_SECONDS)
            self.reporter.tick(self.sweep)


def _work(trial: Trial) -> float:
    return max(trial.measurement.estimate(trial.config)[0], 1e-9)


def _broken(error: BaseException) -> ExecutionError:
    return ExecutionError(
        f"the executor gave up ({type(error).__name__}: {error}); finished trials are saved, "
        "run the same command again"
    )
