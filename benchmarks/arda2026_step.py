"""One ProjGD step of arda2026: the fused path against automatic differentiation and the machine."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from benchmarks._timing import in_new_process, interleaved, start_process, target

N, T, D = 4000, 16, 8
WIDTHS = (16, 64, 256)
GEMM = 1024


def step_function(m: int, *, fused: bool, n: int = N, T: int = T, chunk: int | None = None) -> Any:
    """A compiled step (gradient, update, projection) without arguments, ready to be timed."""
    import jax
    import numpy as np

    from headcount.core import MEAN_SQUARED, cast
    from headcount.papers.arda2026 import PooledAttention, omega, paired
    from headcount.training import gradient_path, naive_path

    model = PooledAttention(D, m)
    rng = np.random.default_rng(0)
    start = cast(paired(model, 0), "float32")
    x, y = cast((rng.normal(size=(n, T, D)) / np.sqrt(D), rng.normal(size=n)), "float32")
    if fused:
        path = gradient_path(model, MEAN_SQUARED, n=n, T=T, chunk=chunk)
    else:
        path = naive_path(model, MEAN_SQUARED)
    data = jax.jit(path.prepare)(x, y)
    projection = omega(1.0, 1.0, 1.0)

    @jax.jit
    def step(params: Any, data: Any) -> Any:
        loss, gradient = path.loss_and_gradient(params, data)
        moved = jax.tree.map(lambda p, g: p - 0.1 * g, params, gradient)
        return projection(moved, start), loss

    return lambda: jax.block_until_ready(step(start, data))


def gemm_function() -> Callable[[], Any]:
    """A square matrix product of 1024, the measure of the machine's peak."""
    import jax
    import jax.numpy as jnp

    a = jax.random.normal(jax.random.key(0), (GEMM, GEMM), jnp.float32)
    product = jax.jit(jnp.matmul)
    return lambda: jax.block_until_ready(product(a, a))


def flops(m: int) -> int:
    """n m 2 (2 d^2 + 4 T d): the products G, z, v and the two of the gradient, and no more."""
    return N * m * 2 * (2 * D**2 + 4 * T * D)


def one_width(m: int) -> dict[str, Any]:
    """Fused, naive and the matrix product, in turns."""
    functions = {
        "fused": step_function(m, fused=True),
        "naive": step_function(m, fused=False),
        "gemm": gemm_function(),
    }
    best = interleaved(functions, repeats=9)
    peak = 2 * GEMM**3 / best["gemm"]
    return {
        "m": m,
        "fused_ms": 1e3 * best["fused"],
        "naive_ms": 1e3 * best["naive"],
        "speedup": best["naive"] / best["fused"],
        "peak_gflops": peak / 1e9,
    }


def throughput(m: int, seconds: float) -> float:
    """Steps per second of wall clock, after a line on stdin gives the start."""
    step = step_function(m, fused=True)
    step()
    print("ready", flush=True)
    sys.stdin.readline()
    began, done = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        step()
        done += 1
    return done / (time.perf_counter() - began)


def processes_together(count: int, m: int, seconds: float) -> float:
    """The summed throughput of `count` processes that start at the same moment."""
    workers = [start_process(throughput, m=m, seconds=seconds) for _ in range(count)]
    for worker in workers:
        assert worker.stdout is not None
        worker.stdout.readline()
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    return sum(float(worker.communicate()[0].split()[-1]) for worker in workers)


def run() -> dict[str, Any]:
    """Step times at three widths, and two processes side by side."""
    rows = [in_new_process(one_width, m=m) for m in WIDTHS]
    peak = max(row["peak_gflops"] for row in rows)
    for row in rows:
        row["share_of_peak"] = flops(row["m"]) / (row["fused_ms"] * 1e6) / peak
    # In turns, and the best of each: what else runs on the machine hits both alike.
    pairs = [[processes_together(count, 256, 3.0) for count in (1, 2)] for _ in range(3)]
    one, two = (max(column) for column in zip(*pairs, strict=True))
    widest = rows[-1]
    return {
        "name": "arda2026_step",
        "setting": f"ProjGD, n={N}, T={T}, d={D}, float32, one thread, processor time",
        "peak_gflops": peak,
        "widths": rows,
        "two_processes": {
            "steps_per_second_one": one,
            "steps_per_second_two": two,
        },
        "targets": [
            target("naive / fused at m=256", widest["speedup"], at_least=3.3, aim=5.0),
            target("share of peak at m=256", widest["share_of_peak"], at_least=0.25, aim=0.4),
            target("two processes / one", two / one, at_least=1.8),
        ],
    }
