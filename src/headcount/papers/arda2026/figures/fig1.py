"""arda2026, Figure 1: three errors against the width m, each predicted to fall like m^{-1/2}."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ....lab import (
    Estimate,
    Figure,
    Finding,
    Trial,
    draw_interval,
    draw_power_law,
    draw_reference_slope,
    fitted_exponent,
    inside,
    log_log,
    monotone,
    open_choices,
    over_seeds,
    power_law,
    register,
    tick_at,
)
from ....lab._readings import chosen_options
from ....lab._statistics import fitted_slope
from .errors_at_start import approximation, linearisation
from .problem import ANCHORS, RADIUS, STEP_FACTORS, complete, teacher_student
from .reference_numbers import FAITHFUL, RELEASED, WORDS, ReferenceSlope
from .sentences import DECREASE, SLOPES
from .training import TRACE_POINTS, training

if TYPE_CHECKING:
    import xarray as xr

HALF = (-0.65, -0.35)
"""A slope whose whole interval lies here counts as -1/2."""
ONE = (-1.15, -0.85)
"""Likewise for -1, and well apart from -1/2."""
SAME_SLOPE = 0.15
"""How far two slopes may be apart and still count as equal."""

PANELS = {
    "linearisation_sup": "linearisation error",
    "approximation_sup": "approximation error",
    "min_loss": "minimum training loss",
}
MORE = ("linearisation_mean", "second_order_sup", "second_order_mean", "adversarial_sup")


def trials(
    settings: Mapping[str, Any], seeds: Sequence[int], options: Mapping[str, str]
) -> list[Trial]:
    """Three kinds of trials per width and seed."""
    result = []
    for m in settings["widths"]:
        for seed in seeds:
            for measurement, config in (
                (linearisation, linearisation_config(settings, m, seed)),
                (approximation, approximation_config(settings, m, seed, options)),
                (training, training_config(settings, m, seed, options)),
            ):
                kind = measurement.name.removeprefix("arda2026-")
                place = {"m": m, "seed": seed}
                result.append(Trial(measurement, config, place, f"{kind} m={m}"))
    return result


def linearisation_config(settings: Mapping[str, Any], m: int, seed: int) -> dict[str, Any]:
    """What the linearisation error depends on: no teacher."""
    return complete(
        width=m,
        n=settings["n"],
        seeds=[seed],
        data="gaussian-tokens",
        data_options={"T": settings["T"], "d": settings["d"]},
        rho=RADIUS,
        dtype="float64",
    )


def approximation_config(
    settings: Mapping[str, Any], m: int, seed: int, options: Mapping[str, str]
) -> dict[str, Any]:
    """What the approximation error depends on."""
    more = {"init": options["heads"], "dtype": "float64"}
    return teacher_student(settings, m, seed, options["teacher"], anchors(options), **more)


def anchors(options: Mapping[str, str]) -> int:
    """R of the reading."""
    return int(options.get("anchors", ANCHORS))


def training_config(
    settings: Mapping[str, Any],
    m: int,
    seed: int,
    options: Mapping[str, str],
    batch_size: int | None = None,
) -> dict[str, Any]:
    """What a training run depends on; a mini-batch run records its full loss now and then."""
    n = settings["n"]
    steps = round(settings["steps"] * float(options.get("steps", 1)))
    used = {**settings, "n": n if options["split"] == "all" else n * 4 // 5}
    batches = {
        "optimiser": "projsgd",
        "batch_size": batch_size,
        "record": ["loss"],
        "record_every": max(1, steps // TRACE_POINTS),
    }
    return teacher_student(
        used,
        m,
        seed,
        options["teacher"],
        anchors(options),
        steps=steps,
        eta=STEP_FACTORS[options["step"]] / math.sqrt(steps),
        keep=["average"],
        dtype="float32",
        **(batches if batch_size else {}),
    )


def statistics(data: xr.Dataset) -> xr.Dataset:
    """Means with intervals and power laws of all errors; losses also relative to mean y^2."""
    import xarray as xr

    relative = (data["min_loss"] / data["mean_square_label"]).rename("relative_min_loss")
    shown = [data[name] for name in (*PANELS, *MORE)]
    shown += [relative, data["average_iterate_loss"], data["final_loss"]]
    parts = [over_seeds(values) for values in shown]
    parts += [over_seeds(data[name], kind="median") for name in PANELS]
    parts += [power_law(values, "m") for values in shown]
    return xr.merge(parts)


def verdicts(data: xr.Dataset) -> list[Finding]:
    """The slopes, the monotone decrease, the term that cancels, and the reference runs."""
    m = data["m"].values
    found = []
    for name, title in PANELS.items():
        claim = f"the {title} falls like m^(-1/2)"
        found.append(fitted_exponent(claim, data, name, HALF, source=SLOPES))
    for name, title in PANELS.items():
        claim = f"the {title} decreases with m"
        y = _by_seed(data, name)
        found.append(monotone(claim, m, y, "decreasing", scale="log", source=DECREASE))
    claim = "the second-order term, which pairs cancel, alone falls like 1/m"
    found.append(fitted_exponent(claim, data, "second_order_sup", ONE))
    claim = "the worst linearisation error per input falls like m^(-1/2)"
    found.append(fitted_exponent(claim, data, "adversarial_sup", HALF))
    return found + _against_reference(data)


def _against_reference(data: xr.Dataset) -> list[Finding]:
    """Slopes of runs with other code or sizes, where the options are the same as ours."""
    options = chosen_options(data)
    pairs = [("linearisation_mean", RELEASED["linearisation_mean"])]
    if (options["teacher"], options["heads"]) == ("paper", "paired"):
        pairs += [(k, FAITHFUL[k]) for k in ("linearisation_sup", "approximation_sup")]
    if (options["teacher"], options["heads"]) == ("code", "unpaired"):
        pairs.append(("approximation_sup", RELEASED["approximation_sup"]))
    found = []
    for name, reference in pairs:
        claim = f"the slope of the {WORDS[name]} is that of {reference.named(data)}"
        apart = _difference(fitted_slope(data, name), reference)
        found.append(inside(claim, apart, (-SAME_SLOPE, SAME_SLOPE), "slope difference"))
    return found


def _difference(ours: Estimate, reference: ReferenceSlope) -> Estimate:
    """Ours minus the reference, independent errors added in quadrature."""
    value = ours.value - reference.slope
    low = value - math.hypot(ours.value - ours.low, reference.high - reference.slope)
    high = value + math.hypot(ours.high - ours.value, reference.slope - reference.low)
    return Estimate(value, low, high, ours.count)


def _by_seed(data: xr.Dataset, name: str) -> Any:
    return data[name].transpose("seed", "m").values


def plot(data: xr.Dataset, axes: Sequence[Any]) -> None:
    """Three panels as in the paper; the first also shows what its direction leaves out."""
    m = np.asarray(data["m"].values, dtype=float)
    lines = [
        [("linearisation_sup", "code direction"), ("second_order_sup", "second-order term")],
        [("approximation_sup", "")],
        [("min_loss", "")],
    ]
    for ax, (name, title), curves in zip(axes, PANELS.items(), lines, strict=True):
        for index, (curve, label) in enumerate(curves):
            draw_interval(ax, data, f"mean_{curve}", "m", label=label or "mean", index=index)
            draw_power_law(ax, data, curve, "m", index=index)
        first = float(data[f"mean_{name}"].values[0])
        draw_reference_slope(ax, m, first, -0.5, "predicted: slope -1/2")
        log_log(ax, "width m", title)
        tick_at(ax, m)


figure = register(
    Figure(
        id="arda2026/fig1",
        title="Linearisation error, approximation error and minimum training loss against width",
        reference="[arda2026, Fig. 1, Sec. 6.1]",
        scales={
            "smoke": {
                "seeds": 3, "widths": [8, 16, 32], "n": 100, "T": 16, "d": 8,
                "pool": 256, "steps": 40,
            },
            "quick": {
                "seeds": 8, "widths": [8, 16, 64, 128], "n": 500, "T": 16, "d": 8,
                "pool": 2048, "steps": 1000,
            },
            "paper": {
                "seeds": 10, "widths": [8, 16, 64, 128, 256], "n": 5000, "T": 16, "d": 8,
                "pool": 8192, "steps": 4000,
            },
        },
        trials=trials,
        statistics=statistics,
        verdicts=verdicts,
        plot=plot,
        axes=open_choices("headcount.papers.arda2026:choices.toml", "fig1"),
        layout=(1, 3),
        needs={f"the {PANELS['min_loss']} falls like m^(-1/2)": {"steps": 4000}},
    )
)  # fmt: skip
