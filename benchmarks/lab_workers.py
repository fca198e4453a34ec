"""Two worker processes against one on the fig1 sweep, and what the engine adds to a trial.

Wall time, because that is what a second worker is for: only a quiet machine gives a true answer.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from benchmarks._timing import in_new_process, target
from benchmarks.lab_cost import phases

TRIVIAL = 1000


def sweep_seconds(workers: int, scale: str, seeds: int) -> float:
    """Wall time of a fresh sweep, the start of the workers included."""
    from headcount import lab

    plan = lab.make_plan("arda2026/fig1", scale, seeds=range(seeds))
    with tempfile.TemporaryDirectory() as out:
        sweep = lab.run_plan(plan, Path(out), workers=workers)
        assert sweep.run == sweep.planned
        return sweep.seconds


def run(scale: str = "quick", seeds: int = 6) -> dict[str, Any]:
    """Both in turns, the better of two each."""
    seconds = {1: float("inf"), 2: float("inf")}
    for _ in range(2):
        for workers in seconds:
            wall = in_new_process(sweep_seconds, workers=workers, scale=scale, seeds=seeds)
            seconds[workers] = min(seconds[workers], wall)
    own = in_new_process(phases, trials=TRIVIAL, workers=0)
    gain = seconds[1] / seconds[2]
    overhead = 1e3 * own["wall seconds"] / TRIVIAL
    return {
        "name": "lab_workers",
        "seconds with one worker": seconds[1],
        "seconds with two workers": seconds[2],
        "targets": [
            target("throughput of two workers over one, fig1", gain, at_least=1.8),
            target("engine's ms per trial", overhead, at_most=20.0),
        ],
    }
