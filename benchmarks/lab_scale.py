"""1,000,000 trials on 1,000 workers, simulated from the measured costs of one client.

The client hands over and takes back one trial at a time, in `CLIENT_MS` of its own time (measured
by `lab_cost`); at most `window` trials are with the workers or wait there. Everything else is in
the trials' own time, which varies by a factor of two.
"""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np

from benchmarks._timing import target

TRIALS, WORKERS, PER_WORKER = 1_000_000, 1000, 4
CLIENT_MS = 0.34
WORKER_MS = 1.2
DEATHS_PER_WORKER_HOUR = 0.1


def simulate(seconds: float, trials: int, workers: int, window: int) -> dict[str, float]:
    """Wall time and how busy the workers are, when trials take `seconds` on average."""
    draw = np.random.default_rng(0)
    durations = seconds * draw.uniform(2 / 3, 4 / 3, size=trials) + 1e-3 * WORKER_MS
    client = 1e-3 * CLIENT_MS
    free = [0.0] * workers
    answers: list[float] = []
    now = busy = 0.0
    repeated = 0
    mortality = DEATHS_PER_WORKER_HOUR / 3600
    for duration in durations:
        if len(answers) >= window:
            now = max(now, heapq.heappop(answers))
        now += client
        began = max(now, heapq.heappop(free))
        if draw.random() < duration * mortality:  # the worker dies half-way; another begins anew
            repeated += 1
            began += duration / 2
            busy += duration / 2
        heapq.heappush(free, began + duration)
        heapq.heappush(answers, began + duration)
        busy += duration
    wall = max(free)
    return {
        "seconds per trial": seconds,
        "hours": wall / 3600,
        "workers busy": busy / (wall * workers),
        "trials run again": repeated,
        "client busy": trials * client / wall,
    }


def run() -> dict[str, Any]:
    """From trials that are too short for one client to those for which it does not matter."""
    rows = [
        simulate(seconds, TRIALS, WORKERS, PER_WORKER * WORKERS) for seconds in (0.1, 1.0, 10.0)
    ]
    return {
        "name": "lab_scale",
        "rows": rows,
        "targets": [target("workers busy at 1 s per trial", rows[1]["workers busy"], at_least=0.9)],
    }
