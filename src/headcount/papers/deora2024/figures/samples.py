"""Beyond deora2024: test loss and generalisation gap against n after K = n steps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ....lab import (
    Context,
    Figure,
    Finding,
    Measurement,
    Trial,
    draw_interval,
    draw_power_law,
    draw_reference_slope,
    fitted_exponent,
    log_log,
    monotone,
    over_seeds,
    power_law,
    register,
    threshold,
)
from .curves import DM1_DEFAULTS, DM2_DEFAULTS, points
from .training_run import problem_of, run_config

if TYPE_CHECKING:
    import xarray as xr


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


DATA = {"dm1": ("DM1, tokenised mixture", DM1_DEFAULTS), "dm2": ("DM2, planted", DM2_DEFAULTS)}
NAMES = {"train_loss": "training loss", "test_loss": "test loss", "gap": "gap"}
AT_LEAST_ONE = (-math.inf, -0.85)
"""Slopes that count as "falls at least like 1/n"."""


def trials(
    settings: Mapping[str, Any], seeds: Sequence[int], options: Mapping[str, str]
) -> list[Trial]:
    """GD on n samples for K = n steps, eta = 1 on DM1 and sqrt(H) on DM2, as in Figs. 2 and 4."""
    return [
        Trial(
            gap,
            run_config(
                {**settings, "n": n, "steps": n, "record_every": 1},
                width=settings["H"],
                seeds=[seed],
                optimiser="gd",
                eta=settings["step_constant"] * (math.sqrt(settings["H"]) if data == "dm2" else 1),
                data=data,
                data_options=law,
            ),
            {"data": data, "n": n, "seed": seed},
            f"{data} n={n}",
        )
        for data, (_, law) in DATA.items()
        for n in settings["samples"]
        for seed in seeds
    ]


def statistics(data: xr.Dataset) -> xr.Dataset:
    """Means with intervals, and power laws in n."""
    import xarray as xr

    parts = [over_seeds(data[name]) for name in NAMES]
    return xr.merge([*parts, *(power_law(data[name], "n") for name in NAMES)])


def verdicts(data: xr.Dataset) -> list[Finding]:
    """Corollary 5 at K = n: losses and gap fall like 1/n, up to logarithms."""
    n, found = points(data, "n"), []
    for law, (title, _) in DATA.items():
        here = data.sel(data=law)
        own = {name: here[name].transpose("seed", "n").values for name in NAMES}
        for name in ("train_loss", "test_loss"):
            claim = f"{title}: the {NAMES[name]} at K = n falls at least like 1/n"
            found.append(fitted_exponent(claim, here, name, AT_LEAST_ONE))
        claim = f"{title}: the test loss at K = n decreases with n"
        found.append(monotone(claim, n, own["test_loss"], "decreasing"))
        claim = f"{title}: the gap is positive at n = {n[0]:g}"
        found.append(threshold(claim, own["gap"][:, 0], above=0.0))
        claim = f"{title}: the gap at K = n falls at least like 1/n"
        found.append(fitted_exponent(claim, here, "gap", AT_LEAST_ONE))
    return found


def plot(data: xr.Dataset, axes: Sequence[Any]) -> None:
    """Losses and gap against n for both data models."""
    for ax, (law, (title, _)) in zip(axes, DATA.items(), strict=True):
        own = data.sel(data=law)
        for index, (name, label) in enumerate(NAMES.items()):
            # A label with an underscore in front stays out of the legend; the fit's has it all.
            place = (index, len(NAMES))
            draw_interval(ax, own, f"mean_{name}", "n", label="_points", index=index, beside=place)
            draw_power_law(ax, own, name, "n", label=label, index=index)
        first = float(own["mean_test_loss"].values[0])
        draw_reference_slope(ax, data["n"].values, first, -1, "predicted: slope -1")
        log_log(ax, "samples n = steps K", "loss")
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.25), frameon=False)
        ax.set_title(title)
        shown = [int(value) for value in data["n"].values]
        ax.set_xticks(shown, [str(value) for value in shown])
        ax.set_xticks([], minor=True)


figure = register(
    Figure(
        id="deora2024/samples",
        title="Test loss and generalisation gap against n after K = n steps",
        reference="[deora2024, Theorem 2, Corollary 5; not in the paper]",
        scales={
            "smoke": {
                "seeds": 2, "samples": [20, 40], "H": 16, "n_test": 200, "step_constant": 1.0,
                "optimiser_options": {},
            },
            "quick": {
                "seeds": 5, "samples": [50, 100, 200, 400], "H": 16, "n_test": 3000,
                "step_constant": 1.0, "optimiser_options": {},
            },
            "paper": {
                "seeds": 10, "samples": [50, 100, 200, 400, 800, 1600], "H": 16, "n_test": 10000,
                "step_constant": 1.0, "optimiser_options": {},
            },
        },
        trials=trials,
        statistics=statistics,
        verdicts=verdicts,
        plot=plot,
        layout=(1, 2),
        notes="16 heads from zero and large steps: outside the hypotheses of Theorem 4.",
    )
)  # fmt: skip
