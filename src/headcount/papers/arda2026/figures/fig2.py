"""arda2026, Figure 2: IndRNN against Transformer on AR(L), norms, validation loss and memory."""

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
    difference,
    draw_interval,
    everywhere,
    inside,
    log_log,
    loglog_slope,
    monotone,
    open_choices,
    over_seeds,
    register,
    tick_at,
)
from ....lab._drawing import NOT_NEGATIVE
from ....lab._readings import chosen_options
from . import sentences
from .problem import complete
from .recurrent import MODELS, NORMS, memory, recurrent

if TYPE_CHECKING:
    import xarray as xr

POSITIONS: dict[str, dict[str, Any]] = {
    "dyadic": {},
    "scaled": {"position_scale": 0.25},
    "geometric": {"frequencies": "geometric"},
    "transformer": {},
    "none": {"pairs": 0},
}
"""Channels of norm sqrt(8); over sqrt(16); of other frequencies; none for the IndRNN; for none."""
WORDS = {
    "jacobian_of_mean": "Jacobian of the mean output",
    "mean_jacobian": "mean per-sample Jacobian",
    "largest_jacobian": "largest per-sample Jacobian",
    "loss_gradient": "loss gradient",
}
EXACT = 1e-6
"""Slopes of exact numbers differ by rounding alone."""
FLAT = 0.05
"""A mean squared error, of labels with variance 1, that counts as no degradation."""


def trials(
    settings: Mapping[str, Any], seeds: Sequence[int], options: Mapping[str, str]
) -> list[Trial]:
    """A run per model, lag and seed; the memory of each model at each lag."""
    result = []
    for L in settings["lags"]:
        for model in MODELS:
            place = {"model": model, "L": L}
            blank = _problem(settings, model, L)
            result.append(Trial(memory, blank, place, f"memory {model} L={L}"))
            for seed in seeds:
                config = run_config(settings, model, L, seed, options)
                result.append(Trial(recurrent, config, {**place, "seed": seed}, f"{model} L={L}"))
    return result


def _problem(settings: Mapping[str, Any], model: str, L: int) -> dict[str, Any]:
    return complete(model=MODELS[model], width=settings["m"], data="ar", data_options={"L": L})


def run_config(
    settings: Mapping[str, Any],
    model: str,
    L: int,
    seed: int,
    options: Mapping[str, str],
) -> dict[str, Any]:
    """Gradient descent without a projection, as in Sec. 6.2; eta of the paper or of the code."""
    sizes = {name: settings[name] for name in ("n", "n_val", "steps", "record_every")}
    paper = options["step"] == "paper"
    data = {
        "L": L,
        "normalise_tokens": options["tokens"] == "unit-ball",
        "windows": options["windows"],
        "split": options["validation"],
        "standardise_labels": options["labels"],
        **POSITIONS[options["positions"]],
    }
    if model == "IndRNN" and options["positions"] == "transformer":
        data["pairs"] = 0
    return complete(
        model=MODELS[model],
        width=settings["m"],
        init_options={"gamma": float(options["gamma"])} if model == "IndRNN" else {},
        data="ar",
        data_options=data,
        seeds=[seed],
        optimiser="gd",
        eta=1 / math.sqrt(settings["steps"]) if paper else 0.05,
        dtype="float32",
        **sizes,
    )


def statistics(data: xr.Dataset) -> xr.Dataset:
    """Geometric means of the norms, means of the loss, intervals over seeds; memory as it is."""
    import xarray as xr

    extremes = over_training(data)
    averages = [over_seeds(extremes[f"max_{norm}"], kind="geometric") for norm in NORMS]
    averages.append(over_seeds(extremes["min_validation_loss"]))
    footprint = {f"footprint_{k}": data[f"{k}_bytes"] for k in ("state", "streaming", "gradient")}
    return xr.merge([*averages, xr.Dataset(footprint)])


def over_training(data: xr.Dataset) -> xr.Dataset:
    """Largest norms and smallest loss over s < tau, or, in the other reading, s <= tau."""
    extremes = data.copy()
    if chosen_options(data)["until"] == "through":
        for norm in NORMS:
            extremes[f"max_{norm}"] = np.fmax(data[f"max_{norm}"], data[f"end_{norm}"])
        ends = data["min_validation_loss"], data["end_validation_loss"]
        extremes["min_validation_loss"] = np.fmin(*ends)
    return extremes


def verdicts(data: xr.Dataset) -> list[Finding]:
    """The norm claims in the norm of the reading, the validation claims and the memory claim."""
    extremes, norm = over_training(data), chosen_options(data)["norm"]
    runs, names = _runs(extremes, f"max_{norm}"), [f"L = {L:g}" for L in data["L"]]
    claim = "the largest norm in training is smaller for the Transformer at every lag"
    both = runs["IndRNN"], runs["Transformer"]
    found = [everywhere(claim, *both, names, source=sentences.NORMS), _fluctuations(runs)]
    found += _validation(_runs(extremes, "min_validation_loss"), data["L"].values)
    return found + _memory(data)


def _runs(data: xr.Dataset, name: str) -> dict[str, Any]:
    """(seed, lag) values of both models."""
    chosen = data[name].transpose("model", "seed", "L")
    return {model: chosen.sel(model=model).values for model in MODELS}


def _fluctuations(runs: Mapping[str, Any]) -> Finding:
    """Distance from the median over seeds, averaged over lags: larger for the IndRNN."""
    spread = {
        model: np.abs(values - np.nanmedian(values, axis=0)).mean(axis=1)
        for model, values in runs.items()
    }
    claim = "the largest norm fluctuates more for the IndRNN"
    pair = spread["IndRNN"], spread["Transformer"]
    return difference(claim, *pair, source=sentences.FLUCTUATIONS)


def _validation(runs: Mapping[str, Any], lags: Any) -> list[Finding]:
    rnn, transformer = runs["IndRNN"], runs["Transformer"]
    flat = (-math.inf, FLAT)
    return [
        difference(
            "at the shortest lag the IndRNN validates better",
            transformer[:, 0],
            rnn[:, 0],
            source=sentences.SHORT_LAGS,
        ),
        monotone(
            "the IndRNN's validation loss grows with the lag",
            lags,
            rnn,
            "increasing",
            source=sentences.SHORT_LAGS,
        ),
        difference(
            "the Transformer's validation loss does not grow from the shortest lag to the longest",
            transformer[:, -1],
            transformer[:, 0],
            flat,
            source=sentences.LONG_LAGS,
        ),
        difference(
            "at the longest lag the Transformer validates better",
            rnn[:, -1],
            transformer[:, -1],
        ),
    ]


def _memory(data: xr.Dataset) -> list[Finding]:
    """Exponents of the streaming state in the window's length, at most 1 and 0; exact."""
    found = []
    T = data["L"].values + 1.0
    wanted = {"Transformer": (1.0, "grows no faster than L"), "IndRNN": (0.0, "does not grow")}
    for model, (most, words) in wanted.items():
        values = data["state_bytes"].sel(model=model).values
        slope = loglog_slope(T, values[None]).slope.value
        claim = f"the state that a streaming {model} keeps {words}"
        exact, at_most = Estimate.exactly(slope), (-math.inf, most + EXACT)
        found.append(inside(claim, exact, at_most, "slope", source=sentences.MEMORY))
    return found


def plot(data: xr.Dataset, axes: Sequence[Any]) -> None:
    """The four norms, the validation loss, and the memory."""
    panels = {f"geometric_max_{norm}": words for norm, words in WORDS.items()}
    panels["mean_min_validation_loss"] = "minimum validation loss"
    for ax, (name, words) in zip(axes, panels.items(), strict=False):
        for index, model in enumerate(MODELS):
            place = (index, len(MODELS))
            look: Any = {"label": model, "index": index, "beside": place, "within": NOT_NEGATIVE}
            draw_interval(ax, data.sel(model=model), name, "L", **look)
        log_log(ax, "lag L", words)
        tick_at(ax, data["L"].values)
        if name == "mean_min_validation_loss":
            ax.set_yscale("linear")
    last = axes[-1]
    for index, model in enumerate(MODELS):
        for kind in ("state", "streaming"):
            label = f"{model}, {'state' if kind == 'state' else 'all'}"
            shown = data.sel(model=model)
            draw_interval(last, shown, f"footprint_{kind}", "L", label=label, index=index)
            last.lines[-1].set_linestyle("-" if kind == "state" else "--")
    log_log(last, "lag L", "bytes to stream one sequence")
    tick_at(last, data["L"].values)


figure = register(
    Figure(
        id="arda2026/fig2",
        title="IndRNN against Transformer on AR(L): norms in training, validation loss, memory",
        reference="[arda2026, Fig. 2, Sec. 6.2, App. B]",
        scales={
            "smoke": {
                "seeds": 3, "lags": [2, 6], "n": 64, "n_val": 32, "m": 8,
                "steps": 30, "record_every": 1,
            },
            "quick": {
                "seeds": 5, "lags": [4, 16, 48], "n": 400, "n_val": 400, "m": 64,
                "steps": 400, "record_every": 1,
            },
            "paper": {
                "seeds": 20, "lags": [4, 16, 72, 96], "n": 4000, "n_val": 1000, "m": 64,
                "steps": 2000, "record_every": 1,
            },
        },
        trials=trials,
        statistics=statistics,
        verdicts=verdicts,
        plot=plot,
        axes=open_choices("headcount.papers.arda2026:choices.toml", "fig2"),
        layout=(2, 3),
        notes="The paper has n = 5000 windows: at paper scale 4000 train and 1000 validate.",
    )
)  # fmt: skip
