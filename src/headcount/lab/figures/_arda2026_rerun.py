"""The reference runs again, at their own sizes and with their own choices, level by level."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import Figure, Trial, Verdict, draw_interval, inside, log_log, mean, over_seeds, register
from ._arda2026_fig1 import approximation_config, linearisation_config, training_config
from ._arda2026_fig2 import DATA
from ._arda2026_recurrent import MODELS, recurrent
from ._arda2026_reference import FAITHFUL, RELEASED, VALIDATION, ReferenceSlope
from ._arda2026_training import training
from ._arda2026_widths import approximation, linearisation
from ._axes import tick_at

if TYPE_CHECKING:
    import xarray as xr

CODE = {"teacher": "code", "step": "code", "heads": "unpaired", "split": "80"}
TEXT = {"teacher": "paper", "step": "paper", "heads": "paired", "split": "all"}
CLOSE, CLOSE_FEW = 1.25, 1.5
"""Factors within which a level counts as equal; the wider one for references from two seeds."""

RUNS: dict[str, Mapping[str, ReferenceSlope]] = {"released": RELEASED, "text": FAITHFUL}


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
    for L in settings["lags"]:
        for model in MODELS:
            for seed in seeds[: settings["recurrent_seeds"]]:
                config = {
                    "model": model,
                    "L": L,
                    "n": settings["n_recurrent"] * 4 // 5,
                    "n_val": settings["n_recurrent"] // 5,
                    "m": settings["recurrent_width"],
                    "steps": settings["recurrent_steps"],
                    "record_every": settings["record_every"],
                    "eta": 0.05,
                    "gamma": 1.5 if model == "IndRNN" else None,
                    **DATA["code"],
                    "normalise_tokens": False,
                    "seed": seed,
                    "dtype": "float32",
                }
                place = {"model": model, "L": L, "seed": seed}
                result.append(Trial(recurrent, config, place, f"{model} L={L}"))
    return result


def relative_min_loss(data: xr.Dataset) -> xr.DataArray:
    """The minimum training loss, divided by that of the zero function."""
    return (data["min_loss"] / data["mean_square_label"]).rename("relative_min_loss")


def statistics(data: xr.Dataset) -> xr.Dataset:
    """Medians over seeds, and the reference's medians beside them."""
    import xarray as xr

    names = ("linearisation_sup", "linearisation_mean", "second_order_sup", "approximation_sup")
    parts = [over_seeds(data[name], kind="median") for name in names]
    parts += [over_seeds(relative_min_loss(data), kind="median")]
    parts += [over_seeds(data["min_validation_loss"])]
    for run, references in RUNS.items():
        for name, reference in references.items():
            dim = "width" if name == "relative_min_loss" else "m"
            values = _reference_levels(reference, data[dim].values)
            parts.append(xr.Dataset({f"{run}_{name}": (dim, values)}))
    return xr.merge(parts)


def verdicts(data: xr.Dataset) -> list[Verdict]:
    """Geometric mean over widths of ours divided by the reference's median, seeds as the sample."""
    found = []
    for run, references in RUNS.items():
        for name, reference in references.items():
            dim = "width" if name == "relative_min_loss" else "m"
            ours = relative_min_loss(data) if dim == "width" else data[name].sel(run=run)
            known = _reference_levels(reference, data[dim].values)
            logs = np.log(ours.transpose("seed", dim).values / known)
            claim = f"{name} has the level of {reference.source}"
            found.append(_level(claim, logs, CLOSE if reference.seeds > 2 else CLOSE_FEW))
    for (model, L), level in VALIDATION.items():
        if L in data["L"].values:
            losses = data["min_validation_loss"].sel(model=model, L=L).values
            claim = f"minimum validation loss of the {model} at L = {L}: that of the released code"
            found.append(_level(claim, np.log(losses[:, None] / level), CLOSE))
    return found


def _level(claim: str, logs: Any, factor: float) -> Verdict:
    bound = math.log(factor)
    return inside(claim, mean(logs.mean(axis=1)), (-bound, bound), "log ratio")


def _reference_levels(reference: ReferenceSlope, widths: Any) -> Any:
    known = dict(zip(reference.widths, reference.medians, strict=True))
    return np.array([known[int(m)] for m in widths])


def plot(data: xr.Dataset, axes: Sequence[Any]) -> None:
    """Ours as lines, the reference as crosses."""
    panels = (
        ("released", "linearisation_mean", "mean linearisation error, released code"),
        ("released", "approximation_sup", "approximation error, released code"),
        ("released", "relative_min_loss", "minimum loss / mean y^2, released code"),
        ("text", "linearisation_sup", "sup linearisation error, text"),
        ("text", "second_order_sup", "second-order term, text"),
        ("text", "approximation_sup", "approximation error, text"),
    )
    for ax, (run, name, words) in zip(axes, panels, strict=True):
        dim = "width" if name == "relative_min_loss" else "m"
        chosen = data if dim == "width" else data.sel(run=run)
        draw_interval(ax, chosen, f"median_{name}", dim, label="ours, median")
        values = data[f"{run}_{name}"].values
        ax.plot(data[dim].values, values, "kx", label="reference, median")
        log_log(ax, "width m", words)
        tick_at(ax, data[dim].values)


_QUICK = {
    "seeds": 10, "widths": [8, 16, 64, 128, 256], "T": 16, "d": 8, "pool": 8192,
    "n_linearisation_released": 1000, "n_approximation_released": 500,
    "n_linearisation_text": 300, "n_approximation_text": 300,
    "n_training": 2000, "training_widths": [8, 16, 32], "steps": 1000,
    "lags": [4, 16], "n_recurrent": 5000, "recurrent_width": 64, "recurrent_steps": 500,
    "recurrent_seeds": 4, "record_every": 20,
}  # fmt: skip
_SMOKE = {
    "seeds": 3, "widths": [8, 16], "T": 16, "d": 8, "pool": 256,
    "n_linearisation_released": 100, "n_approximation_released": 100,
    "n_linearisation_text": 100, "n_approximation_text": 100,
    "n_training": 100, "training_widths": [8], "steps": 40,
    "lags": [4], "n_recurrent": 80, "recurrent_width": 8, "recurrent_steps": 30,
    "recurrent_seeds": 3, "record_every": 10,
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
