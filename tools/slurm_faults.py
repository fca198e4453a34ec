"""A figure on a real SLURM while jobs, daemons, nodes and the client are killed.

    make slurm                                        # both clusters, every fault: an hour
    python -m tools.slurm_faults --accounting no client-killed node-down

A cluster of this machine (`tools.slurm_cluster`, needs root and Debian's packages) runs
arda2026/fig1 at smoke scale once undisturbed and once with each fault. Every number must equal,
bit for bit, that of a run in one process, and no trial may be called failed.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from tools.slurm_cluster import NODES, Cluster, install, wait_until

ROOT = Path(__file__).resolve().parents[1]
FIGURE = "arda2026/fig1"
PLACE = "slurm:partition=main,time=10,mem_gb=1,minutes=1,parallel=3"
TRIALS = 27
DEAD_SECONDS = 40.0
"""So long slurmctld stays away: several times what its clients wait for an answer."""
_MOST_SECONDS = 900.0
_HURRY = "from headcount.lab import _slurm; _slurm.STATE_SECONDS = 3.0; "
_MAIN = "from headcount.cli import main; main()"


class Run:
    """The command on the cluster, with its results folder and all that it prints."""

    def __init__(self, cluster: Cluster, folder: Path, executor: str = PLACE) -> None:
        self.cluster, self.folder, self.executor = cluster, folder, executor
        self.log = folder.with_suffix(".log")
        self.start()

    def start(self) -> None:
        """Begin, or go on after an end. States are asked for ten times as often as usual."""
        words = ["reproduce", FIGURE, "--scale", "smoke", "--executor", self.executor]
        with self.log.open("ab") as log:
            self.client = subprocess.Popen(
                [sys.executable, "-c", _HURRY + _MAIN, *words, "--out", str(self.folder)],
                env=self.cluster.environment,
                stdout=log,
                stderr=log,
                cwd=ROOT,
            )

    def stored(self) -> int:
        """How many trials are there."""
        return len(list(self.folder.glob("trials/*/*.h5")))

    def under_way(self) -> None:
        """Wait until some trial is there and some job runs."""
        wait_until(lambda: self.stored() > 0 and bool(self.cluster.running()), _MOST_SECONDS)

    def end(self) -> int:
        """The exit code, in the end."""
        return self.client.wait(_MOST_SECONDS)


def nothing(run: Run) -> None:
    """No fault at all."""


def job_cancelled(run: Run) -> None:
    """scancel of a running element."""
    run.under_way()
    run.cluster.command("scancel", run.cluster.running()[0])


def job_requeued(run: Run) -> None:
    """scontrol requeue of a running element."""
    run.under_way()
    run.cluster.command("scontrol", "requeue", run.cluster.running()[0])


def job_killed(run: Run) -> None:
    """kill -9 of what computes a trial, as when memory runs out."""
    run.under_way()
    wait_until(lambda: bool(_computing(run)))
    max(_computing(run), key=lambda each: each.cpu_times().user).kill()


def _computing(run: Run) -> list[psutil.Process]:
    found = run.cluster.job_processes()
    return [each for each in found if each.name().startswith("python")]


def client_killed(run: Run) -> None:
    """kill -9 of the command, then the same command again."""
    run.under_way()
    run.client.kill()
    run.client.wait()
    run.start()


def client_stopped(run: Run) -> None:
    """SIGTERM to the command, then the same command again."""
    run.under_way()
    run.client.send_signal(signal.SIGTERM)
    if run.client.wait(_MOST_SECONDS) != 130:
        raise RuntimeError("SIGTERM did not end the command with 130")
    run.start()


def slurmd_killed(run: Run) -> None:
    """kill -9 of one slurmd, back after five seconds; its jobs go on meanwhile."""
    run.under_way()
    run.cluster.kill("n1")
    time.sleep(5)
    run.cluster.start("n1")


def node_lost(run: Run) -> None:
    """kill -9 of a slurmd and of all its jobs; the node is back when SLURM has noticed."""
    run.under_way()
    node = next(node for node in NODES if run.cluster.job_processes(node))
    run.cluster.kill(node)
    run.cluster.kill_steps(node)
    for process in run.cluster.job_processes(node):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    wait_until(lambda: "down" in run.cluster.state_of(node))
    run.cluster.start(node)


def node_down(run: Run) -> None:
    """An administrator takes a node down and gives it back."""
    run.under_way()
    node = next(node for node in NODES if run.cluster.job_processes(node))
    run.cluster.command("scontrol", "update", f"nodename={node}", "state=down", "reason=test")
    time.sleep(5)
    run.cluster.command("scontrol", "update", f"nodename={node}", "state=resume")


def controller_killed(run: Run) -> None:
    """kill -9 of slurmctld in the middle, and at the end of an element."""
    run.under_way()
    run.cluster.kill("slurmctld")
    time.sleep(DEAD_SECONDS)
    run.cluster.start("slurmctld")


def controller_away(run: Run) -> None:
    """slurmctld is not there when the jobs are submitted."""
    time.sleep(DEAD_SECONDS)
    run.cluster.start("slurmctld")


FAULTS: dict[str, Callable[[Run], None]] = {
    each.__name__.replace("_", "-"): each
    for each in (
        *(nothing, job_cancelled, job_requeued, job_killed, client_killed, client_stopped),
        *(slurmd_killed, node_lost, node_down, controller_killed, controller_away),
    )
}


def one(cluster: Cluster, name: str, folder: Path, reference: Path) -> str:
    """Inject a fault; what is wrong afterwards, or nothing."""
    if name == "controller-away":
        cluster.kill("slurmctld")
    run = Run(cluster, folder)
    try:
        FAULTS[name](run)
        code = run.end()
    except (OSError, RuntimeError, TimeoutError, subprocess.TimeoutExpired, psutil.Error) as error:
        return f"{type(error).__name__}: {error}"
    finally:
        if run.client.poll() is None:
            run.client.kill()
            run.client.wait()
    text = run.log.read_text()
    wrong = different(folder, reference)
    if code or wrong:
        return f"exit code {code}; {wrong}\n{text}"
    told = [line for line in text.splitlines() if "SLURM" in line or "its " in line]
    for line in dict.fromkeys(told):
        print(f"    told: {line.strip()}", flush=True)
    return ""


def different(folder: Path, reference: Path) -> str:
    """How the numbers of two results folders differ, in words; nothing when in no bit."""
    from headcount import lab

    plan = lab.make_plan(FIGURE, "smoke")
    ours, theirs = lab.Store(folder), lab.Store(reference)
    for address, trial in plan.unique.items():
        a, b = ours.read(address), theirs.read(address)
        if a is None or b is None or set(a.payload) != set(b.payload):
            return f"{trial.label} is not there"
        if a.outcome != b.outcome:
            return f"{trial.label} is {a.outcome}, not {b.outcome}"
        for name, array in b.payload.items():
            same = array.dtype == a.payload[name].dtype and array.shape == a.payload[name].shape
            if not same or array.tobytes() != a.payload[name].tobytes():
                return f"{trial.label}: {name} differs"
    return "" if len(plan.unique) == TRIALS else f"the figure has {len(plan.unique)} trials"


def main() -> int:
    """Print a line for each fault; 1 when one was not survived, 2 when there is no SLURM."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--accounting", choices=("yes", "no", "both"), default="both")
    parser.add_argument("faults", nargs="*", choices=[*FAULTS, []], default=[])
    chosen = parser.parse_args()
    if problem := install():
        print(f"no SLURM: {problem}", file=sys.stderr)
        return 2
    os.environ["PYTHONPATH"] = str(ROOT / "src")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the daemons end with us
    lost = 0
    with tempfile.TemporaryDirectory(prefix="headcount-slurm-") as name:
        reference = Path(name) / "reference"
        words = ["reproduce", FIGURE, "--scale", "smoke", "--workers", "0", "--out", str(reference)]
        subprocess.run(
            [sys.executable, "-m", "headcount", *words], check=True, stdout=subprocess.DEVNULL
        )
        for accounting in (False, True):
            kind = "with" if accounting else "without"
            if chosen.accounting == ("no" if accounting else "yes"):
                continue
            place = Path(name) / kind
            place.mkdir()
            with Cluster(place, accounting=accounting) as cluster:
                for fault in chosen.faults or FAULTS:
                    began = time.monotonic()
                    print(f"{fault}, {kind} accounting", flush=True)
                    wrong = one(cluster, fault, place / f"out-{fault}", reference)
                    lost += bool(wrong)
                    verdict = f"LOST: {wrong}" if wrong else f"{TRIALS} of {TRIALS} the same bits"
                    print(f"    {verdict}, {time.monotonic() - began:.0f} s", flush=True)
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
