"""What SLURM says of jobs, through its own commands; at times nobody answers them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Collection
from typing import NamedTuple

ANSWER_SECONDS = 60.0
GOING_ON = frozenset(
    (
        *("PENDING", "RUNNING", "CONFIGURING", "COMPLETING", "REQUEUED", "REQUEUE_HOLD"),
        *("REQUEUE_FED", "RESIZING", "RESV_DEL_HOLD", "SIGNALING", "SPECIAL_EXIT"),
        *("STAGE_OUT", "STOPPED", "SUSPENDED"),
    )
)
MAY_GO_ON = frozenset(("PREEMPTED", "NODE_FAIL", "BOOT_FAIL", "REVOKED"))
"""Ended, but SLURM may put such a job back into its queue by itself."""
ITS_OWN_END = frozenset(("FAILED", "OUT_OF_MEMORY", "TIMEOUT", "COMPLETED"))
"""How a job ends by what it does; in every other state somebody else ended it."""
FORGOTTEN = "FORGOTTEN"
"""Neither the queue nor the accounts know the job (any more)."""


class State(NamedTuple):
    """How a job stands, and why it waits."""

    name: str
    reason: str = ""


def answers() -> bool:
    """Whether SLURM's controller can be asked anything now."""
    return _ask("squeue", "--me", "--noheader") is not None


def keeps_accounts() -> bool:
    """Whether ends of jobs can be looked up for good, not just for some minutes."""
    return _ask("sacct", "-X", "-n", "-P", "-o", "JobID") is not None


def states(jobs: Collection[str]) -> dict[str, State] | None:
    """How each of these jobs stands; None when SLURM does not answer."""
    # The queue still lists jobs that have ended, for MinJobAge (five minutes by default).
    user = f"--user={os.getuid()}"
    queue = _ask("squeue", user, "--array", "--states=all", "--noheader", "--format=%i|%T|%r")
    if queue is None:
        return None
    found = {line.partition("|")[0].strip(): line.split("|")[1:3] for line in queue.splitlines()}
    lost = ",".join(sorted({job.partition("_")[0] for job in jobs if job not in found}))
    accounts = _ask("sacct", "-X", "-n", "-P", "-o", "JobID,State", "-j", lost) if lost else ""
    for line in (accounts or "").splitlines():
        job, _, state = line.partition("|")
        found.setdefault(job, state.split()[:1])  # "CANCELLED by 1000"
    return {job: State(*found.get(job) or (FORGOTTEN,)) for job in jobs}


def cancel(name: str) -> None:
    """Cancel all jobs of that name; no harm where there are none."""
    _ask("scancel", f"--name={name}")


def _ask(*command: str) -> str | None:
    """What a command prints, or None when it fails."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=ANSWER_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
