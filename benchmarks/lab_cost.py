"""What the lab itself costs: trials that compute nothing, from a thousand to a hundred thousand.

`python -m benchmarks.lab_cost 100000 [inline]` measures one size in one process. Processor time,
so that it also means something on a busy machine; children (workers) are not counted.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._timing import in_new_process, peak_bytes, slope, target
from headcount.report._tables import status_rows

SIZES = (1000, 3000, 10000)
_WIDTHS = 10


def measure(config: dict[str, Any], context: Any) -> dict[str, Any]:
    """Nothing to compute."""
    return {"value": 1.0 / config["m"] + 1e-3 * np.sin(config["seed"])}


def make_figure(seeds: int) -> Any:
    """A figure with ten widths and so many seeds."""
    from headcount import lab

    measurement = lab.Measurement("trivial", 1, measure, {"value": ()}, lambda config: (1e-3, 1e3))

    def trials(settings: Mapping[str, Any], chosen: Sequence[int], options: Any) -> list[Any]:
        return [
            lab.Trial(measurement, {"m": m, "seed": seed}, {"m": m, "seed": seed}, f"m={m}")
            for m in range(1, _WIDTHS + 1)
            for seed in chosen
        ]

    return lab.Figure(
        id="bench/trivial",
        title="Nothing",
        reference="-",
        scales={scale: {"seeds": seeds} for scale in lab.SCALES},
        trials=trials,
        statistics=lambda data: lab.over_seeds(data["value"]),
        verdicts=lambda data: [],
        plot=lambda data, axes: None,
    )


def phases(trials: int, workers: int, folder: str | None = None) -> dict[str, Any]:
    """Processor seconds of this process for each phase, in a fresh folder."""
    from headcount import lab, report

    seconds: dict[str, float] = {}

    def timed(name: str, function: Any) -> Any:
        began = time.process_time()
        result = function()
        seconds[name] = time.process_time() - began
        return result

    with tempfile.TemporaryDirectory(dir=folder) as out:
        where = Path(out)
        figure = make_figure(trials // _WIDTHS)
        began = time.monotonic()
        plan = timed("plan", lambda: lab.make_plan(figure))
        sweep = timed("sweep", lambda: lab.run_plan(plan, where, workers=workers))
        wall = time.monotonic() - began
        assert sweep.failed == 0
        timed("first collect", lambda: lab.collect(plan, sweep.store))
        timed("status", lambda: status_rows(lab.Store(where), print))

        def reproduce() -> None:
            again = lab.run_plan(lab.make_plan(figure), where, workers=0)
            assert again.cached == again.planned
            report.write_files(lab.collect(plan, again.store), again.store)

        timed("cached reproduce", reproduce)
        index = sum(path.stat().st_size for path in (where / "index").iterdir())
        files = sum(1 for _ in where.rglob("*.h5"))
    return {
        "trials": trials,
        "workers": workers,
        **seconds,
        "sweep ms per trial": 1e3 * seconds["sweep"] / trials,
        "wall seconds": wall,
        "index bytes": index,
        "files": files,
        "peak bytes": peak_bytes(),
    }


def run() -> dict[str, Any]:
    """Parent and one worker; the growth in the number of trials."""
    rows = [in_new_process(phases, trials=size, workers=1) for size in SIZES]
    largest = rows[-1]
    growth = {
        name: slope(SIZES, [row[name] for row in rows])
        for name in ("plan", "sweep", "first collect", "status", "cached reproduce")
    }
    return {
        "name": "lab_cost",
        "rows": rows,
        "growth": growth,
        "targets": [
            target("parent ms per trial at 10,000", largest["sweep ms per trial"], at_most=5.0),
            target("status at 10,000, s", largest["status"], at_most=5.0),
            target("cached reproduce at 10,000, s", largest["cached reproduce"], at_most=5.0),
            target("growth of the parent's time", growth["sweep"], at_most=1.15),
        ],
    }


if __name__ == "__main__":
    print(json.dumps(phases(int(sys.argv[1]), 0 if "inline" in sys.argv else 1)))
