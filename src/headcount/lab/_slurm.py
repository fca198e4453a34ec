"""Trials as array jobs of a SLURM cluster, submitted by submitit.

submitit pickles what it submits: here that is the name of `TaskList` and the path of a JSON file,
nothing else, and Headcount reads none of submitit's pickles back. submitit in turn brings what a
script of our own would lack: jobs that SLURM preempts or times out are put back into its queue.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shutil
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from ..core import BadArgument
from ..core._files import write_atomically
from ..core._owner import is_abandoned, owner
from . import _slurm_queue
from ._errors import ExecutionError
from ._executors import Hint, TrialExecutor, WorkerDied
from ._figure import Trial
from ._remote import client_settings, environment
from ._slurm_jobs import Call, SlurmOptions, TaskList, answer_path, began_path, in_chunks
from ._slurm_queue import GOING_ON, ITS_OWN_END, MAY_GO_ON, State

if TYPE_CHECKING:
    import submitit

POLL_SECONDS = 1.0
STATE_SECONDS = 30.0
"""How often SLURM is asked for the state of jobs; answers are files and are seen before."""
AWAY_SECONDS = 120.0
"""So long a controller that takes no jobs is waited for."""
AGAIN_SECONDS = 5.0
IDLE_SECONDS = 30.0
"""After so long without a running job it is said that all wait."""
_MOST_JOBS = 1000
_RESUBMISSIONS = 10
_ROUNDS = 2
"""Answers may arrive later than the news of a job's end; so often it has to be told."""
_PATIENCE = 10
_OURS = re.compile(r"sweep\.[0-9a-f]{8}-\d+-([0-9a-f]{8})\.jobs")


@dataclass
class _Element:
    """One element of an array job, and those of its trials that have no answer yet."""

    calls: dict[str, Call]
    job: submitit.Job[None]
    ended_for: int = 0
    """How many times in a row SLURM said that the job has ended."""


class SlurmExecutor(TrialExecutor):
    """Runs trials as elements of array jobs; needs a results folder that the nodes share."""

    window = 100_000
    replaces_workers = True

    def __init__(self, options: SlurmOptions) -> None:
        self.options = options
        self._waiting: list[Call] = []
        self._elements: list[_Element] = []
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._failed = False
        self._news: SimpleQueue[str] = SimpleQueue()
        self._unfit: dict[str, str] = {}
        self._away_since: float | None = None
        self._refused = False
        self._not_before = 0.0
        self._told = ""
        self._busy = time.monotonic()
        _require_slurm()

    @classmethod
    def from_text(cls, text: str) -> SlurmExecutor:
        """The executor of "slurm:partition=short,time=60"."""
        return cls(SlurmOptions.from_text(text))

    def begin(self, folder: Path, trials: Sequence[Trial]) -> None:
        """Make the folder of this submission, and end those of clients that are gone."""
        folder = folder.resolve() / "slurm"
        _end_abandoned(folder)
        if not _slurm_queue.keeps_accounts():
            self._news.put(
                "SLURM keeps no accounts here: how jobs ended is read from its queue, which "
                "forgets it after some minutes"
            )
        self._name = secrets.token_hex(4)
        self._folder = folder / f"sweep.{owner()}-{self._name}.jobs"
        (self._folder / "answers").mkdir(parents=True)
        self._folder.chmod(0o700)  # submitit's pickles are code: nobody else may write here
        locations = {trial.measurement.location for trial in trials}
        self._answers = self._folder / "answers"
        self._shared: dict[str, Any] = {
            "expected": environment(sorted(locations)),
            "settings": client_settings(),
            "answers": str(self._answers),
        }
        threading.Thread(target=self._watch, daemon=True).start()

    def submit_trial(self, task: Mapping[str, Any], hint: Hint) -> Future[dict[str, Any]]:
        """Keep the trial until `flush` submits all that came together."""
        paths = {
            name: str(Path(task[name]).resolve()) for name in ("folder", "stop_path") if task[name]
        }
        call = Call({**task, **paths}, hint, Future())
        call.future.set_running_or_notify_cancel()
        with self._lock:
            self._waiting.append(call)
        return call.future

    def flush(self) -> None:
        """Submit what waits, as one array job (or several of 1000 elements)."""
        if time.monotonic() < self._not_before:
            return
        with self._lock:
            calls, self._waiting = self._waiting, []
        chunks = in_chunks(calls, self.options.minutes * 60)
        while chunks:
            try:
                self._submit(chunks[:_MOST_JOBS])
            except _NotTaken as error:
                with self._lock:
                    self._waiting += [call for chunk in chunks for call in chunk]
                self._postpone(error)
                return
            self._refused, self._away_since, self.stalled = False, None, False
            chunks = chunks[_MOST_JOBS:]

    def news(self) -> list[str]:
        """What the thread that watches, or a submission, has to tell."""
        found = []
        with contextlib.suppress(Empty):
            while True:
                found.append(self._news.get_nowait())
        return found

    def close(self, *, gently: bool) -> None:
        """Cancel the jobs under way; logs stay where something went wrong."""
        self._ended.set()
        if not hasattr(self, "_shared"):
            return
        with self._lock:
            elements, self._elements = self._elements, []
        if any(element.calls for element in elements):
            _slurm_queue.cancel(_job_name(self._name))
        if gently and not self._failed:
            shutil.rmtree(self._folder, ignore_errors=True)
        else:
            (self._folder / "kept").touch()

    def submission(self, folder: Path, hints: Sequence[Hint]) -> str:
        """The script that would be given to sbatch, and how many trials its elements run."""
        calls = [Call({}, hint, Future()) for hint in hints]
        chunks = in_chunks(calls, self.options.minutes * 60)
        self._name, self._folder = "ID", folder.resolve() / "slurm" / "ID"
        executor = self._executor(chunks)
        executor.parameters["map_count"] = len(chunks)
        # submitit has no public way to show a script without submitting it.
        script = executor._make_submission_file_text(executor._submitit_command_str, "ID")
        sizes = sorted({len(chunk) for chunk in chunks})
        return f"{script}\n# {len(hints)} trials in {len(chunks)} array elements of {sizes} trials"

    def _executor(self, chunks: Sequence[Sequence[Call]]) -> submitit.SlurmExecutor:
        import submitit

        executor = submitit.SlurmExecutor(self._folder / "jobs")
        chosen = self.options.parameters(chunks, sorted(self._unfit))
        executor.update_parameters(**chosen, job_name=_job_name(self._name))
        return executor

    def _submit(self, chunks: list[list[Call]]) -> None:
        from submitit.core.utils import FailedJobError, FailedSubmissionError

        lists = []
        for chunk in chunks:
            path = self._folder / f"tasks-{secrets.token_hex(4)}.json"
            content = {**self._shared, "tasks": [call.task for call in chunk]}
            write_atomically(path, json.dumps(content).encode(), sync=False)
            lists.append(TaskList(str(path)))
        try:
            executor = self._executor(chunks)
            with executor.batch():
                jobs = [executor.submit(each) for each in lists]
        except (OSError, FailedJobError, FailedSubmissionError) as error:
            raise _NotTaken(" ".join(str(error).split())) from error
        with self._lock:
            for chunk, job in zip(chunks, jobs, strict=True):
                calls = {call.task["address"]: call for call in chunk}
                self._elements.append(_Element(calls, job))

    def _postpone(self, error: _NotTaken) -> None:
        """Try again later when nobody was there to take jobs; else they are refused."""
        there, now = _slurm_queue.answers(), time.monotonic()
        if there and self._refused:  # twice: the controller may have come back after the first
            nodes = "".join(f"; left out: {node} ({why})" for node, why in self._unfit.items())
            raise ExecutionError(f"sbatch did not take the jobs: {error}{nodes}")
        self._refused, self._not_before = there, now + (0.0 if there else AGAIN_SECONDS)
        self.stalled = not there
        if self._away_since is None:
            self._away_since = now
            if not there:
                self._news.put(
                    f"SLURM takes no jobs now ({error}); trying again for {AWAY_SECONDS:.0f} s"
                )
        if now - self._away_since > AWAY_SECONDS:
            raise ExecutionError(
                f"SLURM has taken no jobs for {AWAY_SECONDS:.0f} s ({error}); finished trials are "
                "saved, run the same command again"
            )

    def _watch(self) -> None:
        """A thread: answers are files; what ends without one died."""
        rounds = max(1, round(STATE_SECONDS / POLL_SECONDS))
        k = 0
        try:
            while not self._ended.wait(POLL_SECONDS):
                k += 1
                with self._lock:
                    elements = list(self._elements)
                for element in elements:
                    self._take_answers(element)
                if k % rounds == 0 and elements:
                    self._ask(elements)
                with self._lock:
                    self._elements = [element for element in self._elements if element.calls]
        except Exception as error:  # without this thread the sweep would wait for ever
            with self._lock:
                calls = [call for each in self._elements for call in each.calls.values()]
            for call in calls:
                if not call.future.done():
                    call.future.set_exception(
                        ExecutionError(f"lost sight of the SLURM jobs ({error}); run it again")
                    )

    def _take_answers(self, element: _Element) -> None:
        for address, call in list(element.calls.items()):
            path = answer_path(self._answers, address)
            try:
                answer = json.loads(path.read_bytes())
            except FileNotFoundError:
                continue
            path.unlink()
            del element.calls[address]
            if answer["status"] == "mismatch":
                self._leave_out(answer["node"], answer["reason"])
                self._again(call, f"the node {answer['node']} does not fit: {answer['reason']}")
            else:
                call.future.set_result(answer)

    def _leave_out(self, node: str, problem: str) -> None:
        """No more jobs for a node whose numbers might be others."""
        if node not in self._unfit:
            self._failed = True
            self._unfit[node] = problem
            self._news.put(f"the node {node} does not fit and is left out: {problem}")

    def _ask(self, elements: Sequence[_Element]) -> None:
        """One question to SLURM for all jobs."""
        os.utime(self._folder)  # still in use, for clients on other machines
        states = _slurm_queue.states([element.job.job_id for element in elements])
        if states is None:
            self._tell("SLURM does not answer; answers of running jobs are taken all the same")
            return
        for element in elements:
            self._look_after(element, states[element.job.job_id])
        waiting = [states[each.job.job_id] for each in elements if each.calls]
        now = time.monotonic()
        if not all(state.name == "PENDING" for state in waiting):
            self._busy = now
        self.stalled = now - self._busy >= IDLE_SECONDS
        reasons = ", ".join(sorted({state.reason for state in waiting} - {""}))
        self._tell(
            f"all jobs wait in SLURM's queue ({reasons}); Ctrl-C takes them back, finished trials "
            "are saved"
            if self.stalled
            else ""
        )

    def _tell(self, text: str) -> None:
        """Once, until it changes."""
        if text not in ("", self._told):
            self._news.put(text)
        self._told = text

    def _look_after(self, element: _Element, state: State) -> None:
        """The trials of a job that has ended are run again, or their death is told."""
        element.ended_for = 0 if state.name in GOING_ON else element.ended_for + 1
        enough = _PATIENCE if state.name in MAY_GO_ON else _ROUNDS
        if not element.calls or element.ended_for < enough:
            return
        self._take_answers(element)
        calls, element.calls = element.calls, {}
        begun = {address for address in calls if began_path(self._answers, address).exists()}
        if state.name not in ITS_OWN_END or not begun:
            self._news.put(
                f"the SLURM job {element.job.job_id} ended as {state.name}; "
                f"its trials are submitted again"
            )
        for address, call in calls.items():
            text = f"its SLURM job {element.job.job_id} ended as {state.name}, "
            text += f"log: {element.job.paths.stderr}"
            if address in begun and state.name in ITS_OWN_END:
                self._failed = True
                call.future.set_exception(WorkerDied(text))
            else:
                # The trial had not begun, or somebody else ended it. What stands behind a trial
                # that ends its jobs does not wear out its patience by that.
                self._again(call, text, counts=address in begun or not begun)

    def _again(self, call: Call, reason: str, *, counts: bool = True) -> None:
        """Submit a trial once more that has not failed; not for ever."""
        began_path(self._answers, call.task["address"]).unlink(missing_ok=True)
        call.resubmitted += counts
        if call.resubmitted > _RESUBMISSIONS:
            self._failed = True
            text = f"SLURM ran {call.task['label']} {_RESUBMISSIONS} times to no end: {reason}"
            call.future.set_exception(ExecutionError(text))
            return
        with self._lock:
            self._waiting.append(call)


class _NotTaken(Exception):
    """sbatch failed."""


def _job_name(sweep: str) -> str:
    """Equal for all jobs of a sweep and only for those: they are cancelled by it."""
    return f"headcount-{sweep}"


def _end_abandoned(folder: Path) -> None:
    """Cancel the jobs of sweeps that were killed, and remove their folders.

    Those that were kept for their logs stay.
    """
    for old in folder.glob("sweep.*.jobs"):
        named = _OURS.fullmatch(old.name)
        if named is None or old.is_symlink() or not (old / "answers").is_dir():
            continue
        if is_abandoned(old) and not (old / "kept").exists():
            _slurm_queue.cancel(_job_name(named[1]))
            shutil.rmtree(old, ignore_errors=True)


def _require_slurm() -> None:
    try:
        import submitit  # noqa: F401
    except ImportError as error:
        raise BadArgument(
            "executor", "slurm", "needs submitit", fix="pip install submitit"
        ) from error
    for program in ("sbatch", "srun", "squeue", "scancel"):
        if shutil.which(program) is None:
            raise BadArgument(
                "executor", "slurm", f"finds no {program}", fix="run this on a SLURM login node"
            )
