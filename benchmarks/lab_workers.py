"""Two worker processes against one on the fig1 sweep, and what the engine adds to a trial.

Measured is the throughput of `headcount reproduce arda2026/fig1 --scale quick` in a fresh results
folder: trials per second of wall time, from the first submission to the last answer. The start of
the workers (imports, programs that all trials share) and all compiling are included. After it as
many seeds more run in the same workers: the throughput without start and compiling.

Wall time, because that is what a second worker is for: only a quiet machine with two cores gives a
true answer. The processor time of all workers means something on a busy one, too: two workers can
be at most 2 x (processor time of one worker) / (that of two) times as fast.
"""

from __future__ import annotations

import resource
import tempfile
from pathlib import Path
from typing import Any

from benchmarks._timing import in_new_process, target
from benchmarks.lab_cost import phases

TRIVIAL = 1000


def sweep_seconds(workers: int, scale: str, seeds: int | None) -> dict[str, float]:
    """Wall times of a fresh sweep and of one that follows in the same workers."""
    from headcount import lab

    figure = "arda2026/fig1"
    count = seeds or lab.figures[figure].scales[scale]["seeds"]
    wall = {}
    with tempfile.TemporaryDirectory() as out:
        place = lab.open_executor("processes", workers)
        for name, first in (("cold", 0), ("warm", count)):
            plan = lab.make_plan(figure, scale, seeds=range(first, first + count))
            sweep = lab.run_plan(plan, Path(out), executor=place)
            assert (sweep.run, sweep.failed) == (sweep.planned, 0)
            wall[name] = sweep.seconds
        place.close(gently=True)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {**wall, "processor": used.ru_utime + used.ru_stime, "trials": sweep.planned}


def run(scale: str = "quick", seeds: int | None = None) -> dict[str, Any]:
    """Both in turns, the better of two each; seeds: the scale's own number."""
    best: dict[int, dict[str, float]] = {}
    for _ in range(2):
        for workers in (1, 2):
            found = in_new_process(sweep_seconds, workers=workers, scale=scale, seeds=seeds)
            known = best.get(workers, found)
            best[workers] = {name: min(found[name], known[name]) for name in found}
    own = in_new_process(phases, trials=TRIVIAL, workers=0)
    gain = {name: best[1][name] / best[2][name] for name in ("cold", "warm", "processor")}
    overhead = 1e3 * own["wall seconds"] / TRIVIAL
    return {
        "name": "lab_workers",
        "rows": [{"workers": workers, **seconds} for workers, seconds in best.items()],
        "most that processor time allows": 2 * gain["processor"],
        "targets": [
            target("two workers over one, fig1, start and compiling", gain["cold"], at_least=1.8),
            target("two workers over one, fig1, after the start", gain["warm"], at_least=1.8),
            target("engine's ms per trial", overhead, at_most=20.0),
        ],
    }
