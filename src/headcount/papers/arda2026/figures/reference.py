"""The reference runs again, at their own sizes and with their own choices, level by level."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ....lab import (
    Figure,
    Finding,
    Trial,
    difference_from,
    draw_interval,
    inside,
    log_log,
    over_seeds,
    register,
    tick_at,
)
from .errors_at_start import approximation, linearisation
from .fig1 import approximation_config, linearisation_config, training_config
from .fig2 import run_config
from .recurrent import MODELS, recurrent
from .reference_numbers import FAITHFUL, LOSS_GRADIENT, RELEASED, VALIDATION, WORDS, ReferenceSlope
from .training import training

if TYPE_CHECKING:
    import xarray as xr

CODE = {"teacher": "code", "step": "code", "heads": "unpaired", "split": "80"}
RECURRENT_CODE = {
    "gamma": "1.5",
    "step": "code",
    "tokens": "raw",
    "windows": "overlapping",
    "validation": "random",
    "labels": "train+val",
    "positions": "dyadic",
}
TEXT = {"teacher": "paper", "step": "paper", "heads": "paired", "split": "all"}
CLOSE = 1.25
"""The factor within which a level counts as equal."""

RUNS: dict[str, Mapping[str, ReferenceSlope]] = {"released": RELEASED, "text": FAITHFUL}
RECURRENT = {
    "min_validation_loss": ("minimum validation loss", VALIDATION),
    "max_loss_gradient": ("largest loss gradient", LOSS_GRADIENT),
}
"""Quantities of the comparison on AR(L), in words, with the released code's values."""


def trials(
    settings: Mapping[str, Any], seeds: Sequence[int], options: Mapping[str, str]
) -> list[Trial]:
    """All reference runs: those of the released code, and those that follow the text."""
    result = []
    for run, choices in (("released", CODE), ("text", TEXT)):
        for m in settings["widths"]:
            for seed in seeds:
                place = {"run": run, "m": m, "seed": seed}
                lin = {**settings, "n": settings[f"n_linearisation_{run}"]}
                app = {**settings, "n": settings[f"n_approximation_{run}"]}
                config = approximation_config(app, m, seed, choices)
                result += [
                    Trial(linearisation, linearisation_config(lin, m, seed), place, f"m={m}"),
                    Trial(approximation, config, place, f"m={m}"),
                ]
    sizes = {**settings, "n": settings["n_training"]}
    for m in settings["training_widths"]:
        for seed in seeds:
            config = training_config(sizes, m, seed, CODE)
            result.append(Trial(training, config, {"width": m, "seed": seed}, f"training m={m}"))
    return result + _recurrent_trials(settings, seeds)


def _recurrent_trials(settings: Mapping[str, Any], seeds: Sequence[int]) -> list[Trial]:
    result = []
    sizes = {
        "n": settings["n_recurrent"] * 4 // 5,
        "n_val": settings["n_recurrent"] // 5,
        "m": settings["recurrent_width"],
        "steps": settings["recurrent_steps"],
        "record_every": settings["record_every"],
    }
    for L in settings["lags"]:
        for model in MODELS:
            for seed in seeds[: settings["recurrent_seeds"]]:
                config = run_config(sizes, model, L, seed, RECURRENT_CODE)
                place = {"model": model, "L": L, "seed": seed}
                result.append(Trial(recurrent, config, place, f"{model} L={L}"))
    return result


def relative_min_loss(data: xr.Dataset) -> xr.DataArray:
    """The minimum training loss, divided by that of the zero function."""
    return (data["min_loss"] / data["mean_square_label"]).rename("relative_min_loss")


def statistics(data: xr.Dataset) -> xr.Dataset:
    """Geometric means over seeds, and the reference's beside them."""
    import xarray as xr

    names = ("linearisation_sup", "linearisation_mean", "second_order_sup", "approximation_sup")
    averaged = [data[name] for name in names] + [relative_min_loss(data)]
    averaged += [data[name] for name in RECURRENT]
    parts = [over_seeds(values, kind="geometric") for values in averaged]
    for run, references in RUNS.items():
        for name, reference in references.items():
            dim = "width" if name == "relative_min_loss" else "m"
            values = _reference_levels(reference, data[dim].values)
            parts.append(xr.Dataset({f"{run}_{name}": (dim, values)}))
    return xr.merge(parts)


def verdicts(data: xr.Dataset) -> list[Finding]:
    """Geometric mean over widths of ours divided by the reference's, seeds as the sample."""
    found = []
    for run, references in RUNS.items():
        for name, reference in references.items():
            dim = "width" if name == "relative_min_loss" else "m"
            ours = relative_min_loss(data) if dim == "width" else data[name].sel(run=run)
            known = _reference_levels(reference, data[dim].values)
            logs = np.log(ours.transpose("seed", dim).values / known).mean(axis=1)
            claim = f"the {WORDS[name]} has the level of {reference.named(data)}"
            found.append(_level(claim, logs, 0.0, reference.log_error, reference.seeds))
    for name, (words, reference_runs) in RECURRENT.items():
        for (model, L), values in reference_runs.items():
            if L in data["L"].values:
                theirs = np.log(values)
                error = theirs.std(ddof=1) / math.sqrt(len(theirs))
                logs = np.log(data[name].sel(model=model, L=L).values)
                claim = f"{words} of the {model} at L = {L}: that of the released code"
                found.append(_level(claim, logs, theirs.mean(), error, len(theirs)))
    return found


def _level(claim: str, logs: Any, reference: float, error: float, seeds: int) -> Finding:
    """Equal within a factor CLOSE, given the spread of both sides."""
    bound = math.log(CLOSE)
    gap = difference_from(logs, reference, error, seeds)
    return inside(claim, gap, (-bound, bound), "log ratio")


def _reference_levels(reference: ReferenceSlope, widths: Any) -> Any:
    known = dict(zip(reference.widths, reference.levels, strict=True))
    return np.array([known[int(m)] for m in widths])


def plot(data: xr.Dataset, axes: Sequence[Any]) -> None:
    """Ours as lines, the reference as crosses with the 95 % interval of its level."""
    panels = (
        ("released", "linearisation_mean", "mean linearisation error\n(released code)"),
        ("released", "approximation_sup", "approximation error\n(released code)"),
        ("released", "relative_min_loss", "minimum loss / mean $y^2$\n(released code)"),
        ("text", "linearisation_sup", "sup linearisation error\n(text)"),
        ("text", "second_order_sup", "second-order term\n(text)"),
        ("text", "approximation_sup", "approximation error\n(text)"),
    )
    for ax, (run, name, words) in zip(axes, panels, strict=True):
        dim = "width" if name == "relative_min_loss" else "m"
        chosen = data if dim == "width" else data.sel(run=run)
        draw_interval(ax, chosen, f"geometric_{name}", dim, label="ours")
        values = data[f"{run}_{name}"].values
        spread = RUNS[run][name].spread
        bars = {"yerr": [values * (1 - 1 / spread), values * (spread - 1)], "elinewidth": 0.8}
        ax.errorbar(data[dim].values, values, fmt="kx", label="reference", capsize=2, **bars)
        log_log(ax, "width m", words)
        tick_at(ax, data[dim].values)


_QUICK = {
    "seeds": 10, "widths": [8, 16, 64, 128, 256], "T": 16, "d": 8, "pool": 8192,
    "n_linearisation_released": 1000, "n_approximation_released": 500,
    "n_linearisation_text": 300, "n_approximation_text": 300,
    "n_training": 2000, "training_widths": [8, 16, 32], "steps": 1000,
    "lags": [4, 16], "n_recurrent": 5000, "recurrent_width": 64, "recurrent_steps": 500,
    "recurrent_seeds": 4, "record_every": 1,
}  # fmt: skip
_SMOKE = {
    "seeds": 3, "widths": [8, 16], "T": 16, "d": 8, "pool": 256,
    "n_linearisation_released": 100, "n_approximation_released": 100,
    "n_linearisation_text": 100, "n_approximation_text": 100,
    "n_training": 100, "training_widths": [8], "steps": 40,
    "lags": [4], "n_recurrent": 80, "recurrent_width": 8, "recurrent_steps": 30,
    "recurrent_seeds": 3, "record_every": 1,
}  # fmt: skip

figure = register(
    Figure(
        id="arda2026/reference",
        title="The reference runs again, at their sizes: released code, and the paper's text",
        reference="[arda2026, released code and Sec. 6]",
        scales={"smoke": _SMOKE, "quick": _QUICK, "paper": _QUICK},
        trials=trials,
        statistics=statistics,
        verdicts=verdicts,
        plot=plot,
        layout=(2, 3),
    )
)
