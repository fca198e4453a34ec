"""One training run of a student on the teacher's labels [arda2026, Secs. 3.3 and 6.1]."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Int

from ....core import Array
from ....lab import Context, Measurement
from .problem import TrainingCheckpoint, label_seconds, sample_numbers

TRACE_POINTS = 200
"""Most losses of a trace that are kept; with mini-batches, full losses that are recorded."""


def measure_training(config: dict[str, Any], context: Context) -> dict[str, Any]:
    """Losses of the best, the last and the averaged iterate, and the thinned loss trace.

    min_loss is min over s < tau of the loss before step s, on all training samples; with
    mini-batches it is the smallest of the recorded full losses.
    """
    from ....training import TrainConfig, build, run_config

    chosen = TrainConfig.of(config)
    built = build(chosen)
    run = run_config(
        chosen,
        built=built,
        checkpoint=TrainingCheckpoint(context),
        progress=lambda done, total, loss: context.progress(done, total, loss=loss),
    )
    if run.diverged_at[0] >= 0:
        context.diverged(run.outcomes[0])
    if chosen.batch_size is None:
        steps = trace_steps(chosen.steps)
        losses, smallest = run.loss[0][steps], run.min_loss[0]
    else:
        steps, losses = run.recorded_steps[:-1], run.records["loss"][0][:-1]
        smallest = np.nanmin(losses)
    return {
        "min_loss": smallest,
        "final_loss": run.final_loss[0],
        "average_iterate_loss": run.average_loss[0],
        "mean_loss": np.mean(losses if chosen.batch_size else run.loss[0], dtype=np.float64),
        "mean_square_label": np.mean(built.y**2),
        "loss": losses,
        "step": steps,
    }


def trace_steps(steps: int) -> Int[Array, "points"]:
    """At most 200 steps 0..steps-1, evenly spread, first and last among them."""
    return np.unique(np.linspace(0, steps - 1, min(steps, TRACE_POINTS)).round().astype(int))


def step_seconds(n: int, T: int, d: int, m: int) -> float:
    """One fused float32 step on one thread: 3 ms at m = 8 to 46 ms at m = 256 for n = 4000."""
    return (1.5e-3 + 0.175e-3 * m) * (n / 4000) * (T / 16) * (0.5 + d / 16)


def _training_cost(config: dict[str, Any]) -> tuple[float, float]:
    n, data = config["batch_size"] or config["n"], config["data_options"]
    each = step_seconds(n, data["T"], data["d"], config["width"])
    seconds = 1.0 + 0.2 * label_seconds(config) + config["steps"] * max(each, 3e-5)
    return seconds, 3e8 + 24.0 * sample_numbers(config)


training = Measurement(
    name="arda2026-training",
    version=2,
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
