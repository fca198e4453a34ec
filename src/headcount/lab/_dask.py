"""Trials on a Dask cluster that is already running.

The scheduler owns the assignment of trials to workers. It moves the trials of a dead worker to
another by itself, `distributed.scheduler.allowed-failures` times; after that the death is told to
the sweep, like that of an own process. A scheduler that goes away is waited for.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import secrets
import threading
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
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
_PER_THREAD = 4
_AT_LEAST = 32


@dataclass
class _Call:
    """A trial that was handed over."""

    task: dict[str, Any]
    hint: Hint
    future: Future[dict[str, Any]] = field(default_factory=Future)
    remote: Any = None


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

    def begin(self, folder: Path, trials: Sequence[Trial]) -> None:
        """Ask the workers who they are, and refuse to compute with others than ours."""
        self._store = Store(folder)
        locations = sorted({trial.measurement.location for trial in trials})
        self._settings = client_settings()
        self._expected = environment(locations)
        self._check_workers(locations)
        workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
        self.window = max(_AT_LEAST, _PER_THREAD * sum(worker["nthreads"] for worker in workers))
        self._limits_memory = all("memory" in worker["resources"] for worker in workers)
        self.replaces_workers = replaces_workers(workers)
        self._probe = make_probe(folder)

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
                fix="pip install 'headcount[dask]'",
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

    def _check_workers(self, locations: list[str]) -> None:
        found = self._client.run(describe_worker, locations, self._settings, on_error="return")
        if not found:
            raise ExecutionError(
                f"the Dask scheduler at {self.address} has no workers; "
                f"start some with: dask worker {self.address}"
            )
        for address, answer in found.items():
            if isinstance(answer, OSError):
                continue  # it died meanwhile; who takes its place is asked with every trial
            if isinstance(answer, BaseException):
                problem = f"cannot run Headcount ({type(answer).__name__}: {answer})"
            else:
                problem = differences(self._expected, answer)
            if problem:
                raise _mismatch(address, problem)

    def _send(self, call: _Call) -> None:
        limits = {"memory": call.hint.bytes} if self._limits_memory else None
        arguments = (call.task, self._expected, self._settings, self._probe)
        # One name for all: the scheduler then keeps in its own queue what no worker can start.
        key = (self._name, next(self._numbers))
        try:
            call.remote = self._client.submit(
                _run_on_worker, *arguments, key=key, pure=False, resources=limits
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
            call.future.set_result(self._answer(call, remote))
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

    def _answer(self, call: _Call, remote: distributed.Future) -> dict[str, Any]:
        from distributed import KilledWorker

        try:
            answer = remote.result(timeout=60)
        except KilledWorker as error:
            times = error.allowed_failures + 1
            raise WorkerDied(f"the Dask workers that computed it died, {times} in a row") from error
        except (CancelledError, OSError, TimeoutError):
            raise
        except Exception as error:
            name = type(error).__name__
            raise ExecutionError(f"a Dask worker gave no answer ({name}: {error})") from error
        if answer["status"] == "mismatch":
            raise _mismatch(answer.pop("worker"), answer["reason"])
        return take_over(self._store, call.task, answer)

    def _lose(self, call: _Call) -> None:
        """The scheduler has gone: the first to notice tries to find it again."""
        with self._lock:
            self._lost.append(call)
            first = len(self._lost) == 1
        if first:
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


def _mismatch(worker: str, problem: str) -> ExecutionError:
    return ExecutionError(
        f"the worker {worker} does not fit: {problem}; install the same there and restart it"
    )
