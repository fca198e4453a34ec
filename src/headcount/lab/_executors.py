"""Where trials run: the small protocol behind which every executor stands.

A sweep hands over one task at a time with a `Hint`, and gets a future of the answer. A death of
the worker is the exception `WorkerDied` in that future (the sweep tries again, up to its cap); an
`ExecutionError` means that no trial can run there at all. Workers compute with the
`thread_settings`, so that numbers do not depend on where a trial ran.
"""

from __future__ import annotations

import os
import signal
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any, NamedTuple

from ..core import BadArgument
from ..core._checks import check_kind
from ._figure import Trial
from ._trial import run_trial

EXECUTORS = "processes, inline, dask://HOST:PORT or slurm"


_CRASHES = ("SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGABRT", "SIGTRAP", "SIGSYS")


class WorkerDied(RuntimeError):
    """The process that ran the call ended without an answer."""

    @classmethod
    def with_code(cls, exit_code: int | None) -> WorkerDied:
        """The death of a process of this machine."""
        if exit_code is None or exit_code >= 0:
            return cls(f"the worker process ended with exit code {exit_code}")
        name = signal.Signals(-exit_code).name
        hint = "a crash in compiled code" if name in _CRASHES else "somebody ended it"
        if name == "SIGKILL":
            hint = "perhaps out of memory"
        return cls(f"the worker process ended by {name}, {hint}")


class Hint(NamedTuple):
    """What a scheduler may want to know of a trial: it changes where and when, never the result."""

    group: str = ""
    """Trials of one group share compiled programs."""
    seconds: float = 1.0
    bytes: float = 0.0
    compiling: float = 0.0
    """What the first trial of the group takes longer in a process."""


class TrialExecutor:
    """The protocol. Only `submit_trial` has to be written."""

    window: int | None = None
    """How many trials it wants to hold at a time; None: the sweep's own number."""

    replaces_workers = False
    """Whether a worker runs one trial at a time and a new one takes its place when it dies."""

    stalled = False
    """Whether nothing gets on here, so that no time left can be told."""

    def begin(self, folder: Path, trials: Sequence[Trial]) -> None:
        """Called before the first trial: refuse now what could not run later."""

    def news(self) -> list[str]:
        """What a person should know that came up since the last call; asked all the time."""
        return []

    @abstractmethod
    def submit_trial(self, task: Mapping[str, Any], hint: Hint) -> Future[dict[str, Any]]:
        """Run `run_trial(task)` somewhere."""

    def flush(self) -> None:
        """Called when there is nothing more to submit for now."""

    def close(self, *, gently: bool) -> None:
        """The sweep is over; not gently: calls are under way and nobody waits for them."""


class InlineExecutor(Executor, TrialExecutor):
    """Runs every call at once in the calling process: for debuggers and small things."""

    window = 1

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run now; the future is done on return. Ctrl-C goes through to the caller."""
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future

    def submit_trial(self, task: Mapping[str, Any], hint: Hint) -> Future[dict[str, Any]]:
        """Run the trial now."""
        return self.submit(run_task, task)


class _AnyExecutor(TrialExecutor):
    """An executor of the standard's kind, whose workers see the results folder."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    def submit_trial(self, task: Mapping[str, Any], hint: Hint) -> Future[dict[str, Any]]:
        return self._executor.submit(run_trial, task)


def open_executor(name: str | Executor | TrialExecutor, workers: int | None) -> TrialExecutor:
    """The executor of that name, as on the command line; `workers` are for processes."""
    if isinstance(name, TrialExecutor):
        return name
    if isinstance(name, Executor):
        return _AnyExecutor(name)
    kind, _, rest = check_kind("executor", name, str, fix=f"use {EXECUTORS}").partition(":")
    if workers is not None and kind != "processes":
        raise BadArgument(
            "workers", workers, f"does not apply to {name}", fix="leave it out: it has its own"
        )
    if name == "inline":
        return InlineExecutor()
    if name == "processes":
        from ._batches import BatchingExecutor
        from ._processes import ProcessExecutor

        return BatchingExecutor(ProcessExecutor(workers))
    if kind == "dask" and rest.startswith("//"):
        from ._dask import DaskExecutor

        return DaskExecutor(rest.removeprefix("//"))
    if kind == "slurm":
        from ._slurm import SlurmExecutor

        return SlurmExecutor.from_text(rest)
    raise BadArgument("executor", name, "is not known", fix=f"use {EXECUTORS}")


def run_task(task: Mapping[str, Any]) -> dict[str, Any]:
    """A trial, or several that go together."""
    if "batch" in task:
        from ._batches import run_batch

        return run_batch(task)
    return run_trial(task)


def thread_settings() -> dict[str, str]:
    """Settings that a worker must find before it imports NumPy and JAX: one thread each.

    Two processes with one thread each beat one process with two threads on matrices this small,
    and a single thread always adds up in the same order. The XLA flag alone leaves a pool of one
    thread per core, between which the steps of a program are handed over: measured, that doubles
    the CPU time of a training step. PJRT_NPROC sets the size of that pool.
    """
    flag = "--xla_cpu_multi_thread_eigen"
    flags = os.environ.get("XLA_FLAGS", "")
    return {
        "XLA_FLAGS": flags if flag in flags else f"{flags} {flag}=false".strip(),
        "PJRT_NPROC": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }


def slurm_submission(name: str, folder: Path, hints: Sequence[Hint]) -> str:
    """What `--executor slurm` would submit for trials of which this is known."""
    from ._slurm import SlurmExecutor

    executor = SlurmExecutor.from_text(name.partition(":")[2])
    return executor.submission(folder, hints) if hints else ""
