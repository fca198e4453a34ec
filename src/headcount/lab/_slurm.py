"""Trials as array jobs of a SLURM cluster, submitted by submitit.

What a job has to do stands in a JSON file of the results folder, and so do its answers. submitit
pickles what it submits: here that is the name of `TaskList` and the path of that file, nothing
else, and Headcount reads none of submitit's pickles back. submitit in turn brings what a script of
our own would lack: jobs that SLURM preempts or times out are put back into its queue.
"""

from __future__ import annotations

import json
import re
import secrets
import shlex
import shutil
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core import BadArgument, write_atomically
from ._errors import ExecutionError
from ._executors import Hint, TrialExecutor, WorkerDied, thread_settings
from ._figure import Trial
from ._remote import client_settings, environment, make_probe, run_remote

if TYPE_CHECKING:
    import submitit

POLL_SECONDS = 1.0
STATE_SECONDS = 30.0
"""How often SLURM is asked for the state of jobs; answers are files and are seen before."""
_MOST_JOBS = 1000
_RESUBMISSIONS = 10
_PATIENCE = 10
_NOT_OUR_FAULT = ("PREEMPTED", "NODE_FAIL", "BOOT_FAIL", "REVOKED")


@dataclass(frozen=True)
class SlurmOptions:
    """What may be said after `slurm:`, as name=value,name=value."""

    partition: str = ""
    account: str = ""
    qos: str = ""
    constraint: str = ""
    time: int = 0
    """Limit of an array element in minutes; 0: four times what its trials are expected to take."""
    mem_gb: int = 0
    """Memory of an array element; 0: what its largest trial is expected to need, and one more."""
    cpus: int = 1
    gpus: int = 0
    parallel: int = 256
    """Most array elements at a time."""
    minutes: int = 10
    """Expected work of one array element: small trials share one."""

    @classmethod
    def from_text(cls, text: str) -> SlurmOptions:
        """The options of "partition=short,time=60"."""
        known = {field.name: int if field.type == "int" else str for field in fields(cls)}
        chosen: dict[str, Any] = {}
        for part in filter(None, text.split(",")):
            name, _, value = part.partition("=")
            if name not in known:
                raise BadArgument(
                    "executor", part, "is no option of slurm", fix=f"use {', '.join(known)}"
                )
            pattern = r"\d{1,9}" if known[name] is int else r"[\w.:@+-]+"  # it goes into a script
            if not re.fullmatch(pattern, value, re.ASCII):
                raise BadArgument("executor", part, "has no valid value", fix=f"e.g. {name}=1")
            chosen[name] = known[name](value)
        return cls(**chosen)


@dataclass
class _Call:
    """A trial that was handed over."""

    task: dict[str, Any]
    hint: Hint
    future: Future[dict[str, Any]]
    resubmitted: int = 0


@dataclass
class _Element:
    """One element of an array job, and those of its trials that have no answer yet."""

    calls: dict[str, _Call]
    job: submitit.Job[None]
    ended_for: int = 0
    """How many times in a row SLURM said that the job has ended."""


class TaskList:
    """What an array element runs: the tasks of a JSON file, one after another."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __call__(self) -> None:
        """Every task once; those stored before an interruption are found stored."""
        content = json.loads(Path(self.path).read_text())
        shared = (content["expected"], content["settings"], tuple(content["probe"]))
        for task in content["tasks"]:
            answer = run_remote(task, *shared, content["scratch"])
            path = Path(content["answers"]) / f"{task['address']}.json"
            write_atomically(path, json.dumps(answer).encode(), sync=False)

    def checkpoint(self) -> Any:
        """Called by submitit when SLURM preempts the job: the same again, later."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


class SlurmExecutor(TrialExecutor):
    """Runs trials as elements of array jobs; needs a results folder that the nodes share."""

    window = 100_000
    replaces_workers = True

    def __init__(self, options: SlurmOptions) -> None:
        self.options = options
        self._waiting: list[_Call] = []
        self._elements: list[_Element] = []
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._failed = False
        _require_slurm()

    @classmethod
    def from_text(cls, text: str) -> SlurmExecutor:
        """The executor of "slurm:partition=short,time=60"."""
        return cls(SlurmOptions.from_text(text))

    def begin(self, folder: Path, trials: Sequence[Trial]) -> None:
        """Make the folder of this submission."""
        self._folder = folder.resolve() / "slurm" / secrets.token_hex(8)
        (self._folder / "answers").mkdir(parents=True)
        self._folder.chmod(0o700)  # submitit's pickles are code: nobody else may write here
        locations = {trial.measurement.location for trial in trials}
        self._probe = make_probe(folder)
        self._shared: dict[str, Any] = {
            "expected": environment(sorted(locations)),
            "settings": client_settings(),
            "probe": self._probe,
            "answers": str(self._folder / "answers"),
            "scratch": str(self._folder / "scratch"),
        }
        threading.Thread(target=self._watch, daemon=True).start()

    def submit_trial(self, task: Mapping[str, Any], hint: Hint) -> Future[dict[str, Any]]:
        """Keep the trial until `flush` submits all that came together."""
        paths = {
            name: str(Path(task[name]).resolve()) for name in ("folder", "stop_path") if task[name]
        }
        call = _Call({**task, **paths}, hint, Future())
        call.future.set_running_or_notify_cancel()
        with self._lock:
            self._waiting.append(call)
        return call.future

    def flush(self) -> None:
        """Submit what waits, as one array job (or several of 1000 elements)."""
        with self._lock:
            calls, self._waiting = self._waiting, []
        chunks = in_chunks(calls, self.options.minutes * 60)
        for first in range(0, len(chunks), _MOST_JOBS):
            self._submit(chunks[first : first + _MOST_JOBS])

    def close(self, *, gently: bool) -> None:
        """Cancel the jobs under way; logs stay where something went wrong."""
        self._ended.set()
        with self._lock:
            elements, self._elements = self._elements, []
        for element in elements:
            if element.calls:
                element.job.cancel(check=False)
        if hasattr(self, "_shared"):
            Path(self._probe[0]).unlink(missing_ok=True)
            if gently and not self._failed:
                shutil.rmtree(self._folder, ignore_errors=True)

    def submission(self, folder: Path, hints: Sequence[Hint]) -> str:
        """The script that would be given to sbatch, and how many trials its elements run."""
        calls = [_Call({}, hint, Future()) for hint in hints]
        chunks = in_chunks(calls, self.options.minutes * 60)
        place = folder.resolve() / "slurm" / "ID"
        executor = self._executor(place, chunks)
        executor.parameters["map_count"] = len(chunks)
        # submitit has no public way to show a script without submitting it.
        script = executor._make_submission_file_text(executor._submitit_command_str, "ID")
        sizes = sorted({len(chunk) for chunk in chunks})
        return f"{script}\n# {len(hints)} trials in {len(chunks)} array elements of {sizes} trials"

    def _executor(self, folder: Path, chunks: Sequence[Sequence[_Call]]) -> submitit.SlurmExecutor:
        import submitit

        executor = submitit.SlurmExecutor(folder / "jobs")
        executor.update_parameters(**self._parameters(chunks))
        return executor

    def _parameters(self, chunks: Sequence[Sequence[_Call]]) -> dict[str, Any]:
        options = self.options
        longest = max(
            chunk[0].hint.compiling + sum(call.hint.seconds for call in chunk) for chunk in chunks
        )
        largest = max(call.hint.bytes for chunk in chunks for call in chunk)
        chosen = {
            name: value
            for name, value in asdict(options).items()
            if value and name in ("partition", "account", "qos", "constraint")
        }
        if options.gpus:
            chosen["gpus_per_node"] = options.gpus
        return {
            **chosen,
            "job_name": "headcount",
            "time": options.time or max(10, int(4 * longest / 60) + 1),
            "mem": f"{options.mem_gb or int(largest / 1e9) + 1}GB",
            "cpus_per_task": options.cpus,
            "array_parallelism": options.parallel,
            "setup": [f"export {k}={shlex.quote(v)}" for k, v in thread_settings().items()],
        }

    def _submit(self, chunks: list[list[_Call]]) -> None:
        from submitit.core.utils import FailedJobError, FailedSubmissionError

        lists = []
        for chunk in chunks:
            path = self._folder / f"tasks-{secrets.token_hex(4)}.json"
            content = {**self._shared, "tasks": [call.task for call in chunk]}
            write_atomically(path, json.dumps(content).encode(), sync=False)
            lists.append(TaskList(str(path)))
        try:
            executor = self._executor(self._folder, chunks)
            with executor.batch():
                jobs = [executor.submit(each) for each in lists]
        except (OSError, FailedJobError, FailedSubmissionError) as error:
            raise ExecutionError(f"sbatch did not take the jobs: {error}") from error
        with self._lock:
            for chunk, job in zip(chunks, jobs, strict=True):
                calls = {call.task["address"]: call for call in chunk}
                self._elements.append(_Element(calls, job))

    def _watch(self) -> None:
        """A thread: answers are files; what ends without one died."""
        rounds = max(1, round(STATE_SECONDS / POLL_SECONDS))
        k = 0
        while not self._ended.wait(POLL_SECONDS):
            k += 1
            with self._lock:
                elements = list(self._elements)
            for element in elements:
                self._take_answers(element)
            if k % rounds == 0 and elements:
                elements[0].job.watcher.update()  # one question for all
                for element in elements:
                    self._look_after(element)
            with self._lock:
                self._elements = [element for element in self._elements if element.calls]

    def _take_answers(self, element: _Element) -> None:
        for address, call in list(element.calls.items()):
            path = self._folder / "answers" / f"{address}.json"
            try:
                answer = json.loads(path.read_bytes())
            except FileNotFoundError:
                continue
            path.unlink()
            del element.calls[address]
            if answer["status"] == "mismatch":
                self._failed = True
                call.future.set_exception(
                    ExecutionError(f"a node does not fit: {answer['reason']}; install the same")
                )
            else:
                call.future.set_result(answer)

    def _look_after(self, element: _Element) -> None:
        """The trials of a job that has ended are run again, or their death is told."""
        job = element.job
        done, state = job.done(), job.state
        element.ended_for = element.ended_for + 1 if done or state in _NOT_OUR_FAULT else 0
        # The last files may arrive later than the news of the end; SLURM may start a preempted
        # job again by itself.
        if not element.calls or element.ended_for < (2 if done else _PATIENCE):
            return
        for k, call in enumerate(element.calls.values()):
            call.resubmitted += 1
            # Trials run in their order: the first without an answer was under way, the others
            # had not begun.
            if (k or state in _NOT_OUR_FAULT) and call.resubmitted <= _RESUBMISSIONS:
                with self._lock:
                    self._waiting.append(call)
            else:
                self._failed = True
                text = f"its SLURM job {job.job_id} ended as {state}, log: {job.paths.stderr}"
                call.future.set_exception(WorkerDied(text))
        element.calls.clear()


def in_chunks(calls: Sequence[_Call], seconds: float) -> list[list[_Call]]:
    """Calls of one group together, each chunk about `seconds` of expected work."""
    chunks: list[list[_Call]] = []
    full = 0.0
    for call in sorted(calls, key=lambda call: call.hint.group):
        same = chunks and chunks[-1][0].hint.group == call.hint.group
        if not same or full + call.hint.seconds > seconds:
            chunks.append([])
            full = call.hint.compiling
        chunks[-1].append(call)
        full += call.hint.seconds
    return chunks


def _require_slurm() -> None:
    try:
        import submitit  # noqa: F401
    except ImportError as error:
        raise BadArgument(
            "executor", "slurm", "needs submitit", fix="pip install 'headcount[slurm]'"
        ) from error
    for program in ("sbatch", "srun", "sacct"):
        if shutil.which(program) is None:
            raise BadArgument(
                "executor", "slurm", f"finds no {program}", fix="run this on a SLURM login node"
            )
