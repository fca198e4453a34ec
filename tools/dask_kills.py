"""1,000 small trials over two Dask workers, one of them killed every few seconds.

    PYTHONPATH=src:tests/lab python -m tools.dask_kills [trials] [seconds between kills]

Prints how many workers were killed and whether every number equals that of an undisturbed sweep.
"""

from __future__ import annotations

import random
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil
import toy_figure
from dask_cluster import Cluster
from lab_checks import assert_same

from headcount import lab


def kill_workers(
    cluster: Cluster, trials: Path, every: float, over: threading.Event, killed: list[int]
) -> None:
    """Kill the process that computes below a random nanny, every few seconds.

    On a machine so busy that workers need longer than that to start, it waits for a result: else
    nothing could ever be computed.
    """
    choose, before = random.Random(0), -1
    while not over.wait(every):
        now = sum(1 for _ in trials.glob("*/*.h5"))
        nanny = psutil.Process(choose.choice(cluster.processes[1:]).pid)
        workers = [child for child in nanny.children() if "spawn_main" in " ".join(child.cmdline())]
        if workers and now > before:
            choose.choice(workers).kill()
            killed.append(nanny.pid)
            before = now


def main(count: int, every: float) -> None:
    """Run both sweeps and compare."""
    plan = lab.make_plan(toy_figure.figure, "paper", seeds=range(count // 5))
    over, killed = threading.Event(), list[int]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lab.run_plan(plan, folder / "alone", executor="inline")
        with Cluster(folder, allowed_failures=3) as cluster:
            for _ in range(2):
                cluster.start_worker(nanny=True, TOY_PAUSE="0.005")
            cluster.wait_for_workers(2)
            trials = folder / "dask" / "trials"
            settings = (cluster, trials, every, over, killed)
            threading.Thread(target=kill_workers, args=settings, daemon=True).start()
            began = time.monotonic()
            try:
                sweep = lab.run_plan(plan, folder / "dask", executor=f"dask://{cluster.address}")
            finally:
                over.set()
            seconds = time.monotonic() - began
        assert_same(plan, folder / "dask", folder / "alone")
    print(f"{sweep.run} trials in {seconds:.0f} s, {sweep.failed} failed, {len(killed)} workers")
    print("killed; every number equals that of the undisturbed sweep")


if __name__ == "__main__":
    main(*(float(word) if "." in word else int(word) for word in sys.argv[1:] or ("1000", "4.0")))
