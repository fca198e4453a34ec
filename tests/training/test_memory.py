"""Training holds one copy of the data in the run's precision, and nothing else of its length."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks._timing import SINGLE_THREADED

ROOT = Path(__file__).resolve().parents[2]
CODE = (
    "import json, sys; from benchmarks.arda2026_growth import peak_memory\n"
    "print(json.dumps(peak_memory(*map(int, sys.argv[1:]))))"
)


def peak_memory(n: int, T: int, m: int) -> dict[str, Any]:
    """The peak of `train` in a fresh process, in megabytes beyond the input."""
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(n), str(T), str(m), "1"],
        cwd=ROOT,
        env={**os.environ, **SINGLE_THREADED},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def test_memory_grows_by_the_data_alone() -> None:
    small, large = peak_memory(2_000, 16, 16), peak_memory(300_000, 16, 16)
    assert large["finite"]
    data = large["data_float32_mb"] - small["data_float32_mb"]
    assert data > 150
    # The compiler's own memory varies by up to forty megabytes; a second copy would be `data`.
    assert large["train_mb"] - small["train_mb"] <= 1.5 * data


def test_long_sequences_fit() -> None:
    """T = 8,192 with m = 64: a chunk is one sample, 2 MiB per (T, m) array, not 134 MB for all."""
    short, long = peak_memory(64, 16, 64), peak_memory(64, 8192, 64)
    assert long["finite"]
    data = long["data_float32_mb"] - short["data_float32_mb"]
    assert long["train_mb"] - short["train_mb"] < data + 100
