"""A real Dask cluster on the loopback, for tests and tools."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import cast

HERE = Path(__file__).parent
MOST_SECONDS = 300.0
"""A machine may be so busy that a process needs minutes to start; what takes longer hangs."""


class Cluster:
    """A scheduler and its workers, each a process of its own.

    The scheduler itself moves the trials of `allowed_failures` dead workers in a row; of the next
    death it tells the client.
    """

    def __init__(self, folder: Path, allowed_failures: int = 0) -> None:
        self.folder = folder
        self.allowed_failures = allowed_failures
        self.processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Cluster:
        file = self.folder / "scheduler.json"
        options = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
        self.start("scheduler", *options, "--scheduler-file", str(file))
        try:
            wait_until(file.exists)
            self.address = json.loads(file.read_text())["address"].removeprefix("tcp://")
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def start(self, *command: str, **settings: str) -> subprocess.Popen[bytes]:
        """A `dask` process whose workers can import the toy figure."""
        path = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
        process = subprocess.Popen(
            [sys.executable, "-m", "dask", *command],
            env={
                **os.environ,
                "PYTHONPATH": path,
                "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": str(self.allowed_failures),
                **settings,
            },
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.processes.append(process)
        return process

    def start_worker(self, *, nanny: bool = False, **settings: str) -> subprocess.Popen[bytes]:
        """A worker of one thread, with a nanny that starts it again after its death, or without."""
        options = ["--nthreads", "1", "--no-dashboard", *([] if nanny else ["--no-nanny"])]
        options += ["--local-directory", str(self.folder)]
        return self.start("worker", *options, self.address, **settings)

    def wait_for_workers(self, count: int) -> None:
        """Until so many workers are there."""
        from distributed import Client

        with Client(f"tcp://{self.address}", set_as_default=False) as client:
            client.wait_for_workers(count, timeout=MOST_SECONDS)

    def end(self) -> None:
        """End every process; a nanny takes its worker along when it is asked to end.

        The scheduler ends last: a worker that has lost it at that moment may wait for ever.
        """
        for kind in ("worker", "scheduler"):
            ending = [each for each in self.processes if kind in cast(list[str], each.args)]
            for process in ending:
                process.terminate()
            for process in ending:
                try:
                    process.wait(30)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()


def wait_until(true: Callable[[], bool]) -> None:
    """Look again and again."""
    deadline = time.monotonic() + MOST_SECONDS
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)
