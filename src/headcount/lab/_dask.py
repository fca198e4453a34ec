"""Trials on a Dask cluster that is already running.

The scheduler owns the assignment of trials to workers. It moves the trials of a dead worker to
another by itself, `distributed.scheduler.allowed-failures` times; after that the death is told to
the sweep, like that of an own process. A scheduler that goes away is waited for. A worker that
does not fit gets no trials.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import secrets
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from ..core import BadArgument
from ._errors import ExecutionError
from ._executors import Hint, TrialExecutor, WorkerDied
from ._figure import Trial
from ._remote import (
    client_settings,
    describe_worker,
    differences,
    environment,
    make_probe,
    run_remote,
    take_over,
)
from ._store import Store

if TYPE_CHECKING:
    import distributed

CONNECT_SECONDS = 10.0
RECONNECT_SECONDS = 120.0
LOOK_SECONDS = 2.0
IDLE_SECONDS = 30.0
"""After so long without a worker that computes it is said that nothing gets on."""
_PER_THREAD = 4
_AT_LEAST = 32
_TRIES = 3


@dataclass
class _Call:
    """A trial that was handed over."""

    task: dict[str, Any]
    hint: Hint
    future: Future[dict[str, Any]] = field(default_factory=Future)
    remote: Any = None
    asked: int = 0
    """How many times a worker could not run it, for another reason than the trial's own."""
    only: frozenset[str] = frozenset()
    """The workers that may run it; empty: all."""


class DaskExecutor(TrialExecutor):
    """Runs trials on the workers of the Dask scheduler at `address`, "HOST:PORT"."""

    def __init__(self, address: str) -> None:
        if not re.fullmatch(r"[\w.\-]+:\d{1,5}|\[[0-9a-fA-F:]+\]:\d{1,5}", address):
            raise BadArgument(
                "executor",
                f"dask://{address}",
                "has no HOST:PORT",
                fix="e.g. dask://localhost:8786",
            )
        self.address = address
        self._client = self._connect(CONNECT_SECONDS)
        self._name = f"headcount-trial-{secrets.token_hex(4)}"
        self._numbers = itertools.count()
        self._calls: list[_Call] = []
        self._lost: list[_Call] = []
        self._lock = threading.Lock()
        self._closed = False
        self._limits_memory = False
        self._news: SimpleQueue[str] = SimpleQueue()
        self._again: list[_Call] = []
        self._known: set[str] = set()
        self._unfit: set[str] = set()
        self._fitting: list[str] = []
        self._ended = threading.Event()

    def begin(self, folder: Path, trials: Sequence[Trial]) -> None:
        """Ask the workers who they are; those whose numbers might be others are left out."""
        self._store = Store(folder)
        self._locations = sorted({trial.measurement.location for trial in trials})
        self._settings = client_settings()
        self._expected = environment(self._locations)
        self._check_workers()
        workers = self._workers().values()
        self.window = max(_AT_LEAST, _PER_THREAD * sum(worker["nthreads"] for worker in workers))
        self._limits_memory = all("memory" in worker["resources"] for worker in workers)
        self.replaces_workers = replaces_workers(workers)
        self._probe = make_probe(folder)
        threading.Thread(target=self._watch, daemon=True).start()

    def news(self) -> list[str]:
        """What the thread that watches has to tell."""
        found = []
        with contextlib.suppress(Empty):
            while True:
                found.append(self._news.get_nowait())
        return found

    def submit_trial(self, task: Mapping[str, Any], hint: Hint) -> Future[dict[str, Any]]:
        """Hand a trial to the scheduler."""
        call = _Call({**task, "folder": str(Path(task["folder"]).resolve())}, hint)
        if task["stop_path"] is not None:
            call.task["stop_path"] = str(Path(task["stop_path"]).resolve())
        # Not to be cancelled: whether it runs already is known to the scheduler alone. A trial
        # that starts after the sweep was asked to stop ends at once.
        call.future.set_running_or_notify_cancel()
        with self._lock:
            self._calls.append(call)
        self._send(call)
        return call.future

    def close(self, *, gently: bool) -> None:
        """Leave the cluster as it was found."""
        self._ended.set()
        with self._lock:
            self._closed = True
            calls, self._calls = self._calls, []
        with contextlib.suppress(OSError, TimeoutError):
            if not gently:
                self._client.cancel([call.remote for call in calls])
            self._client.close(timeout=5)
        if hasattr(self, "_probe"):
            Path(self._probe[0]).unlink(missing_ok=True)

    def _connect(self, seconds: float) -> distributed.Client:
        try:
            from distributed import Client
        except ImportError as error:
            raise BadArgument(
                "executor",
                f"dask://{self.address}",
                "needs dask.distributed",
                fix="pip install distributed",
            ) from error
        try:
            return Client(f"tcp://{self.address}", timeout=seconds, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise BadArgument(
                "executor",
                f"dask://{self.address}",
                f"no Dask scheduler answers there ({type(error).__name__})",
                fix="start one with: dask scheduler",
            ) from error

    def _workers(self) -> dict[str, Any]:
        # Not scheduler_info(): it returns what the client keeps, and a timer of the client empties
        # that every two seconds.
        try:
            answer = self._client.sync(self._client.scheduler.identity)
        except (OSError, TimeoutError) as error:
            raise ExecutionError(f"the Dask scheduler at {self.address} has gone") from error
        workers: dict[str, Any] = answer["workers"]
        return workers

    def _check_workers(self) -> None:
        found = list(self._workers())
        if not found:
            raise ExecutionError(
                f"the Dask scheduler at {self.address} has no workers; "
                f"start some with: dask worker {self.address}"
            )
        problems = self._ask(found)
        self._fitting = [worker for worker in found if worker not in problems]
        if len(problems) == len(found):
            worker, problem = next(iter(problems.items()))
            raise ExecutionError(f"the worker {worker} {problem}; install the same there")

    def _ask(self, workers: list[str]) -> dict[str, str]:
        """Why some of these workers do not fit; from now on they are left out."""
        answers = self._client.run(
            describe_worker, self._locations, self._settings, workers=workers, on_error="return"
        )
        problems = {}
        for worker, answer in answers.items():
            if isinstance(answer, OSError):
                continue  # it died meanwhile; who takes its place is asked as well
            self._known.add(worker)
            if isinstance(answer, BaseException):
                problem = f"cannot run Headcount ({type(answer).__name__}: {answer})"
            else:
                problem = differences(self._expected, answer)
                problem = problem and f"does not fit: {problem}"
            if problem:
                problems[worker] = problem
                self._leave_out(worker, problem)
        return problems

    def _leave_out(self, worker: str, problem: str) -> None:
        with self._lock:
            if worker in self._unfit:
                return
            self._known.add(worker)
            self._unfit.add(worker)
        self._fitting = [each for each in self._fitting if each != worker]
        self._news.put(f"the worker {worker} {problem}; it is left out")

    def _watch(self) -> None:
        """A thread: who joins is asked, what a worker could not run goes to another."""
        at_work, told = time.monotonic(), ""
        while not self._ended.wait(LOOK_SECONDS):
            try:
                with contextlib.suppress(OSError):
                    os.utime(self._probe[0])  # still in use, for clients on other machines
                workers = self._workers()
                self._known.intersection_update(workers)
                self._unfit.intersection_update(workers)
                new = [worker for worker in workers if worker not in self._known]
                if new:
                    self._ask(new)
                self._fitting = [worker for worker in workers if worker not in self._unfit]
                if self._fitting:
                    self._send_again()
                computing = self._client.processing(self._fitting) if self._fitting else {}
            except Exception:  # the scheduler has gone: whoever waits for an answer notices, too
                continue
            with self._lock:
                waiting = bool(self._calls)
            now = time.monotonic()
            if not waiting or any(computing.values()):
                at_work = now
            self.stalled = now - at_work >= IDLE_SECONDS
            text = self._why_stalled() if self.stalled else ""
            if text not in ("", told):
                self._news.put(text)
            told = text

    def _why_stalled(self) -> str:
        """What stands still, and what to do."""
        saved = "Ctrl-C ends, finished trials are saved"
        if self._fitting:
            what = f"none of {len(self._fitting)} workers takes a trial, perhaps for want of memory"
        else:
            who = "no worker that fits" if self._unfit else "no worker"
            what = f"the Dask scheduler at {self.address} has {who}"
        return f"{what}; start some with: dask worker {self.address} --nthreads 1 ({saved})"

    def _send_again(self) -> None:
        """What waits for a worker that fits, and what was meant for workers that are gone."""
        with self._lock:
            calls, self._again = self._again, []
            for call in self._calls:
                if call.only and call.only.isdisjoint(self._fitting) and call not in calls:
                    calls.append(call)
        for call in calls:
            self._send(call)

    def _send(self, call: _Call) -> None:
        limits = {"memory": call.hint.bytes} if self._limits_memory else None
        arguments = (call.task, self._expected, self._settings, self._probe)
        # One name for all: the scheduler then keeps in its own queue what no worker can start.
        key = (self._name, next(self._numbers))
        call.only = frozenset(self._fitting) if self._unfit else frozenset()
        try:
            call.remote = self._client.submit(
                _run_on_worker,
                *arguments,
                key=key,
                pure=False,
                resources=limits,
                workers=list(call.only) or None,
            )
        except Exception:  # whatever a client raises that has just lost its scheduler
            self._lose(call)
        else:
            call.remote.add_done_callback(partial(self._receive, call))

    def _receive(self, call: _Call, remote: distributed.Future) -> None:
        """Called in a thread of the client when a call has ended, however."""
        if remote is not call.remote or call.future.done() or self._closed:
            return
        try:
            answer = self._answer(call, remote)
            if answer is None:
                with self._lock:
                    self._again.append(call)
                return
            call.future.set_result(answer)
        except CancelledError:
            self._lose(call)
            return
        except (OSError, TimeoutError):
            # The worker died with the answer. Asked again, the next one finds the trial stored.
            self._send(call)
            return
        except Exception as error:  # every other way to fail is told to the sweep
            call.future.set_exception(error)
        with self._lock:
            if call in self._calls:
                self._calls.remove(call)
            call.remote = None

    def _answer(self, call: _Call, remote: distributed.Future) -> dict[str, Any] | None:
        """The answer of a trial; None when its worker is to be left out and another asked."""
        from distributed import KilledWorker

        try:
            answer = remote.result(timeout=60)
        except KilledWorker as error:
            times = error.allowed_failures + 1
            raise WorkerDied(f"the Dask workers that computed it died, {times} in a row") from error
        except (CancelledError, OSError, TimeoutError):
            raise
        except Exception as error:
            # A worker without Headcount, say, which has joined just now: it will be asked.
            call.asked += 1
            if call.asked <= _TRIES:
                self._known.clear()
                return None
            name = type(error).__name__
            raise ExecutionError(f"a Dask worker gave no answer ({name}: {error})") from error
        if answer["status"] == "mismatch":
            self._leave_out(answer["worker"], f"does not fit: {answer['reason']}")
            return None
        return take_over(self._store, call.task, answer)

    def _lose(self, call: _Call) -> None:
        """The scheduler has gone: the first to notice tries to find it again."""
        with self._lock:
            self._lost.append(call)
            first = len(self._lost) == 1
        if first:
            self._news.put(
                f"the Dask scheduler at {self.address} has gone; looking for it for "
                f"{RECONNECT_SECONDS:.0f} s"
            )
            threading.Thread(target=self._find_again, daemon=True).start()

    def _find_again(self) -> None:
        try:
            client = self._connect(RECONNECT_SECONDS)
        except BadArgument:
            with self._lock:
                calls, self._lost = self._lost, []
            for call in calls:
                call.future.set_exception(
                    ExecutionError(
                        f"the Dask scheduler at {self.address} has gone; finished trials are "
                        "saved, run the same command again"
                    )
                )
            return
        with self._lock:
            old, self._client = self._client, client
            calls, self._lost = self._lost, []
        with contextlib.suppress(OSError, TimeoutError):
            old.close(timeout=1)
        for call in calls:
            self._send(call)


def replaces_workers(workers: Iterable[Mapping[str, Any]]) -> bool:
    """Whether the end of a worker takes one trial along, and a nanny starts another worker.

    Only there a trial has a time limit: it ends the process in which the trial hangs.
    """
    return all(worker["nthreads"] == 1 and bool(worker.get("nanny")) for worker in workers)


def _run_on_worker(
    task: Mapping[str, Any],
    expected: Mapping[str, str],
    settings: Mapping[str, str],
    probe: tuple[str, str],
) -> dict[str, Any]:
    """Runs in a thread of a Dask worker."""
    from distributed import get_worker

    worker = get_worker()
    scratch = str(Path(worker.local_directory) / "headcount")
    return {**run_remote(task, expected, settings, probe, scratch), "worker": worker.address}
