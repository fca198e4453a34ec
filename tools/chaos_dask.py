"""Faults over Dask for `tools.chaos`: workers killed at random, the scheduler killed and restarted.

The sweep runs in a child process against a real scheduler and two workers on the loopback.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tools.chaos_bench import COMPLETE, Bench, Lost, children_of

if TYPE_CHECKING:
    from dask_cluster import Cluster

_MOST_SECONDS = 400.0


@contextlib.contextmanager
def _cluster(bench: Bench) -> Iterator[Cluster]:
    from dask_cluster import Cluster

    folder = bench.root / f"dask-{bench.count}"
    folder.mkdir()
    with Cluster(folder, allowed_failures=3) as cluster:
        for _ in range(2):
            cluster.start_worker(nanny=True, TOY_PAUSE="0.1")
        cluster.wait_for_workers(2)
        yield cluster


def _turns(bench: Bench, child: int) -> Iterator[None]:
    """Again and again until the sweep ends, which must be with everything there."""
    deadline = time.monotonic() + _MOST_SECONDS
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            bench.wait(child)
            raise Lost("the sweep did not end")
        time.sleep(bench.draw.uniform(0.5, 1.5))
        yield
    code = os.waitstatus_to_exitcode(ended[1])
    if code != COMPLETE:
        raise Lost(f"the sweep over Dask ended with code {code}")


def workers_killed(bench: Bench) -> int:
    """kill -9 of the process that computes below a random nanny, up to five times."""
    store, killed = bench.folder(0.0), 0
    with _cluster(bench) as cluster:
        child = bench.start(store, executor=f"dask://{cluster.address}")
        for _ in _turns(bench, child):
            workers = children_of(bench.draw.choice(cluster.processes[1:]).pid)
            if workers and killed < 5 and _any(store.folder):
                workers[0].kill()
                killed += 1
    bench.judge(store, COMPLETE)
    return killed


def scheduler_killed(bench: Bench) -> None:
    """kill -9 of the scheduler; a new one at the same address, with new workers."""
    store, killed = bench.folder(0.0), False
    with _cluster(bench) as cluster:
        port = cluster.address.partition(":")[2]
        child = bench.start(store, executor=f"dask://{cluster.address}")
        for _ in _turns(bench, child):
            if killed or not _any(store.folder):
                continue
            cluster.processes[0].kill()
            cluster.processes[0].wait()
            cluster.start("scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard")
            for _ in range(2):
                cluster.start_worker(nanny=True, TOY_PAUSE="0.1")
            killed = True
    bench.judge(store, COMPLETE)


def _any(folder: Path) -> bool:
    return any(folder.glob("trials/*/*.h5"))
