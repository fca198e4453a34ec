"""H equal heads beside one head with rescaled steps: the same run [not in the paper]."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....lab import Context, Measurement
from .runs import logarithmic, problem_of


def measure_one_head(config: dict[str, Any], context: Context) -> dict[str, Any]:
    """Losses of all H heads, each trained, and of one head with rescaled steps; how far apart."""
    from ....training import optimisers
    from ..one_head import single_head, trained

    chosen, built = problem_of(config)
    H, options = chosen.width, config["rule_options"]
    usual = optimisers[chosen.optimiser](chosen.step_size, **options)
    many = trained(built, built.model, built.initial, usual, chosen)
    context.progress(1, 2)
    one = single_head(built, chosen, options)
    theirs, own = (np.append(run.loss[0], run.final_loss[0]) for run in (many, one))
    if max(many.diverged_at[0], one.diverged_at[0]) >= 0:
        context.diverged(f"{many.outcomes[0]}; one head: {one.outcomes[0]}")
    heads, head = many.parameters(), one.parameters()
    k = np.arange(len(own))[1:][logarithmic(np.arange(len(own))) - 1]
    error = np.abs(theirs - own) / own
    return {
        "loss_many": theirs[k],
        "loss_one": own[k],
        "error": error[k],
        "largest_error": np.max(error),
        "error_U": _apart(math.sqrt(H) * heads.U, head.U),
        "error_W": _apart(heads.W, head.W),
        "k": k,
    }


def _apart(heads: Any, head: Any) -> float:
    """The largest difference of any head's entry to that of the one head, by its largest entry."""
    return float(np.max(np.abs(heads - head)) / np.max(np.abs(head)))


def _cost(config: dict[str, Any]) -> tuple[float, float]:
    numbers = config["width"] * config["n"] * config["data_options"]["T"] ** 2
    return 0.05 + config["steps"] * (5e-5 + 8e-9 * numbers), 4e8


one_head = Measurement(
    name="deora2024-one-head",
    version=1,
    function=measure_one_head,
    outputs={
        **dict.fromkeys(("loss_many", "loss_one", "error"), ("k",)),
        **dict.fromkeys(("largest_error", "error_U", "error_W"), ()),
        "k": ("k",),
    },
    estimate=_cost,
)
