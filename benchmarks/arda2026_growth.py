"""How time and memory of an arda2026 step grow with n, m and T."""

from __future__ import annotations

from typing import Any

from benchmarks._timing import in_new_process, interleaved, peak_bytes, slope, target
from benchmarks.arda2026_step import step_function

BASE = {"n": 2000, "m": 64, "T": 16}
SIZES = {"n": (2000, 4000, 8000, 16000), "m": (64, 128, 256, 512), "T": (16, 32, 64, 128)}


def growth(axis: str) -> dict[str, Any]:
    """Step times along one axis, and their slope in the log-log plot."""
    sizes = SIZES[axis]
    functions = {size: step_function(fused=True, **{**BASE, axis: size}) for size in sizes}
    best = interleaved(functions)
    times = [best[size] for size in sizes]
    return {
        "axis": axis,
        "sizes": " ".join(map(str, sizes)),
        "milliseconds": " ".join(f"{1e3 * t:.1f}" for t in times),
        "slope": slope(sizes, times),
    }


def peak_memory(n: int, T: int, m: int, steps: int = 2) -> dict[str, Any]:
    """Megabytes at the peak of `train` beyond the process before it, the input included there."""
    import numpy as np

    from headcount.papers.arda2026 import PooledAttention, omega, paired
    from headcount.training import projgd, train

    model = PooledAttention(8, m)
    rng = np.random.default_rng(0)
    x = np.empty((n, T, 8))
    for sample in x:
        sample[:] = rng.uniform(-0.5, 0.5, size=sample.shape)
    y = rng.normal(size=n)
    before = peak_bytes()
    run = train(model, paired(model, 0), x, y, rule=projgd(0.1, omega(1, 1, 1)), steps=steps)
    after = peak_bytes()
    return {
        "n": n,
        "T": T,
        "m": m,
        "data_float32_mb": x.size * 4 / 1e6,
        "train_mb": (after - before) / 1e6,
        "finite": bool(np.all(np.isfinite(run.loss))),
    }


def run() -> dict[str, Any]:
    """Slopes of time, and memory at n = 4,000 and 400,000 and at T = 8,192."""
    slopes = [in_new_process(growth, axis=axis) for axis in SIZES]
    shapes = [(4_000, 16, 16), (400_000, 16, 16), (256, 8192, 64)]
    memory = [in_new_process(peak_memory, n=n, T=T, m=m) for n, T, m in shapes]
    small, large = memory[0], memory[1]
    grown = large["train_mb"] - small["train_mb"]
    added = large["data_float32_mb"] - small["data_float32_mb"]
    times = [
        target(f"slope of time in {row['axis']}", row["slope"], at_least=0.85, at_most=1.10)
        for row in slopes
    ]
    return {
        "name": "arda2026_growth",
        "slopes": slopes,
        "memory": memory,
        "targets": [*times, target("growth of memory / of data", grown / added, at_most=1.1)],
    }
