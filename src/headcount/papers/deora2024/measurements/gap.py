"""Training loss, test loss and their difference after K steps."""

from __future__ import annotations

from typing import Any

from ....lab import Context, Measurement
from .runs import problem_of


def measure_gap(config: dict[str, Any], context: Context) -> dict[str, Any]:
    """One run, looked at after its last step only."""
    from ....training import run_config

    chosen, built = problem_of({**config, "record": ["validation"], "record_every": None})
    run = run_config(
        chosen,
        built=built,
        progress=lambda done, total, loss: context.progress(done, total, loss=loss),
    )
    if run.diverged_at[0] >= 0:
        context.diverged(run.outcomes[0])
    test = run.records["validation_loss"][0, -1]
    train = run.final_loss[0]
    return {"train_loss": train, "test_loss": test, "gap": test - train}


def _cost(config: dict[str, Any]) -> tuple[float, float]:
    data = config["data_options"]
    return 0.05 + config["steps"] * (2e-5 + 5e-9 * config["n"] * data["T"] ** 2), 4e8


gap = Measurement(
    name="deora2024-gap",
    version=1,
    function=measure_gap,
    outputs={"train_loss": (), "test_loss": (), "gap": ()},
    estimate=_cost,
)
