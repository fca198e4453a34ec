"""A finished run again: read from its file, or looked at with other recorders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from ..core import MEAN_SQUARED, Array, BadArgument, Loss, cast, loss_of, precision
from ..core._tree import named_leaves
from ._build import build_data, build_model
from ._config import config_in
from ._loop import Loop, Problem
from ._programs import programs
from ._recorders import Recorder
from ._rules import gd
from ._run import Run
from ._runfile import load_run, no_run

if TYPE_CHECKING:
    import xarray as xr

_SETS = {"initial": "initial", "final": "params", "average": "average", "best": "best"}
_NEEDED = ("seed", "recorded_step", "loss_trace", "final_loss", "diverged_at")


def read_run(path: str | Path) -> Run:
    """The run that `Run.save` wrote; a file of something else is a `BadArgument`."""
    stored = load_run(path)
    config = config_in(stored, path)
    model = build_model(config, build_data(config))
    sets = {field: _parameters(path, model, stored, label) for label, field in _SETS.items()}
    missing = [name for name in _NEEDED if name not in stored.variables]
    for label in ("initial", "final"):
        missing += [f"{label} parameters"] if sets[_SETS[label]] is None else []
    missing += ["seconds"] if "seconds" not in stored.attrs else []
    if missing:
        problem = f"was written by another version: without {', '.join(missing)}"
        raise BadArgument("run", str(path), problem, fix="train it again")
    seeds = tuple(int(seed) for seed in stored["seed"].values)
    if seeds != config.seeds or stored["loss_trace"].shape != (len(seeds), config.steps):
        problem = "holds other seeds or steps than its configuration says"
        raise BadArgument("run", str(path), problem, fix="train it again")
    recorded = [str(name) for name, v in stored.data_vars.items() if "recorded_step" in v.dims]
    return Run(
        settings={k: v for k, v in stored.attrs.items() if k != "seconds"},
        seeds=seeds,
        loss=stored["loss_trace"].values,
        final_loss=stored["final_loss"].values,
        average_loss=stored["average_loss"].values if "average_loss" in stored else None,
        traces={
            str(name).removesuffix("_trace"): v.values
            for name, v in stored.data_vars.items()
            if "iterate" in v.dims
        },
        recorded_steps=stored["recorded_step"].values,
        records={name: stored[name].values for name in recorded},
        diverged_at=stored["diverged_at"].values,
        seconds=float(stored.attrs["seconds"]),
        **sets,
    )


def _parameters(path: str | Path, model: Any, stored: xr.Dataset, label: str) -> Any:
    """One set of parameters in the model's own structure, or None where it was not kept."""
    found = gathered(model, {str(k): v.values for k, v in stored.data_vars.items()}, f"{label}_")
    shapes = jax.tree.leaves(model.shapes(), is_leaf=lambda leaf: type(leaf) is tuple)
    actual = [leaf.shape[1:] for leaf in jax.tree.leaves(found)]
    if found is not None and actual != shapes:
        raise no_run(path, f"its {label} parameters have the shapes {actual}, not {shapes}")
    return found


def gathered(model: Any, arrays: dict[str, Array], prefix: str) -> Any:
    """The arrays "prefix + block" as the model's parameters; None if one is missing."""
    shapes = model.shapes()
    leaves, structure = jax.tree.flatten(shapes, is_leaf=lambda leaf: type(leaf) is tuple)
    numbered = jax.tree.unflatten(structure, range(len(leaves)))
    ordered = [f"{prefix}{name}" for name in named_leaves(numbered)]
    if not ordered or any(name not in arrays for name in ordered):
        return None
    return jax.tree.unflatten(structure, [arrays[name] for name in ordered])


def replay(
    model: Any,
    initial: Any,
    x: Array,
    y: Array,
    iterates: Any,
    record: Sequence[Recorder],
    *,
    loss: Loss | str = MEAN_SQUARED,
    dtype: str = "float64",
    chunk: int | None = None,
) -> dict[str, Array]:
    """What recorders would have written at these iterates (first axis: iterate) of one seed."""
    with precision(dtype):
        loop = Loop(model, loss_of(loss), gd(1.0), len(y), x.shape[1], chunk, ())
        look = programs(loop, tuple(record), 1).snapshot
        key = np.asarray(jax.random.key_data(jax.random.key(0)))[None]
        one_seed = cast(jax.tree.map(lambda leaf: leaf[None], initial), dtype)
        problem = Problem(one_seed, cast(x, dtype), cast(y, dtype), key)
        count = len(next(iter(jax.tree.leaves(iterates))))
        found = []
        for k in range(count):
            params = cast(jax.tree.map(lambda leaf, k=k: leaf[k : k + 1], iterates), dtype)
            found.append(jax.device_get(look(problem, params)))
    return {name: np.concatenate([one[name] for one in found]) for name in found[0]}
