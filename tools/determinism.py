"""The same trials computed in every way there is: what is bit-identical, what differs, by how much.

    PYTHONPATH=src:tests/lab:. python -m tools.determinism

writes the table of docs/determinism.md anew. Each way is a process of its own with its own number
of threads or devices; processes and Dask go through the lab as a sweep does.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from headcount import lab
from headcount.lab._executors import thread_settings

PAGE = Path(__file__).parents[1] / "docs" / "determinism.md"
MODELS: dict[str, dict[str, Any]] = {
    "arda2026": {"n": 1000, "width": 64, "steps": 60},
    "deora2024": {"n": 400, "width": 16, "steps": 60},
    "wu2023": {"n": 200, "width": 32, "steps": 30},
}
SEEDS = (0, 1)
ONE_THREAD = thread_settings()
TWO_THREADS = {
    "XLA_FLAGS": "",
    "PJRT_NPROC": "2",
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "2"),
}
TWO_DEVICES = {
    **ONE_THREAD,
    "XLA_FLAGS": f"{ONE_THREAD['XLA_FLAGS']} --xla_force_host_platform_device_count=2",
}
Numbers = dict[str, np.ndarray]


def configurations() -> list[dict[str, Any]]:
    """Every model in both precisions, with two seeds."""
    return [
        {"model": model, **sizes, "dtype": dtype, "seeds": [seed]}
        for model, sizes in MODELS.items()
        for dtype in ("float32", "float64")
        for seed in SEEDS
    ]


def train(config: dict[str, Any], devices: int | None = None) -> list[Numbers]:
    """The loss at every step and all final parameters, of each seed."""
    import jax

    from headcount import training

    run = training.run_config(training.TrainConfig.of(config), devices=devices)
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(run.params)]
    return [
        {
            "loss": run.loss[i],
            "step": np.arange(run.loss.shape[1]),
            "params": np.concatenate([leaf[i].ravel() for leaf in leaves]),
            "entry": np.arange(sum(leaf[i].size for leaf in leaves)),
        }
        for i in range(len(run.seeds))
    ]


def measure(config: dict[str, Any], context: lab.Context) -> Numbers:
    """One seed, as a trial of a sweep."""
    return train(config)[0]


measurement = lab.Measurement(
    "determinism",
    1,
    measure,
    {"loss": ("step",), "step": ("step",), "params": ("entry",), "entry": ("entry",)},
)


def through_the_lab(folder: Path, **where: Any) -> list[Numbers]:
    """All configurations as one sweep."""
    trials = [lab.Trial(measurement, c, {"k": k}) for k, c in enumerate(configurations())]
    figure = lab.figures["arda2026/fig1"]  # a plan belongs to a figure; this one is not drawn
    sweep = lab.run_plan(lab.Plan(figure, "smoke", (0,), {}, {}, tuple(trials)), folder, **where)
    assert not sweep.problems, sweep.problems
    store = lab.Store(folder)
    return [store.read(trial.address).payload for trial in trials]  # type: ignore[union-attr]


def in_a_process(settings: dict[str, str], way: str, folder: Path) -> list[Numbers]:
    """All configurations in a fresh process with these settings."""
    target = folder / f"{way}.npz"
    environment = {**os.environ, **settings, "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-m", "tools.determinism", way, str(target)]
    subprocess.run(command, env=environment, check=True)
    with np.load(target) as stored:
        return [
            {name: stored[f"{k}-{name}"] for name in ("loss", "params")}
            for k in range(len(configurations()))
        ]


def compute(way: str, target: str) -> None:
    """Inside such a process."""
    if way == "batched":
        pairs = [{**c, "seeds": list(SEEDS)} for c in configurations()[:: len(SEEDS)]]
        answers = [each for config in pairs for each in train(config)]
    else:
        devices = 2 if way == "devices" else None
        answers = [train(config, devices)[0] for config in configurations()]
    np.savez(target, **{f"{k}-{n}": v for k, each in enumerate(answers) for n, v in each.items()})


def over_dask(folder: Path) -> list[Numbers]:
    """Two Dask workers of one thread each."""
    from dask_cluster import Cluster

    (folder / "dask").mkdir()
    with Cluster(folder / "dask") as cluster:
        for _ in range(2):
            cluster.start_worker(PYTHONPATH=os.pathsep.join(sys.path))
        cluster.wait_for_workers(2)
        return through_the_lab(folder / "over-dask", executor=f"dask://{cluster.address}")


def gap(a: np.ndarray, b: np.ndarray) -> float:
    """The largest difference, relative to the largest entry."""
    return float(np.max(np.abs(a.astype(float) - b)) / np.max(np.abs(b)))


def verdict(way: list[Numbers], reference: list[Numbers], dtype: str, model: str) -> str:
    """One cell of the table."""
    chosen = [
        (a, b)
        for a, b, config in zip(way, reference, configurations(), strict=True)
        if (config["model"], config["dtype"]) == (model, dtype)
    ]
    if all(a[n].tobytes() == b[n].tobytes() for a, b in chosen for n in ("loss", "params")):
        return "same bits"
    loss = max(gap(a["loss"], b["loss"]) for a, b in chosen)
    params = max(gap(a["params"], b["params"]) for a, b in chosen)
    return f"loss {loss:.0e}, parameters {params:.0e}"


def main() -> None:
    """Compute everything, write the table."""
    os.environ.update(ONE_THREAD)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        reference = in_a_process(ONE_THREAD, "alone", folder)
        ways = {
            "the same again, in a new process": in_a_process(ONE_THREAD, "again", folder),
            "a sweep with two worker processes": through_the_lab(folder / "processes", workers=2),
            "a sweep over Dask, two workers": over_dask(folder),
            "two seeds together in one program": in_a_process(ONE_THREAD, "batched", folder),
            "two threads": in_a_process(TWO_THREADS, "threads", folder),
            "two devices, half of the samples each": in_a_process(TWO_DEVICES, "devices", folder),
        }
    cases = [(model, dtype) for model in MODELS for dtype in ("float32", "float64")]
    head = ["against alone, one thread", *(f"{model} {dtype}" for model, dtype in cases)]
    rows = [head, ["---"] * len(head)]
    for way, numbers in ways.items():
        rows.append([way, *(verdict(numbers, reference, dtype, model) for model, dtype in cases)])
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    text = PAGE.read_text()
    fresh = re.sub(
        r"(?s)(<!-- table -->\n).*?(<!-- end -->)", lambda m: m[1] + table + "\n" + m[2], text
    )
    PAGE.write_text(fresh)
    print(table)
    print(json.dumps(lab._record.versions()))


if __name__ == "__main__":
    from tools import determinism  # workers find the measurement by this name, not as __main__

    if len(sys.argv) == 3:
        determinism.compute(*sys.argv[1:])
    else:
        determinism.main()
