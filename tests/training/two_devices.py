"""Run by test_devices.py in a process with two host devices: prints what it compares as JSON."""

from __future__ import annotations

import json
from dataclasses import replace

import jax
import numpy as np

from headcount import core, training
from headcount.training import _train


def compare(**changes: object) -> dict[str, object]:
    """One configuration trained on one and on two devices."""
    values = {
        "n": 24,
        "n_val": 6,
        "steps": 6,
        "width": 8,
        "dtype": "float64",
        "record": ("validation",),
    }
    config = training.TrainConfig.of({**values, **changes})
    shards: list[tuple[int, int]] = []
    original = _train._Trainer.__init__

    def noting(self: _train._Trainer, *arguments: object) -> None:
        original(self, *arguments)  # type: ignore[arg-type]
        x = self.problem.x
        shards.extend((x.nbytes, part.data.nbytes) for part in x.addressable_shards)

    _train._Trainer.__init__ = noting  # type: ignore[method-assign]
    try:
        split = training.run_config(config, devices=2)
    finally:
        _train._Trainer.__init__ = original  # type: ignore[method-assign]
    whole = training.run_config(config)
    leaves = zip(
        jax.tree.leaves(replace(split, seconds=0.0, settings={})),
        jax.tree.leaves(replace(whole, seconds=0.0, settings={})),
        strict=True,
    )
    gaps = [np.max(np.abs(a - b) / (1e-300 + np.max(np.abs(b)))) for a, b in leaves if np.size(b)]
    return {
        "gap": float(max(gaps)),
        "moved": float(np.abs(whole.loss[..., 0] - whole.loss[..., -1]).min()),
        "shards": shards,
        "devices": [split.settings["devices"], whole.settings["devices"]],
    }


def refusals() -> list[str]:
    """What cannot be split, in the words of the errors."""
    said = []
    for changes in ({"n": 25}, {"optimiser": "sgd", "batch_size": 4}):
        config = training.TrainConfig.of({"n": 24, "steps": 2, "width": 8, **changes})
        try:
            training.run_config(config, devices=2)
        except core.BadArgument as error:
            said.append(str(error))
    return said


if __name__ == "__main__":
    answers = {
        "arda2026": compare(seeds=(0, 1), optimiser="gd", keep=("average", "best")),
        "deora2024": compare(model="deora2024", chunk=5, optimiser="momentum", eta=0.1),
        "half-squared-sum": compare(
            model="wu2023", loss="half-squared-sum", optimiser="gd", eta=1e-3
        ),
    }
    print(json.dumps({"runs": answers, "refused": refusals()}))
