"""The iterates of an audited run: read from a finished run that holds them all, or trained."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from ..training import Run, TrainConfig, run_config
from ..training._build import Built
from ..training._stored import gathered
from ._subject import Progress

HOW = "train with --dtype float64 --record iterates --record-every 1"


def stored_iterates(
    run: Run | None, seed: int, config: TrainConfig, built: Built
) -> tuple[Any, str]:
    """Every iterate of the seed in `run` (first axis: step) or None, and a note on it.

    `built` is this one seed: a run that starts elsewhere is not the run of `config`.
    """
    if run is None:
        return None, ""
    reason = _missing(run, seed, config, built)
    if reason:
        return None, f"{reason}: trained again from its configuration"
    return _path(run, seed, built), "nothing was trained: every iterate is in the run"


def iterates_of(
    config: TrainConfig,
    built: Built,
    *,
    run: Run | None = None,
    progress: Progress | None = None,
) -> tuple[Any, str]:
    """Every iterate of the one seed of `config`, and a note where `run` was given.

    `config` records them: record=("iterates",), record_every=1.
    """
    (seed,) = config.seeds
    path, note = stored_iterates(run, seed, config, built)
    if path is None:
        path = _path(run_config(config, built=built, progress=progress), seed, built)
    return path, note


def _path(run: Run, seed: int, built: Built) -> Any:
    """The recorded iterates as the model's parameters; None if they were not recorded."""
    index = run.seeds.index(seed)
    records = {name: v if run.single else v[index] for name, v in run.records.items()}
    return gathered(built.model, records, "iterate_")


def _missing(run: Run, seed: int, config: TrainConfig, built: Built) -> str:
    """Why a run is not enough; "" if it is."""
    if seed not in run.seeds:
        return f"the run has no seed {seed}"
    if run.loss.dtype != np.float64:
        return f"the run is in {run.loss.dtype} ({HOW})"
    path = _path(run, seed, built)
    if path is None or not np.array_equal(run.recorded_steps, np.arange(config.steps + 1)):
        return f"the run does not hold the iterate of every step ({HOW})"
    pairs = zip(jax.tree.leaves(path), jax.tree.leaves(built.initial), strict=True)
    if not all(np.array_equal(leaf[0], first[0]) for leaf, first in pairs):
        return "the run starts elsewhere than its configuration says"
    return ""
