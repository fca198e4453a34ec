"""The short version of `make chaos`, and that its judge would notice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tools.chaos_bench import COMPLETE, SURPRISE, Bench, Lost

ROOT = Path(__file__).parents[2]


def test_one_fault_of_every_quick_kind_is_survived() -> None:
    """In a process of its own: sweeps are forked from it, and it has never started JAX."""
    run = subprocess.run(
        [sys.executable, "-m", "tools.chaos", "--short"],
        cwd=ROOT,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.splitlines()[-1] == "20 faults injected, 20 survived"


def test_a_wrong_claim_is_noticed(tmp_path: Path) -> None:
    bench = Bench(tmp_path, 0)
    store = bench.folder(1.0)
    claim = store.folder.with_name(f"{store.folder.name}.claim")
    for digest, failed in (("0" * 64, []), (bench.expected, ["m=8 seed=0"])):
        claim.write_text(json.dumps({"digest": digest, "failed": failed}))
        with pytest.raises(Lost, match="called itself complete"):
            bench.judge(store, COMPLETE)
    with pytest.raises(Lost, match="unknown error"):
        bench.judge(store, SURPRISE)
    wrong = store.read(bench.plan.trials[0].address)
    assert wrong is not None
    payload = {**wrong.payload, "error": wrong.payload["error"] * 2}
    store.write(bench.plan.trials[0].address, payload, wrong.record)
    with pytest.raises(Lost, match="numbers as expected: False"):
        bench.resume(store)
