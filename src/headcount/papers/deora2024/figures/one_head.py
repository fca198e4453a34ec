"""Beyond deora2024: its curves from zero are those of a single head with rescaled steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ....lab import COLOURS, Context, Figure, Finding, Measurement, register, threshold
from .curves import NOTES, RANGE, averages, by_heads, draw_curves, over_heads, scales, shared_legend
from .fig2 import COMMON
from .training_run import logarithmic, problem_of

if TYPE_CHECKING:
    import xarray as xr


def measure_one_head(config: dict[str, Any], context: Context) -> dict[str, Any]:
    """Losses of all H heads, each trained, and of one head with rescaled steps; how far apart."""
    from ....training import optimisers
    from ..reduction import single_head, trained

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


RUNS = {
    "gd-constant": "GD, constant step",
    "gd": "GD, step ~ sqrt H",
    "momentum": "momentum, step ~ sqrt H",
    "adam": "Adam, constant step",
}
ROUNDING = 1e-10
"""Relative error below which two losses count as equal up to rounding that training amplifies."""


def statistics(data: xr.Dataset) -> xr.Dataset:
    """Both losses and their relative difference: the geometric mean and range over trials."""
    import xarray as xr

    both = averages(data, ("loss_many", "loss_one"))
    return xr.merge([both, data["error"].max("seed").rename("worst_error")])


def verdicts(data: xr.Dataset) -> list[Finding]:
    """Losses and parameters agree to rounding, for every optimiser."""
    found = []
    for run, title in RUNS.items():
        error = np.max(over_heads(data, "largest_error", run), axis=1)
        claim = f"{title}: the loss of H heads is at every k that of one head with rescaled steps"
        found.append(threshold(claim, error, below=ROUNDING))
        apart = [np.max(over_heads(data, f"error_{block}", run), axis=1) for block in ("U", "W")]
        claim = f"{title}: so are all heads after the last step"
        found.append(threshold(claim, np.maximum(*apart), below=ROUNDING))
    return found


def plot(data: xr.Dataset, axes: Sequence[Any]) -> None:
    """Per optimiser: both losses, and their relative difference."""
    k = np.asarray(data["k"].values, dtype=float)
    for row, (run, title) in enumerate(RUNS.items()):
        left, right = axes[2 * row : 2 * row + 2]
        draw_curves(left, data, "loss_many", run, log=True)
        for H in data["H"].values:
            one = data["average_loss_one"].sel(run=run, H=H).values
            left.plot(k[::6], one[::6], ".", color="0.2", markersize=2.5, label="one head")
        left.set_ylabel("training loss")
        left.set_title(f"{title}: H heads, one head (dots)")
        for index, H in enumerate(data["H"].values):
            error = data["worst_error"].sel(run=run, H=H).values
            shown = np.where(error > 0, error, np.nan)
            right.plot(k, shown, color=COLOURS[index % len(COLOURS)])
        right.set_xscale("log")
        right.set_yscale("log")
        right.xaxis.set_minor_formatter("")
        right.set_xlabel("iteration k")
        right.set_ylabel("relative difference")
        right.set_title("largest over trials; gaps: no difference")
    shared_legend(axes, data.sizes["H"])


figure = register(
    Figure(
        id="deora2024/one-head",
        title="H heads from zero, and one head with rescaled steps: the same run",
        reference="[deora2024, App. G; not in the paper]",
        scales=scales(
            {**COMMON, "n_test": 0, "record_every": 1},
            {"heads": [4], "steps": 40},
            {"heads": [1, 4, 16], "steps": 300},
            {"heads": [1, 4, 16, 64], "steps": 1500},
        ),
        trials=by_heads(one_head, list(RUNS), model="deora2024"),
        statistics=statistics,
        verdicts=verdicts,
        plot=plot,
        layout=(4, 2),
        notes=NOTES,
        bands=RANGE,
    )
)
