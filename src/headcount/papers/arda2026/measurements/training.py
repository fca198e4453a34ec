"""One training run of a student on the teacher's labels [arda2026, Secs. 3.3 and 6.1]."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import jax
import numpy as np
from jaxtyping import Int

from ....core import MEAN_SQUARED, Array, cast, precision
from ....lab import Context, Measurement
from .problem import TrainingCheckpoint, label_seconds, labelled

_TRACE_POINTS = 200


def measure_training(config: dict[str, Any], context: Context) -> dict[str, Any]:
    """Losses of the best, the last and the averaged iterate, and the thinned loss trace.

    min_loss is min over s < tau of the loss before step s, on all training samples; with
    mini-batches it is the smallest of the recorded full losses.
    """
    from ....models import PooledAttention, paired
    from ....training import omega, projgd, projsgd, train

    model = PooledAttention(config["d"], config["m"])
    x, y, _ = labelled(config)
    x, y = x[: config["n_train"]], y[: config["n_train"]]
    projection = omega(*config["rho"])
    batch = config["batch_size"]
    rule = projgd if batch is None else projsgd
    batched = {} if batch is None else {"batch_size": batch}
    run = train(
        model,
        paired(model, config["seed"]),
        x,
        y,
        rule=rule(config["eta"], projection, **batched),
        steps=config["steps"],
        record=() if batch is None else ("loss",),
        record_every=None if batch is None else max(1, config["steps"] // _TRACE_POINTS),
        keep="average",
        dtype=config["dtype"],
        checkpoint=TrainingCheckpoint(context),
        progress=lambda done, total, loss: context.progress(done, total, loss=loss),
    )
    if run.diverged_at[0] >= 0:
        context.diverged(run.outcomes[0])
    if batch is None:
        steps = trace_steps(config["steps"])
        losses, smallest = run.loss[0][steps], run.min_loss[0]
    else:
        steps, losses = run.recorded_steps[:-1], run.records["loss"][0][:-1]
        smallest = np.nanmin(losses)
    return {
        "min_loss": smallest,
        "final_loss": run.final_loss[0],
        "average_iterate_loss": _loss_at(model, run.average, x, y, config["dtype"]),
        "mean_loss": np.mean(losses if batch is not None else run.loss[0], dtype=np.float64),
        "mean_square_label": np.mean(y**2),
        "loss": losses,
        "step": steps,
    }


def trace_steps(steps: int) -> Int[Array, "points"]:
    """At most 200 steps 0..steps-1, evenly spread, first and last among them."""
    return np.unique(np.linspace(0, steps - 1, min(steps, _TRACE_POINTS)).round().astype(int))


def _loss_at(model: Any, params: Any, x: Array, y: Array, dtype: str) -> float:
    """The mean squared loss at the parameters of a single-seed run (leaves have a seed axis)."""
    with precision(dtype):
        point = cast(jax.tree.map(lambda leaf: leaf[0], params), dtype)
        f = _outputs(model, *x.shape[:2])(point, cast(x, dtype), cast(y, dtype))
    return float(np.mean((np.asarray(f, np.float64) - y) ** 2))


@lru_cache(maxsize=16)
def _outputs(model: Any, n: int, T: int) -> Callable[..., Array]:
    from ....training import gradient_path

    path = gradient_path(model, MEAN_SQUARED, n=n, T=T)
    return jax.jit(lambda params, x, y: path.outputs(params, path.prepare(x, y)))


def step_seconds(n: int, T: int, d: int, m: int) -> float:
    """One fused float32 step on one thread: 3 ms at m = 8 to 46 ms at m = 256 for n = 4000."""
    return (1.5e-3 + 0.175e-3 * m) * (n / 4000) * (T / 16) * (0.5 + d / 16)


def _training_cost(config: dict[str, Any]) -> tuple[float, float]:
    n = config["n_train"] if config["batch_size"] is None else config["batch_size"]
    each = step_seconds(n, config["T"], config["d"], config["m"])
    seconds = 1.0 + 0.2 * label_seconds(config) + config["steps"] * max(each, 3e-5)
    return seconds, 3e8 + 24.0 * config["n"] * config["T"] * config["d"]


training = Measurement(
    name="arda2026-training",
    version=1,
    function=measure_training,
    outputs={
        "min_loss": (),
        "final_loss": (),
        "average_iterate_loss": (),
        "mean_loss": (),
        "mean_square_label": (),
        "loss": ("step",),
        "step": ("step",),
    },
    estimate=_training_cost,
)
