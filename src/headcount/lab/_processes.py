"""Worker processes of this machine.

`ProcessExecutor` differs from the standard ProcessPoolExecutor in what a long sweep needs: the
death of one worker (kill -9, out of memory) fails only the call it was running, and workers never
outlive their parent, however that ended.
"""

from __future__ import annotations

import atexit
import contextlib
import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from ..core import BadArgument, check_count
from ._assignment import Assignment
from ._errors import ExecutionError
from ._executors import Hint, TrialExecutor, WorkerDied, run_task, thread_settings
from ._signals import begin_worker

_spawn = multiprocessing.get_context("spawn")
_environment_lock = threading.Lock()
_STARTS = 5
_LOOK_AGAIN_SECONDS = 0.2
MOST_WORKERS = 1024


@dataclass(frozen=True)
class _Call:
    """Work that waits for a worker."""

    future: Future[Any]
    work: tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]
    hint: Hint


class ProcessExecutor(Executor, TrialExecutor):
    """`workers` processes, started with the spawn method, one computing thread each.

    Calls and answers travel as plain values; an exception arrives as a RuntimeError with the
    worker's traceback as its text.
    """

    replaces_workers = True

    def __init__(self, workers: int | None = None) -> None:
        self.workers = check_count("workers", default_workers() if workers is None else workers)
        if self.workers > MOST_WORKERS:
            problem = f"are more than {MOST_WORKERS} processes"
            raise BadArgument("workers", workers, problem, fix="one per core is best: leave it out")
        self.window = max(256, 4 * self.workers)
        self._waiting: list[_Call] = []
        self._assignment = Assignment()
        self._changed = threading.Condition()
        self._processes: dict[int, Any] = {}
        self._threads: list[threading.Thread] = []
        self._closed = False
        self._killed = False
        atexit.register(self.kill)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Queue `fn(*args, **kwargs)`; `fn` must be importable by name."""
        return self.submit_in_group("", fn, *args, **kwargs)

    def submit_in_group(
        self, group: str, fn: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> Future[Any]:
        """Like `submit`; calls of one group go to the same worker, unless others are idle.

        A group shares what is costly to build again, such as compiled programs.
        """
        future = self._queue(Hint(group), fn, args, kwargs)
        self.flush()
        return future

    def submit_trial(self, task: Mapping[str, Any], hint: Hint) -> Future[dict[str, Any]]:
        """Queue a trial for the next `flush`; its group goes to one worker where that is best."""
        return self._queue(hint, run_task, (task,), {})

    def flush(self) -> None:
        """Let the workers begin: only now do they see all groups that there are."""
        with self._changed:
            wanted = min(len(self._threads) + len(self._waiting), self.workers)
            if self._waiting:
                self._changed.notify_all()
        while len(self._threads) < wanted:
            number = len(self._threads)
            thread = threading.Thread(target=self._serve, args=(number,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _queue(self, hint: Hint, fn: Callable[..., Any], args: Any, kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        with self._changed:
            if self._closed:
                raise RuntimeError("the executor is shut down")
            self._waiting.append(_Call(future, (fn, args, kwargs), hint))
        return future

    def close(self, *, gently: bool) -> None:
        """End the workers: after what they compute, or at once."""
        if gently:
            self.shutdown(cancel_futures=True)
        else:
            self.kill()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let the workers finish what is queued (or only what runs), then end them."""
        self._close(cancel=cancel_futures)
        if wait:
            for thread in self._threads:
                thread.join()
            atexit.unregister(self.kill)

    def kill(self) -> None:
        """End the workers at once; calls under way fail with WorkerDied."""
        self._killed = True
        self._close(cancel=True)
        for process in list(self._processes.values()):
            process.kill()
        atexit.unregister(self.kill)

    def _close(self, *, cancel: bool) -> None:
        with self._changed:
            self._closed = True
            if cancel:
                for call in self._waiting:
                    call.future.cancel()
                self._waiting.clear()
            self._changed.notify_all()

    def _next(self, number: int) -> _Call | None:
        """The call that a worker takes now; waits for one; None when there will be none."""
        with self._changed:
            while True:
                hints = [call.hint for call in self._waiting]
                chosen = self._assignment.choose(number, hints, time.monotonic())
                if chosen is not None:
                    call = self._waiting.pop(chosen)
                    self._assignment.began(number, call.hint, time.monotonic())
                    return call
                if self._closed and not self._waiting:
                    return None
                # What waits is for others; look again whether they get on with it.
                self._changed.wait(_LOOK_AGAIN_SECONDS if self._waiting else None)

    def _done(self, number: int, *, died: bool) -> None:
        with self._changed:
            if died:
                self._assignment.died(number)
            else:
                self._assignment.ended(number, time.monotonic())
            if self._waiting:
                self._changed.notify_all()

    def _serve(self, number: int) -> None:
        """One thread per worker process: hand over calls, notice deaths, start anew."""
        if hasattr(signal, "pthread_sigmask"):
            # Inherited by the workers: signals are for the parent, which then asks them to stop.
            signals = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
            signal.pthread_sigmask(signal.SIG_BLOCK, signals)
        worker: _Worker | None = None
        while (call := self._next(number)) is not None:
            if not call.future.set_running_or_notify_cancel():
                self._done(number, died=True)  # it told nothing, and a sweep that cancels ends
                continue
            try:
                if worker is None or not worker.process.is_alive():
                    worker = self._start()
                succeeded, answer = worker.call(call.work)
            except Exception as error:
                worker = None
                self._done(number, died=True)
                call.future.set_exception(error)
                continue
            self._done(number, died=False)
            if succeeded:
                call.future.set_result(answer)
            else:
                call.future.set_exception(RuntimeError(answer))
        if worker is not None:
            worker.end()

    def _start(self) -> _Worker:
        """A new worker; one that is killed while it starts is started again a few times."""
        for _ in range(_STARTS):
            try:
                worker = _Worker()
                self._processes[threading.get_ident()] = worker.process
                if self._killed:
                    worker.process.kill()
                worker.wait_until_ready()
                return worker
            except BrokenPipeError:
                continue  # killed before it had read what it is to do
            except ExecutionError:
                if self._killed or (worker.process.exitcode or 0) >= 0:
                    raise
        raise ExecutionError(f"a worker process was killed {_STARTS} times while it started")


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
            raise WorkerDied.with_code(self.process.exitcode) from None
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
        raise WorkerDied.with_code(self.process.exitcode)


def default_workers() -> int:
    """One worker per core that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _work(connection: Connection) -> None:
    """The life of a worker process."""
    begin_worker()
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


@contextlib.contextmanager
def _single_thread_environment() -> Iterator[None]:
    """The environment in which a worker process is started."""
    wanted = thread_settings()
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
