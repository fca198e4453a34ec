"""A kernel takes no more memory than its plan says, by what Linux counts for a fresh process."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from benchmarks._timing import SINGLE_THREADED

RESET = Path("/proc/self/clear_refs")
"""Writing 5 sets the peak of the process back to what it holds now."""
CASES: dict[str, tuple[int, int | None]] = {
    "wide": (1500, None), "wide, total": (2500, None), "recomputed": (2500, 90_000_000),
    "positions": (700, None), "ids": (400, None),
}  # fmt: skip
"""Samples, and the limit that is given."""


def held(kind: str) -> int:
    """Bytes that this process holds (VmRSS), or has held at most (VmHWM)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(kind)) * 1024


def measured() -> None:
    """For every case the plan's peak and the memory taken, as one line of JSON."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    from headcount.kernels import ntk, plan_ntk

    rng = np.random.default_rng(0)
    a, b, E = (rng.normal(size=s) for s in ((8, 128), (128, 128), (50, 16)))

    def wide(p: Any, x: Any) -> Any:
        return jnp.tanh(jnp.tanh(x @ p["a"]) @ p["b"] + p["c"]).sum()

    def tokens(p: Any, x: Any) -> Any:
        h = jnp.tanh(x @ p["a"])
        return jnp.tanh(jax.nn.softmax(h @ h.T) @ h @ p["b"]).mean(axis=0)[:2]

    def table(p: Any, ids: Any) -> Any:
        return jnp.tanh(p["E"][ids] @ p["b"][:16]).sum()

    found = {}
    for name, (n, limit) in CASES.items():
        f, params, x = {
            "positions": (tokens, {"a": a, "b": b}, rng.normal(size=(n, 6, 8))),
            "ids": (table, {"E": E, "b": b}, rng.integers(0, 50, (n, 12))),
        }.get(name, (wide, {"a": a, "b": b, "c": b[0]}, rng.normal(size=(n, 8))))
        options: dict[str, Any] = {"blocks": "each" if name == "wide" else "total"}
        options |= {} if limit is None else {"memory_limit": limit}
        plan = plan_ntk(f, params, x, **options)
        ntk(f, params, x[: plan.chunk], blocks="total")  # compiles what the large one will run
        gc.collect()
        RESET.write_text("5")
        before = held("VmRSS")
        ntk(f, params, x, **options)
        found[name] = (plan.peak, held("VmHWM") - before)
    print(json.dumps(found))


@pytest.mark.skipif(not os.access(RESET, os.W_OK), reason="needs Linux's account of a process")
def test_no_kernel_takes_more_than_its_plan() -> None:
    root = Path(__file__).resolve().parents[2]
    code = "from tests.kernels.test_plan_memory import measured; measured()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=root,
        env={**os.environ, **SINGLE_THREADED},
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout.splitlines()[-1])
    assert found.keys() == CASES.keys()
    for name, (planned, taken) in found.items():
        assert taken <= 1.1 * planned, (name, planned, taken)
        assert planned > 20_000_000, "too small to tell"
