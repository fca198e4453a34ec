"""One training run of a student on the teacher's labels [arda2026, Secs. 3.3 and 6.1]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from ....core import Array
from ....lab import Context, Measurement
from .problem import TrainingCheckpoint, label_seconds, sample_numbers

if TYPE_CHECKING:
    from ....training import Run

TRACE_POINTS = 200
"""Most losses of a trace that are kept; with mini-batches, full losses that are recorded."""


def measure_training(config: dict[str, Any], context: Context) -> dict[str, Any]:
    """Losses of the best, the last and the averaged iterate, and the thinned loss trace.

    min_loss is min over s < tau of the loss before step s, on all training samples; with
    mini-batches it is the smallest of the recorded full losses.
    """
    return _trained(
        [config],
        [context],
        checkpoint=TrainingCheckpoint(context),
        progress=lambda done, total, loss: context.progress(done, total, loss=loss),
    )[0]


def measure_trainings(
    configs: Sequence[dict[str, Any]], contexts: Sequence[Context]
) -> list[dict[str, Any]]:
    """`measure_training` of configurations that differ in their seed alone, in one program.

    The training loop goes through its seeds one after another, so that each is trained as alone.
    """
    if any({**config, "seeds": 0} != {**configs[0], "seeds": 0} for config in configs):
        raise ValueError("the configurations differ in more than their seeds")
    return _trained(configs, contexts)


def _trained(
    configs: Sequence[dict[str, Any]], contexts: Sequence[Context], **more: Any
) -> list[dict[str, Any]]:
    from ....training import TrainConfig, build, run_config

    chosen = TrainConfig.of({**configs[0], "seeds": [config["seeds"][0] for config in configs]})
    built = build(chosen)
    run = run_config(chosen.naming_seeds(), built=built, **more)
    batches = chosen.batch_size is not None
    return [
        _numbers(run, i, batches, built.y[i : i + 1], context) for i, context in enumerate(contexts)
    ]


def _numbers(
    run: Run, i: int, batches: bool, y: Float[Array, "1 n"], context: Context
) -> dict[str, Any]:
    """What is measured of the i-th seed of a run."""
    if run.diverged_at[i] >= 0:
        context.diverged(run.outcomes[i])
    if batches:
        steps, losses = run.recorded_steps[:-1], run.records["loss"][i][:-1]
        smallest = np.nanmin(losses)
    else:
        steps = trace_steps(run.loss.shape[-1])
        losses, smallest = run.loss[i][steps], run.min_loss[i]
    return {
        "min_loss": smallest,
        "final_loss": run.final_loss[i],
        "average_iterate_loss": run.average_loss[i],
        "mean_loss": np.mean(losses if batches else run.loss[i], dtype=np.float64),
        "mean_square_label": np.mean(y**2),
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
    seconds = 0.02 + 0.2 * label_seconds(config) + config["steps"] * max(each, 3e-5)
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
    batch=measure_trainings,
)
