"""What array jobs are made of: options, trials put together, and what an element runs.

What a job has to do stands in a JSON file of the results folder, and so do its answers: a job that
can read the one sees the folder, and leaves its numbers there.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from ..core import BadArgument
from ..core._files import write_atomically
from ._executors import Hint, thread_settings
from ._remote import run_remote

_BUSY_SECONDS = 60.0
"""So long an element waits for a trial that another process computes, as a cancelled one may."""


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

    def parameters(
        self, chunks: Sequence[Sequence[Call]], left_out: Sequence[str]
    ) -> dict[str, Any]:
        """What submitit is to ask of SLURM, without the nodes that are left out."""
        longest = max(
            chunk[0].hint.compiling + sum(call.hint.seconds for call in chunk) for chunk in chunks
        )
        largest = max(call.hint.bytes for chunk in chunks for call in chunk)
        chosen = {
            name: value
            for name, value in asdict(self).items()
            if value and name in ("partition", "account", "qos", "constraint")
        }
        if self.gpus:
            chosen["gpus_per_node"] = self.gpus
        if left_out:
            chosen["exclude"] = ",".join(left_out)
        return {
            **chosen,
            "time": self.time or max(10, int(4 * longest / 60) + 1),
            "mem": f"{self.mem_gb or int(largest / 1e9) + 1}GB",
            "cpus_per_task": self.cpus,
            "array_parallelism": self.parallel,
            "setup": [f"export {k}={shlex.quote(v)}" for k, v in thread_settings().items()],
        }


@dataclass
class Call:
    """A trial that was handed over."""

    task: dict[str, Any]
    hint: Hint
    future: Future[dict[str, Any]]
    resubmitted: int = 0


class TaskList:
    """What an array element runs: the tasks of a JSON file, one after another."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __call__(self) -> None:
        """Every task once; those stored before an interruption are found stored."""
        content = json.loads(Path(self.path).read_text())
        waiting = deque(content["tasks"])
        until = time.monotonic() + _BUSY_SECONDS
        while waiting:
            task = waiting.popleft()
            began_path(content["answers"], task["address"]).touch()
            answer = run_remote(task, content["expected"], content["settings"])
            if answer["status"] == "busy" and time.monotonic() < until:
                began_path(content["answers"], task["address"]).unlink(missing_ok=True)
                waiting.append(task)
                time.sleep(1.0)
                continue
            answer["node"] = os.environ.get("SLURMD_NODENAME", "")
            path = answer_path(content["answers"], task["address"])
            write_atomically(path, json.dumps(answer).encode(), sync=False)

    def checkpoint(self) -> Any:
        """Called by submitit when SLURM preempts the job: the same again, later."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


def answer_path(folder: str | Path, address: str) -> Path:
    """Where the answer of a trial appears."""
    return Path(folder) / f"{address}.json"


def began_path(folder: str | Path, address: str) -> Path:
    """Where a job notes that it has begun a trial."""
    return Path(folder) / f"{address}.began"


def in_chunks(calls: Sequence[Call], seconds: float) -> list[list[Call]]:
    """Calls of one group together, each chunk about `seconds` of expected work."""
    chunks: list[list[Call]] = []
    full = 0.0
    for call in sorted(calls, key=lambda call: call.hint.group):
        same = chunks and chunks[-1][0].hint.group == call.hint.group
        if not same or full + call.hint.seconds > seconds:
            chunks.append([])
            full = call.hint.compiling
        chunks[-1].append(call)
        full += call.hint.seconds
    return chunks
