"""Beyond deora2024: on-average model stability, measured, against n and k beside Lemma 11."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ....lab import (
    COLOURS,
    Context,
    Figure,
    Finding,
    Measurement,
    Trial,
    difference,
    draw_interval,
    draw_power_law,
    draw_reference_slope,
    fitted_exponent,
    log_log,
    over_seeds,
    power_law,
    register,
    share,
    threshold,
)
from ....lab._drawing import draw_band
from .curves import DM1_DEFAULTS, RANGE, points
from .fig2 import COMMON
from .training_run import logarithmic, problem_of, run_config

if TYPE_CHECKING:
    import xarray as xr

    from ..stability import LeftOut
    from ..stability_bounds import Target

INEQUALITIES = {
    "expansiveness": "(19)",
    "one_step": "(20)",
    "one_small_step": "(21)",
    "unrolled_step": "(22)",
}


def measure_stability(config: dict[str, Any], context: Context) -> dict[str, Any]:
    """Leave-one-out runs for all i; bounds with theta = theta_K, the run's own last iterate."""
    from ..stability import leave_one_out
    from ..stability_bounds import target

    chosen, built = problem_of(config)
    (x, y), start = (built.x[0], built.y[0]), type(built.initial)(*(v[0] for v in built.initial))
    test = tuple(part[0] for part in built.validation)
    context.progress(0, 1)
    run = leave_one_out(
        built.model, start, x, y, eta=chosen.step_size, steps=chosen.steps, test=test
    )
    return described(run, target(built.model, start, run.final, x, y), config["tier"])


def described(run: LeftOut, theta: Target, tier: str) -> dict[str, Any]:
    """Curves along k, the worst ratio of every inequality, and what its hypotheses ask."""
    from .. import stability_bounds as bounds

    at = logarithmic(np.arange(run.steps + 1))
    before = at - 1
    stable, lemma, losses = (
        run.on_average,
        bounds.lemma_11(run, theta),
        bounds.from_losses(run, theta),
    )
    lipschitz = np.maximum.accumulate(np.max(run.own_gradient, axis=1))
    worst = {
        "expansiveness": bounds.expansiveness(run, tier),
        "one_step": bounds.one_step(run, tier),
        "one_small_step": bounds.one_small_step(run, theta, tier),
        "unrolled_step": bounds.unrolled_step(run, theta, tier),
    }
    return {
        "stability": stable[at],
        "largest_distance": np.max(run.distance, axis=1)[at],
        "stability_from_losses": losses.right[before],
        "lemma_11": lemma.right[before],
        "theorem_4": bounds.theorem_4(run, theta)[before],
        "lemma_3": 2 * lipschitz[before] * stable[at],
        "train_loss": np.append(run.loss, run.final_loss)[at],
        "gap": run.gap[at],
        "lemma_11_ratio": np.max(lemma.ratio),
        **{f"{name}_ratio": np.max(sides.ratio) for name, sides in worst.items()},
        "summed_growth": np.max(bounds.summed_growth(run, theta, tier).left),
        "step_over_allowed": bounds.small_step(run, theta, tier).ratio,
        "moved": run.moved,
        "k": at,
    }


def _cost(config: dict[str, Any]) -> tuple[float, float]:
    n, data = config["n"], config["data_options"]
    numbers = 2 * n * (n + 1) * data["T"] ** 2
    return 0.1 + config["steps"] * 8e-9 * numbers, 4e8 + 8.0 * 8 * n * config["steps"]


CURVES = (
    "stability", "largest_distance", "stability_from_losses", "lemma_11", "theorem_4", "lemma_3",
    "train_loss", "gap",
)  # fmt: skip

stability = Measurement(
    name="deora2024-stability",
    version=2,
    function=measure_stability,
    outputs={
        **dict.fromkeys(CURVES, ("k",)),
        **dict.fromkeys((f"{name}_ratio" for name in ("lemma_11", *INEQUALITIES)), ()),
        **dict.fromkeys(("summed_growth", "step_over_allowed", "moved"), ()),
        "k": ("k",),
    },
    estimate=_cost,
)


RUNS = {
    "zero": ("16 heads from zero", 16, {"init": "zero"}),
    "two-phase": ("10^12 heads, two phases", 10**12, {"init": "two-phase"}),
}
AT_LEAST_ONE_OVER_N = (-math.inf, -0.85)
FLAT = 0.25
"""A power of k below this counts as slower than any that would spoil Lemma 11."""
BOUNDS = ("stability", "stability_from_losses", "lemma_11")
GAPS = ("gap", "lemma_3", "theorem_4")
TINY = 1e-300
"""In place of zero on a logarithmic axis."""
LABELS = ("measured", "from the losses; Lemma 3 with measured G", "Lemma 11; Theorem 4")


def trials(
    settings: Mapping[str, Any], seeds: Sequence[int], options: Mapping[str, str]
) -> list[Trial]:
    """Leave-one-out runs for every number of samples and both starts."""
    result = []
    for run, (_, H, values) in RUNS.items():
        for n in settings["samples"]:
            for seed in seeds:
                config = run_config(
                    {**settings, "n": n, "record_every": 1},
                    width=H,
                    seeds=[seed],
                    optimiser="gd",
                    eta=settings["step_constant"],
                    data=settings["data"],
                    data_options=settings["data_options"],
                    **values,
                )
                place = {"run": run, "n": n, "seed": seed}
                own = {**config, "tier": settings["tier"]}
                result.append(Trial(stability, own, place, f"{run} n={n}"))
    return result


def statistics(data: xr.Dataset) -> xr.Dataset:
    """Along k at the largest n, with the range over trials; at the last k, against n."""
    import xarray as xr

    largest, final = data.isel(n=-1), data.isel(k=-1)
    parts = []
    for name in (*BOUNDS, *GAPS):
        along = over_seeds(largest[name], f"{name}_along")
        along[f"{name}_along_low"] = largest[name].min("seed")
        along[f"{name}_along_high"] = largest[name].max("seed")
        parts.append(along)
    for name in ("stability", "gap", "lemma_3", "lemma_11"):
        parts.append(over_seeds(final[name], f"{name}_final"))
    parts.append(power_law(final["stability"], "n", "stability_final"))
    return xr.merge(parts, compat="override", join="outer")


def _final(data: xr.Dataset, name: str, run: str) -> Any:
    return data[name].sel(run=run).isel(k=-1).transpose("seed", "n").values


def verdicts(data: xr.Dataset) -> list[Finding]:
    """1/n, slow growth in k, and every inequality on the way."""
    k, found = points(data, "k"), []
    for run, (title, _, _) in RUNS.items():
        own = data.sel(run=run)
        claim = f"{title}: the stability falls at least like 1/n"
        found.append(fitted_exponent(claim, own, "stability_final", AT_LEAST_ONE_OVER_N))
        late = k >= k[-1] / 10
        growth = own["stability"].isel(n=-1).transpose("seed", "k").values[:, late]
        claim = f"{title}: it grows slower than k^{FLAT} in the last decade"
        slopes = [np.polyfit(np.log(k[late]), np.log(row), 1)[0] for row in growth]
        found.append(threshold(claim, np.array(slopes), below=FLAT))
        for name, number in {**INEQUALITIES, "lemma_11": "Lemma 11"}.items():
            ratio = own[f"{name}_ratio"]
            claim = f"{title}: {number} holds in most trials, for every n and at every k and i"
            found.append(share(claim, ratio, below=1))
        claim = f"{title}: the step is one that (21) allows"
        allowed = own["step_over_allowed"]
        found.append(share(claim, allowed, below=1))
        gap, lemma_3 = (_final(data, name, run)[:, -1] for name in ("gap", "lemma_3"))
        claim = f"{title}: the gap is below Lemma 3's bound with the measured slope G"
        found.append(difference(claim, lemma_3, gap))
        claim = f"{title}: the gap is below Theorem 4's bound"
        found.append(difference(claim, _final(data, "theorem_4", run)[:, -1], gap))
    return found


def plot(data: xr.Dataset, axes: Sequence[Any]) -> None:
    """Per start: stability along k, gap along k, stability against n."""
    k = np.asarray(data["k"].values, dtype=float)
    for row, (run, (title, _, _)) in enumerate(RUNS.items()):
        along, gap, against = axes[3 * row : 3 * row + 3]
        own = data.sel(run=run)
        _curves(along, own, k, BOUNDS, "on-average stability")
        _curves(gap, own, k, GAPS, "generalisation gap (absolute)")
        draw_interval(against, own, "stability_final", "n", label="measured")
        draw_power_law(against, own, "stability_final", "n")
        first = float(own["stability_final"].values[0])
        draw_reference_slope(against, data["n"].values, first, -1, "predicted: slope -1")
        log_log(against, "samples n", "stability at the end")
        against.legend(loc="lower left", frameon=False)
        shown = [int(value) for value in data["n"].values]
        against.set_xticks(shown, [str(value) for value in shown])
        against.set_xticks([], minor=True)
        for ax in (along, gap, against):
            ax.set_title(title)
    handles, labels = axes[0].get_legend_handles_labels()
    axes[0].figure.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False)


def _curves(ax: Any, own: xr.Dataset, k: Any, names: Sequence[str], y_label: str) -> None:
    """Means over trials along k with their range; all of one kind in one colour."""
    for index, (name, label) in enumerate(zip(names, LABELS, strict=True)):
        centre, low, high = (own[f"{name}_along{end}"].values for end in ("", "_low", "_high"))
        ax.plot(k, np.abs(centre), color=COLOURS[index], label=label)
        # Sizes: those of a range around zero begin at zero, below every logarithmic axis.
        least = np.where(low * high > 0, np.minimum(np.abs(low), np.abs(high)), TINY)
        draw_band(ax, k, least, np.maximum(np.abs(low), np.abs(high)), COLOURS[index])
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("iteration k")
    ax.set_ylabel(y_label)


figure = register(
    Figure(
        id="deora2024/stability",
        title="On-average model stability against n and k, beside Lemma 11",
        reference="[deora2024, Lemmas 3 and 11, Theorem 4; not in the paper]",
        scales={
            scale: {
                **{key: value for key, value in COMMON.items() if key != "n"},
                "data_options": {
                    **DM1_DEFAULTS, "noise": "bounded", "Z_mu": 0.1, "Z_nu": 0.1,
                },
                "optimiser_options": {},
                "tier": "sharp",
                **numbers,
            }
            for scale, numbers in {
                "smoke": {"seeds": 2, "samples": [4, 8], "n_test": 50, "steps": 20},
                "quick": {"seeds": 5, "samples": [12, 25, 50], "n_test": 1000, "steps": 300},
                "paper": {"seeds": 5, "samples": [12, 25, 50, 100], "n_test": 3000, "steps": 1500},
            }.items()
        },
        trials=trials,
        statistics=statistics,
        verdicts=verdicts,
        plot=plot,
        layout=(2, 3),
        notes="Bounds are taken at theta = theta_K; noise is bounded, as the theorems ask.",
        bands=f"{RANGE}, in (c) and (f) 95 % interval",
    )
)  # fmt: skip
