"""Executors: where trials run.

`ProcessExecutor` differs from the standard ProcessPoolExecutor in what a long sweep needs: the
death of one worker (kill -9, out of memory) fails only the call it was running, and workers never
outlive their parent, however that ended.
"""

from __future__ import annotations

import atexit
import contextlib
import multiprocessing
import os
import queue
import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from multiprocessing.connection import Connection, wait
from typing import Any

from ..core import check_count
from ._errors import ExecutionError

_spawn = multiprocessing.get_context("spawn")
_environment_lock = threading.Lock()


class WorkerDied(RuntimeError):
    """The process that ran the call ended without an answer."""

    def __init__(self, exit_code: int | None) -> None:
        killed = exit_code is not None and exit_code < 0
        name = signal.Signals(-exit_code).name if killed and exit_code is not None else ""
        hint = f"by {name}, perhaps out of memory" if killed else f"with exit code {exit_code}"
        super().__init__(f"the worker process ended {hint}")


class InlineExecutor(Executor):
    """Runs every call at once in the calling process: for debuggers and small things."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run now; the future is done on return. Ctrl-C goes through to the caller."""
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


class ProcessExecutor(Executor):
    """`workers` processes, started with the spawn method, one computing thread each.

    Calls and answers travel as plain values; an exception arrives as a RuntimeError with the
    worker's traceback as its text.
    """

    def __init__(self, workers: int | None = None) -> None:
        self.workers = check_count("workers", default_workers() if workers is None else workers)
        self._calls: queue.SimpleQueue[tuple[Future[Any], Any] | None] = queue.SimpleQueue()
        self._processes: dict[int, Any] = {}
        self._threads: list[threading.Thread] = []
        self._closed = False
        self._killed = False
        atexit.register(self.kill)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Queue `fn(*args, **kwargs)`; `fn` must be importable by name."""
        if self._closed:
            raise RuntimeError("the executor is shut down")
        future: Future[Any] = Future()
        self._calls.put((future, (fn, args, kwargs)))
        if len(self._threads) < self.workers:
            thread = threading.Thread(target=self._serve, daemon=True)
            self._threads.append(thread)
            thread.start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let the workers finish what is queued (or only what runs), then end them."""
        if self._closed:
            return
        self._closed = True
        if cancel_futures:
            self._cancel_queued()
        for _ in self._threads:
            self._calls.put(None)
        if wait:
            for thread in self._threads:
                thread.join()
            atexit.unregister(self.kill)

    def kill(self) -> None:
        """End the workers at once; calls under way fail with WorkerDied."""
        self._closed = self._killed = True
        self._cancel_queued()
        for _ in self._threads:
            self._calls.put(None)
        for process in list(self._processes.values()):
            process.kill()
        atexit.unregister(self.kill)

    def _cancel_queued(self) -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                call = self._calls.get_nowait()
                if call is not None:
                    call[0].cancel()

    def _serve(self) -> None:
        """One thread per worker process: hand over calls, notice deaths, start anew."""
        if hasattr(signal, "pthread_sigmask"):
            # Inherited by the workers: Ctrl-C is for the parent, which then asks them to stop.
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        worker: _Worker | None = None
        while (call := self._calls.get()) is not None:
            future, work = call
            if not future.set_running_or_notify_cancel():
                continue
            try:
                if worker is None or not worker.process.is_alive():
                    worker = _Worker()
                    self._processes[threading.get_ident()] = worker.process
                    if self._killed:
                        worker.process.kill()
                    worker.wait_until_ready()
                succeeded, answer = worker.call(work)
            except Exception as error:
                worker = None
                future.set_exception(error)
                continue
            if succeeded:
                future.set_result(answer)
            else:
                future.set_exception(RuntimeError(answer))
        if worker is not None:
            worker.end()


class _Worker:
    """One process and the pipe to it."""

    def __init__(self) -> None:
        self.connection, theirs = _spawn.Pipe()
        self.process = _spawn.Process(target=_work, args=(theirs,))
        with _single_thread_environment():
            self.process.start()
        theirs.close()

    def wait_until_ready(self) -> None:
        """A process that cannot even start is no fault of the trial."""
        try:
            self._answer()
        except WorkerDied as error:
            raise ExecutionError(
                f"a worker process could not start ({error}); in a script, put the call under "
                "`if __name__ == '__main__':`, or use one process with --workers 0"
            ) from error

    def call(self, work: Any) -> tuple[bool, Any]:
        """(True, result) or (False, traceback)."""
        try:
            self.connection.send(work)
        except (BrokenPipeError, ConnectionResetError):
            self.process.join()
            raise WorkerDied(self.process.exitcode) from None
        return self._answer()

    def end(self) -> None:
        """Let the process leave its loop."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.connection.send(None)
        self.process.join()
        self.connection.close()

    def _answer(self) -> tuple[bool, Any]:
        wait([self.connection, self.process.sentinel])
        try:
            if self.connection.poll():
                succeeded, answer = self.connection.recv()
                return succeeded, answer
        except (EOFError, ConnectionResetError):
            pass  # closed by the death of the process, told below
        self.process.join()
        raise WorkerDied(self.process.exitcode)


def default_workers() -> int:
    """One worker per core that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _work(connection: Connection) -> None:
    """The life of a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_die_with_parent, daemon=True).start()
    connection.send((True, None))
    while True:
        try:
            work = connection.recv()
        except (EOFError, ConnectionResetError):
            return
        if work is None:
            return
        fn, args, kwargs = work
        try:
            answer = (True, fn(*args, **kwargs))
        except Exception:
            answer = (False, traceback.format_exc())
        connection.send(answer)


def _die_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


@contextlib.contextmanager
def _single_thread_environment() -> Iterator[None]:
    """Settings that a worker must find before it imports NumPy and JAX: one thread each.

    Two processes with one thread each beat one process with two threads on matrices this small,
    and a single thread always adds up in the same order.
    """
    flag = "--xla_cpu_multi_thread_eigen"
    flags = os.environ.get("XLA_FLAGS", "")
    wanted = {
        "XLA_FLAGS": flags if flag in flags else f"{flags} {flag}=false".strip(),
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }
    with _environment_lock:
        before = {name: os.environ.get(name) for name in wanted}
        os.environ.update(wanted)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value
