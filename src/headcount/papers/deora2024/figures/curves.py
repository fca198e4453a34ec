"""What Figs. 2-5 share: trials over H and seeds, averages along k, and panels of curves by H."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ....lab import (
    COLOURS,
    Estimate,
    Figure,
    Finding,
    Measurement,
    Trial,
    inside,
    open_choices,
    over_seeds,
    register,
    threshold,
)
from ....lab._drawing import draw_band
from ....lab._readings import chosen_options
from .training_run import run_config

if TYPE_CHECKING:
    import xarray as xr

HEADS = [1, 4, 16, 64, 256]
"""H. The paper's list is not given; a run of equal heads costs the same for every H."""
FEWER_HEADS = [1, 2, 4, 8, 16]
"""Another list, each the double of the one before."""

OPTIMISER_OPTIONS: dict[str, Any] = {
    "momentum": {"beta": 0.9},
    "adam": {"b1": 0.9, "b2": 0.999, "eps": 1e-8},
}
"""Heavy ball and Adam as most libraries have them: the paper gives no values."""

DM1_DEFAULTS: dict[str, Any] = {
    "T": 10, "d": 4, "M": 2, "S": 2.0, "zeta": 0.1, "noise_sd": 0.1, "relevant": "random",
}  # fmt: skip
"""App. G, except `relevant`: a new random position of the relevant token for every sample."""

PLANTED_SEED = 0
"""Of the head that all trials share where it is fixed."""

DM2_DEFAULTS: dict[str, Any] = {"T": 10, "d": 5, "margin": 0.2}
"""App. G; W* and U* have N(0, 1) entries and U* is divided by its norm, which is our reading."""

RANGE = "smallest to largest trial"
"""The bands of `averages`."""
GEOMETRIC = ("train_loss", "test_loss", "loss_many", "loss_one")
NOTES = (
    "Not in the paper, and chosen here: the numbers of heads, the number of iterations, the "
    "constant of eta = O(sqrt H) (step_constant), momentum 0.9, Adam's decays and epsilon, Adam's "
    "step size for DM2, the law of the planted head, random positions of the relevant tokens, the "
    "margin divided by |U~|, the attention score averaged over query rows, too."
)


def scales(
    common: Mapping[str, Any], smoke: dict[str, Any], quick: dict[str, Any], paper: dict[str, Any]
) -> dict[str, Any]:
    """The three scales of a figure, with the numbers that the paper leaves open among them."""
    shared = {"optimiser_options": OPTIMISER_OPTIONS, **common}
    return {
        "smoke": {"seeds": 2, "heads": [1, 16], **shared, **smoke},
        "quick": {"seeds": 5, "heads": HEADS, **shared, **quick},
        "paper": {"seeds": 5, "heads": HEADS, **shared, **paper},
    }


def of_reading(settings: Mapping[str, Any], options: Mapping[str, str]) -> dict[str, Any]:
    """The settings under the choices of a reading; what it does not choose stays."""
    data = dict(settings["data_options"])
    if "positions" in options:
        data["relevant"] = options["positions"]
    if options.get("planted") == "fixed":
        data["planted_seed"] = PLANTED_SEED
    data |= {
        name: options[name]
        for name, ours in (("readout", "unit"), ("attention", "gaussian"))
        if options.get(name, ours) != ours
    }
    return {
        **settings,
        "heads": FEWER_HEADS if options.get("heads") == "16" else settings["heads"],
        "data_options": data,
        "step_constant": float(options.get("step", settings["step_constant"])),
        "adam_step": float(options.get("adam", settings["adam_step"])),
        "steps": settings["steps"] * int(options.get("iterations", 1)),
    }


def step_size(settings: Mapping[str, Any], optimiser: str, H: int) -> float:
    """eta of a run: constant for "gd-constant" and Adam, step_constant sqrt(H) otherwise."""
    if optimiser == "adam":
        return float(settings["adam_step"])
    constant = float(settings["step_constant"])
    return constant if optimiser == "gd-constant" else constant * math.sqrt(H)


def head_trials(
    measurement: Measurement,
    settings: Mapping[str, Any],
    seeds: Sequence[int],
    optimisers: Sequence[str],
    **values: Any,
) -> list[Trial]:
    """One run per optimiser, number of heads and seed."""
    return [
        Trial(
            measurement,
            run_config(
                settings,
                width=H,
                seeds=[seed],
                optimiser=optimiser.removesuffix("-constant"),
                eta=step_size(settings, optimiser, H),
                data=settings["data"],
                data_options=settings["data_options"],
                **values,
            ),
            {"run": optimiser, "H": H, "seed": seed},
            f"{optimiser} H={H}",
        )
        for optimiser in optimisers
        for H in settings["heads"]
        for seed in seeds
    ]


def by_heads(measurement: Measurement, runs: Sequence[str], **values: Any) -> Any:
    """The trials of a figure: one run per optimiser, number of heads and seed."""

    def trials(
        settings: Mapping[str, Any], seeds: Sequence[int], options: Mapping[str, str]
    ) -> list[Trial]:
        return head_trials(measurement, of_reading(settings, options), seeds, runs, **values)

    return trials


def register_curves(
    name: str,
    title: str,
    reference: str,
    *,
    panels: Sequence[str],
    draw: Callable[[xr.Dataset, Sequence[Any], str, str], None],
    runs: Mapping[str, str],
    **declared: Any,
) -> Figure:
    """Register a figure with six panels of curves by H for each kind of run (name: title).

    `panels` are averaged over trials; `draw(data, axes, run, title)` draws one kind.
    """

    def statistics(data: xr.Dataset) -> xr.Dataset:
        return averages(data, panels)

    def plot(data: xr.Dataset, axes: Sequence[Any]) -> None:
        for index, (run, own) in enumerate(runs.items()):
            draw(data, axes[6 * index : 6 * index + 6], run, own)
        shared_legend(axes, data.sizes["H"])

    shown: dict[str, Any] = {"statistics": statistics, "plot": plot, "layout": (2 * len(runs), 3)}
    said: dict[str, Any] = {"title": title, "reference": reference, "notes": NOTES, "bands": RANGE}
    axes = open_choices("headcount.papers.deora2024:choices.toml", name)
    return register(Figure(id=f"deora2024/{name}", axes=axes, **said, **shown, **declared))


def averages(data: xr.Dataset, names: Sequence[str]) -> xr.Dataset:
    """Each quantity averaged over trials, as `average_<name>`, with its smallest and largest trial.

    Losses are averaged geometrically: they are drawn on a logarithmic axis. The band is the range
    and no interval: a few runs that end elsewhere are the point, and cosines end at one.
    """
    import xarray as xr

    found: dict[str, Any] = {}
    for name in names:
        values = data[name]
        kind = "geometric" if name in GEOMETRIC else "mean"
        found[f"average_{name}"] = over_seeds(values, name, kind=kind)[name]
        found[f"average_{name}_low"] = values.min("seed")
        found[f"average_{name}_high"] = values.max("seed")
    return xr.Dataset(found)


def lowest(values: Any) -> Any:
    """Of (seed, H) the column of the H with the lowest average over trials."""
    return values[:, int(np.argmin(np.mean(values, axis=0)))]


def reached(data: xr.Dataset, claim: str, values: Any, above: float, **about: Any) -> Finding:
    """That (seed, H) `values` are `above` a level, as the reading asks: on average, or every run.

    On average over trials the H with the lowest average decides; of every run the lowest one,
    which is an exact number.
    """
    if chosen_options(data).get("judged") == "every":
        least = Estimate.exactly(float(np.min(values)))
        return inside(claim, least, (above, math.inf), "lowest run", **about)
    return threshold(claim, lowest(values), above=above, **about)


def points(data: xr.Dataset, name: str) -> Any:
    """The places along a dimension, as numbers to fit a line through."""
    return np.asarray(data[name].values, dtype=float)


def last(data: xr.Dataset, name: str, run: str) -> Any:
    """The values at the last iteration, as an array (seed, H)."""
    return data[name].sel(run=run).isel(k=-1).transpose("seed", "H").values


def over_heads(data: xr.Dataset, name: str, run: str) -> Any:
    """A quantity without iterations, as an array (seed, H)."""
    return data[name].sel(run=run).transpose("seed", "H").values


def draw_curves(
    ax: Any, data: xr.Dataset, name: str, run: str, *, style: str = "-", log: bool = False
) -> None:
    """`average_<name>` against k for every H, with the range over trials."""
    k = np.asarray(data["k"].values, dtype=float)
    for index, H in enumerate(data["H"].values):
        colour = COLOURS[index % len(COLOURS)]
        centre, low, high = (
            data[f"average_{name}{end}"].sel(run=run, H=H).transpose("k").values
            for end in ("", "_low", "_high")
        )
        seen = np.isfinite(centre)
        ax.plot(k[seen], centre[seen], color=colour, linestyle=style, label=f"H = {H}")
        draw_band(ax, k[seen], low[seen], high[seen], colour)
    ax.set_xscale("log")
    ax.xaxis.set_minor_formatter("")
    ax.set_yscale("log" if log else "linear")
    ax.set_xlabel("iteration k")


def shared_legend(axes: Sequence[Any], count: int) -> None:
    """One legend above all panels, of the first panel's first `count` curves."""
    handles, labels = axes[0].get_legend_handles_labels()
    axes[0].figure.legend(
        handles[:count], labels[:count], loc="outside upper center", ncols=count, frameon=False
    )


def reference_line(
    ax: Any, value: float, label: str, *, below: bool = False, right: bool = False
) -> None:
    """A grey dotted level with its name beside it, where no curve runs."""
    ax.axhline(value, color="0.45", linestyle=":")
    ax.annotate(
        label,
        (0.98 if right else 0.02, value),
        xycoords=("axes fraction", "data"),
        xytext=(0, -2 if below else 2),
        textcoords="offset points",
        va="top" if below else "bottom",
        ha="right" if right else "left",
        fontsize=6.5,
        color="0.3",
    )
