"""A fine-tuning step of all-MiniLM-L6-v2 on 32 sentences, beside PyTorch where there is one.

PyTorch is no dependency: name a Python that has torch and transformers in HEADCOUNT_TORCH_PYTHON.
Both sides run in processes of their own, see the same batch, and take turns.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._timing import SINGLE_THREADED, target

TORCH_PYTHON = "HEADCOUNT_TORCH_PYTHON"
SIZE, REPEATS = 32, 12
TARGET = 0.8
"""Steps per second, relative to PyTorch's."""
_ROOT = Path(__file__).parents[1]


def ours() -> None:
    """Our side of the conversation that `_torch_finetuning` has; also run as a process."""
    import jax

    from headcount.data import find_checkpoint
    from headcount.data._tokens import Batch
    from headcount.models.text import load_checkpoint
    from headcount.training import adamw
    from headcount.training._finetuning import FineTuning

    folder = find_checkpoint("minilm").folder
    assert folder is not None
    model, params = load_checkpoint(folder, pooling="first")
    given = json.loads(sys.stdin.readline())
    x = np.stack([given["ids"], given["mask"]], axis=-1).astype(np.int32)
    batch = Batch(np.arange(len(x)), x, np.ones(len(x), np.float32))
    labels = np.array(given["labels"])
    if given["used_words_only"]:
        used, ranks = np.unique(x[..., 0], return_inverse=True)
        batch = batch._replace(x=np.stack([ranks.reshape(x.shape[:2]), x[..., 1]], -1, dtype="i4"))
        words = params.embedding.words[used]
        params = params._replace(embedding=params.embedding._replace(words=words))
    training = FineTuning(model, adamw(5e-6, batch_size=len(x)))
    state = training.start(params)
    for _ in sys.stdin:
        began, spent = time.perf_counter(), time.process_time()
        state, loss, _ = jax.block_until_ready(training.step(state, batch, labels))
        seconds = (time.perf_counter() - began, time.process_time() - spent)
        print(json.dumps([*seconds, float(loss)]), flush=True)


class Side:
    """One process of the comparison."""

    def __init__(self, command: list[str], threads: int, batch: dict[str, Any]) -> None:
        several = {name: v for name, v in os.environ.items() if name not in SINGLE_THREADED}
        several |= {"OMP_NUM_THREADS": str(threads), "JAX_PLATFORMS": "cpu"}
        environment = {**os.environ, **SINGLE_THREADED} if threads == 1 else several
        self.process = subprocess.Popen(
            command, cwd=_ROOT, env=environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        self._say(json.dumps(batch))
        self.wall, self.processor, self.losses = [], [], []

    def _say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def step(self) -> None:
        """One step; the first compiles or warms up."""
        self._say("step")
        assert self.process.stdout is not None
        wall, processor, loss = json.loads(self.process.stdout.readline())
        self.wall.append(wall)
        self.processor.append(processor)
        self.losses.append(loss)

    def close(self) -> None:
        """End the process."""
        self.process.communicate()


def a_batch(T: int) -> dict[str, Any]:
    """32 sentences of random words, the shorter half of them padded, as both sides take them."""
    rng = np.random.default_rng(0)
    lengths = np.where(np.arange(SIZE) < SIZE // 2, T, 3 * T // 4)
    mask = (np.arange(T) < lengths[:, None]).astype(int)
    ids = rng.integers(1000, 30000, (SIZE, T)) * mask
    labels = rng.integers(0, 2, SIZE)
    return {"ids": ids.tolist(), "mask": mask.tolist(), "labels": labels.tolist()}


def compared(T: int, threads: int) -> dict[str, Any]:
    """Least seconds of a step of every side at one length and number of threads."""
    from headcount.data import find_checkpoint

    batch, call = a_batch(T), "from benchmarks.text_finetuning import ours; ours()"
    own = [sys.executable, "-c", call]
    sides = {
        "ours": Side(own, threads, {**batch, "used_words_only": False}),
        "ours, used words only": Side(own, threads, {**batch, "used_words_only": True}),
    }
    torch = os.environ.get(TORCH_PYTHON)
    if torch:
        script = str(_ROOT / "benchmarks" / "_torch_finetuning.py")
        folder = str(find_checkpoint("minilm").folder)
        sides["PyTorch"] = Side([torch, script, folder, str(threads)], threads, batch)
    for _ in range(REPEATS):
        for side in sides.values():
            side.step()
    for side in sides.values():
        side.close()
    row: dict[str, Any] = {"T": T, "threads": threads}
    for name, side in sides.items():
        row[f"{name}: least wall s"] = min(side.wall[1:])
        row[f"{name}: least processor s"] = min(side.processor[1:])
    if torch:
        for kind in ("wall", "processor"):
            theirs = row[f"PyTorch: least {kind} s"]
            row[f"throughput by {kind} time"] = theirs / row[f"ours: least {kind} s"]
    return row


def run() -> dict[str, Any]:
    """Rows for two lengths, one and two threads; targets where PyTorch was at hand."""
    rows = [compared(T, threads) for T in (32, 64) for threads in (1, 2)]
    judged = {1: "throughput by processor time", 2: "throughput by wall time"}
    targets = [
        target(
            f"throughput / PyTorch's, T = {row['T']}, {row['threads']} threads",
            row[judged[row["threads"]]],
            at_least=TARGET,
        )
        for row in rows
        if judged[row["threads"]] in row
    ]
    missing = None if targets else f"set {TORCH_PYTHON} to compare with PyTorch"
    return {"name": "text_finetuning", "steps": rows, "note": missing, "targets": targets}
