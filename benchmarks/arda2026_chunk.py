"""Step time of arda2026 against the size of a chunk: what _CHUNK_ELEMENTS is chosen from."""

from __future__ import annotations

from typing import Any

from benchmarks._timing import in_new_process, interleaved, target
from benchmarks.arda2026_step import N, T, step_function

WIDTHS = (8, 16, 64, 256)
POWERS = range(14, 21)
CHOSEN = 15
"""log2 of _CHUNK_ELEMENTS in headcount.papers.arda2026.fast."""


def one_width(m: int) -> dict[str, Any]:
    """Milliseconds per step for chunks of 2^14 to 2^20 token-head pairs, in turns."""
    functions = {
        power: step_function(m, fused=True, chunk=min(N, max(1, 2**power // (T * m))))
        for power in POWERS
    }
    best = interleaved(functions, repeats=9)
    row: dict[str, Any] = {"m": m, **{f"2^{power}": 1e3 * best[power] for power in POWERS}}
    return {**row, "chosen_over_best": best[CHOSEN] / min(best.values())}


def run() -> dict[str, Any]:
    """A row of step times for every width."""
    rows = [in_new_process(one_width, m=m) for m in WIDTHS]
    worst = max(row["chosen_over_best"] for row in rows)
    return {
        "name": "arda2026_chunk",
        "setting": f"n={N}, T={T}, milliseconds of processor time per step",
        "chosen": f"2^{CHOSEN}",
        "widths": rows,
        "targets": [target("chosen chunk / best chunk", worst, at_most=1.1)],
    }
