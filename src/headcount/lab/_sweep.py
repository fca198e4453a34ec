"""Sweeps: run what is missing of a plan, and survive whatever happens meanwhile."""

from __future__ import annotations

import contextlib
import math
import time
from collections import deque
from concurrent.futures import BrokenExecutor, Executor, Future
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from ..core import BadArgument, check_count
from ..core._inside import read_inside, remove_inside
from ._context import CHECKPOINT_SECONDS
from ._costs import cost_model
from ._errors import ExecutionError, StorageError
from ._executors import TrialExecutor, WorkerDied, open_executor
from ._figure import Trial
from ._files import write_atomically
from ._leftovers import STOP, remove_leftovers
from ._plan import Plan, remember
from ._reporting import Problem, Reporter, Steady, Sweep
from ._signals import like_ctrl_c
from ._store import DEFAULT_FOLDER, Store
from ._trial import DONE, failure_record, make_task

_TICK_SECONDS = 0.2
_BUSY_SECONDS = 0.5
_SAY_AGAIN_SECONDS = 60.0
_GRACE_SECONDS = 10.0
_ROUNDS = 3
_SHORT_SECONDS = 0.5
_MEASURED = "in _run_claimed"
"""The thread that computes a trial has this in its trace; a Dask worker has others, too."""
WINDOW = 256
"""So many trials are with the executor at a time: enough to choose among groups, and no more."""


@dataclass(frozen=True)
class Policy:
    """How patient a sweep is.

    `time_limit`: seconds after which a trial's worker process is ended; None: `generous` times
    its estimate (corrected by how long trials of this sweep took), at least `least_seconds`.
    A trial whose worker died, ran out of memory or out of time is run again `retries` times, then
    recorded as failed.
    """

    time_limit: float | None = None
    generous: float = 50.0
    least_seconds: float = 3600.0
    retries: int = 1

    def __post_init__(self) -> None:
        check_count("retries", self.retries, least=0)
        if self.time_limit is not None and not self.time_limit > 0:
            raise BadArgument(
                "trial_timeout", self.time_limit, "must be positive", fix="give seconds, or inf"
            )

    def limit(self, estimate: float, ratio: float) -> float | None:
        """The time limit of a trial in seconds; `ratio`: measured over estimated so far."""
        limit = self.time_limit
        if limit is None:
            limit = max(self.least_seconds, self.generous * estimate * max(ratio, 1.0))
        # What the system's timers take; a month is no limit.
        return limit if limit < 30 * 86400 else None


def run_plan(
    plan: Plan,
    out: Path = DEFAULT_FOLDER,
    *,
    executor: str | Executor | TrialExecutor | None = None,
    workers: int | None = None,
    retry_failed: bool = False,
    reporter: Reporter | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    policy: Policy | None = None,
) -> Sweep:
    """Compute the trials of `plan` that the folder `out` lacks.

    `workers` processes (default: one per core; 0: this process), or an `executor`: a name as on
    the command line ("inline", "dask://HOST:PORT", "slurm"), a `TrialExecutor`, or any standard
    one whose workers see the folder and can import the figure's module. Ctrl-C, SIGTERM and
    SIGHUP end the sweep cleanly: the answer then has `interrupted` set.
    """
    reporter = Steady(reporter or Reporter())
    own = executor is None or isinstance(executor, str)
    if executor is None:
        executor = "inline" if workers == 0 else "processes"
    place = open_executor(executor, workers or None)  # a wrong one leaves no folder behind
    store = Store(out, reporter.message)
    loop: _Loop | None = None
    try:
        with like_ctrl_c():
            store.prepare()
            remember(plan, store)
            place.begin(store.folder, plan.trials)
            loop = _Loop(plan, store, place, reporter, policy or Policy())
            loop.retry_failed = retry_failed
            loop.checkpoint_seconds = checkpoint_seconds
            return loop.run()
    finally:
        if own:
            place.close(gently=loop is None or not loop.futures)


class _Loop:
    """The one loop of a sweep: submit, wait, take answers, report."""

    retry_failed = False
    checkpoint_seconds = CHECKPOINT_SECONDS

    def __init__(
        self, plan: Plan, store: Store, executor: TrialExecutor, reporter: Reporter, policy: Policy
    ) -> None:
        self.plan, self.store, self.executor, self.reporter = plan, store, executor, reporter
        self.policy = policy
        self.stop_path = store.new_stop_path()
        self.window = executor.window or WINDOW
        self.futures: dict[Future[Any], Trial] = {}
        self.answers: SimpleQueue[Future[Any]] = SimpleQueue()
        self.queue: deque[Trial] = deque()
        self.busy: deque[tuple[float, Trial, str]] = deque()
        self.told = -math.inf
        self.slowdown = 1.0
        self.cached: set[str] = set()
        self.deaths: dict[str, int] = {}
        self.sweep = Sweep(planned=len(plan.unique), store=store)

    def run(self) -> Sweep:
        self.queue.extend(self._missing())
        self.sweep.work_total = sum(map(self.sweep.expected, self.queue))
        self.sweep.started = time.monotonic()
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
            self.sweep.seconds = time.monotonic() - self.sweep.started
            if self.sweep.interrupted:
                self._sweep_up()
            self.reporter.end(self.sweep)
            with contextlib.suppress(OSError):
                remove_inside(self.stop_path)
        return self.sweep

    def _missing(self) -> list[Trial]:
        """What has to be run, the longest first (so that no long trial is left for the end)."""
        missing, tidied = [], []
        for address, (outcome, reason) in self.store.states(self.plan.unique).items():
            trial = self.plan.unique[address]
            if outcome == "missing" or (self.retry_failed and outcome != "ok"):
                missing.append(trial)
                continue
            if outcome != "failed":  # a failed one may go on from its state when retried
                tidied.append(address)
            self.sweep.cached += 1
            self.cached.add(trial.address)
            self._note_problem(trial, outcome, reason)
        self.store.tidy(tidied)
        if missing:
            self.plan.figure.prepare(missing)
            self.sweep.costs = cost_model(self.plan.unique.values(), self.store)
        return sorted(missing, key=self._order)

    def _order(self, trial: Trial) -> tuple[float, float, str]:
        """The longest first; what past times say of short trials is noise."""
        costs = self.sweep.costs
        seconds = max(costs.seconds(trial) + costs.compiling(trial), _SHORT_SECONDS)
        return -seconds, -trial.measurement.estimate(trial.config)[0], trial.group

    def _work_off(self) -> None:
        """Until every planned trial is there: results that vanish meanwhile are computed again."""
        if not self.queue:
            return  # all were there a moment ago
        for _ in range(_ROUNDS):
            while self.queue or self.futures or self.busy:
                self._turn()
            lost = [t for t in self.plan.unique.values() if not self.store.has(t.address)]
            if not lost:
                return
            self._begin_again(lost)
        raise StorageError(
            f"results vanish from {self.store.folder} as fast as they are computed; "
            "find out who removes them and run the same command again"
        )

    def _begin_again(self, lost: list[Trial]) -> None:
        self.reporter.message(f"{len(lost)} results have vanished; computing them again")
        were_cached = self.cached & {trial.address for trial in lost}
        self.cached -= were_cached
        self.sweep.cached -= len(were_cached)
        self.sweep.run -= len(lost) - len(were_cached)
        labels = {trial.label for trial in lost}
        self.sweep.problems = [p for p in self.sweep.problems if p.label not in labels]
        self.queue.extend(lost)

    def _turn(self) -> None:
        now = time.monotonic()
        while self.busy and self.busy[0][0] <= now:
            self.queue.append(self.busy.popleft()[1])
        while self.queue and len(self.futures) < self.window:
            self._submit(self.queue.popleft())
        self.executor.flush()
        if self.busy and not self.futures and now - self.told >= _SAY_AGAIN_SECONDS:
            self.told = now
            _, trial, holder = self.busy[0]
            more = f" (and {len(self.busy) - 1} more)" if len(self.busy) > 1 else ""
            at = holder or "another process"
            self.reporter.message(f"waiting for {trial.label}{more}: {at} computes it")
        self._take_answers(_TICK_SECONDS)
        for text in self.executor.news():
            self.reporter.message(text)
        self.sweep.stalled = self.executor.stalled
        self.reporter.tick(self.sweep)

    def _submit(self, trial: Trial) -> None:
        estimate = self.sweep.expected(trial)
        limit = self.policy.limit(estimate, self.slowdown)
        task = make_task(
            trial,
            self.store.folder,
            stop_path=self.stop_path,
            retry_failed=self.retry_failed,
            checkpoint_seconds=self.checkpoint_seconds,
            time_limit=limit if self.executor.replaces_workers else None,
        )
        self.sweep.in_flight[trial.address] = trial
        try:
            future = self.executor.submit_trial(task, self.sweep.costs.hint(trial))
        except BrokenExecutor as error:
            raise _broken(error) from error
        self.futures[future] = trial
        future.add_done_callback(self.answers.put)

    def _take_answers(self, timeout: float) -> None:
        """Wait for an answer, then take all that are there."""
        if not self.futures:
            time.sleep(timeout)
            return
        with contextlib.suppress(Empty):
            self._take_answer(self.answers.get(timeout=timeout))
            while True:
                self._take_answer(self.answers.get_nowait())

    def _take_answer(self, future: Future[Any]) -> None:
        trial = self.futures.pop(future, None)
        if trial is None:
            return
        self.sweep.in_flight.pop(trial.address, None)
        if future.cancelled():
            return
        error = future.exception()
        if isinstance(error, WorkerDied):
            self._try_again(trial, self._why_it_died(trial, error))
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
            due = time.monotonic() + _BUSY_SECONDS
            self.busy.append((due, trial, answer["reason"]))
        elif status == "memory":
            self._try_again(trial, answer["reason"])
        elif status == "storage":
            raise StorageError(answer["reason"])
        elif status == "unusable":
            raise ExecutionError(answer["reason"])
        elif status in DONE or status == "cached":
            outcome = answer.get("outcome", status)
            self._note_problem(trial, outcome, answer["reason"])
            self.sweep.run += 1
            self.sweep.work_done += self.sweep.expected(trial)
            if status in DONE and answer["seconds"]:
                computing = answer["seconds"] - answer.get("compiling", 0.0)
                self.sweep.ratios.append(computing / self.sweep.expected(trial))
                if len(self.sweep.ratios) % 20 == 3:
                    self.slowdown = self.sweep.ratio_range()[1]
            self.reporter.finished(self.sweep, trial, {**answer, "outcome": outcome})

    def _why_it_died(self, trial: Trial, error: WorkerDied) -> str:
        """The death in words; a trial that ran out of time left what it was doing."""
        path = self.store.trace_path(trial.address)
        try:
            trace = read_inside(path).decode(errors="replace")
        except OSError:
            trace = ""
        if not trace:
            return str(error)
        threads = trace.split("Thread 0x")  # the oldest comes last
        its_own = next((thread for thread in threads if _MEASURED in thread), threads[-1])
        where = [line.strip() for line in its_own.splitlines() if line.strip().startswith("File")]
        return f"took longer than its time limit, at {where[0] if where else 'an unknown place'}"

    def _try_again(self, trial: Trial, reason: str) -> None:
        """After a death of its worker: run the trial again, up to the cap, then it has failed."""
        if self.sweep.interrupted:
            return
        self.deaths[trial.address] = self.deaths.get(trial.address, 0) + 1
        times = self.deaths[trial.address]
        if times <= self.policy.retries:
            self.reporter.message(f"{trial.label}: {reason}; trying once more")
            self.queue.append(trial)
            return
        reason += f", {times} times" if times > 1 else ""
        task = make_task(trial, self.store.folder)
        with self.store.claim(trial.address) as mine:
            if mine:
                remove_leftovers(self.store.trial_path(trial.address).parent)
                self.store.write(trial.address, {}, failure_record(task, reason))
        self.store.forget_progress(trial.address)
        self._take(trial, {"status": "failed", "reason": reason, "seconds": 0.0, "messages": []})

    def _note_problem(self, trial: Trial, outcome: str, reason: str) -> None:
        if outcome != "ok":
            self.sweep.problems.append(Problem(trial.label, outcome, reason))

    def _sweep_up(self) -> None:
        """Remove the notes of trials that a signal cut off in this very process.

        Ctrl-C may fall on any line of such a trial, also on one that tidies up.
        """
        with contextlib.suppress(FileNotFoundError):
            for trial in self.sweep.in_flight.values():
                self.store.forget_progress(trial.address)

    def _stop(self) -> None:
        """Ask the trials under way to save their state, and give them a moment."""
        self.queue.clear()
        self.busy.clear()
        for future in list(self.futures):
            if future.cancel():
                self.sweep.in_flight.pop(self.futures.pop(future).address, None)
            elif future.done():
                self.answers.put(future)  # its own notice may have been cut off by the signal
        if not self.futures:
            return
        write_atomically(self.stop_path, STOP, sync=False, make_folder=False)
        self.reporter.message("stopping: running trials save their state (Ctrl-C again: at once)")
        deadline = time.monotonic() + _GRACE_SECONDS
        while self.futures and time.monotonic() < deadline:
            self._take_answers(_TICK_SECONDS)
            self.reporter.tick(self.sweep)


def _broken(error: BaseException) -> ExecutionError:
    return ExecutionError(
        f"the executor gave up ({type(error).__name__}: {error}); finished trials are saved, "
        "run the same command again"
    )
