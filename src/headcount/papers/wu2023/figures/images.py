"""What the figures on images share: scales, options, trials, and the name of the data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ....lab import NOT_NEGATIVE, Trial
from ..measurements.vit import vit, vit_config
from .curves import SCALINGS, STYLES, draw_curve, finish

if TYPE_CHECKING:
    import xarray as xr

OPTIONS: dict[str, tuple[str, ...]] = {
    "dataset": ("auto", "mnist", "digits"),
    "block": ("relu", "residual", "linear"),
}
TITLES = {"mnist": "MNIST", "digits": "UCI digits 8x8 (ships with Headcount)"}
NOTES = (
    "Given in Sec. 5.2: one layer, one head, d = 64, widths, step 0.1, momentum 0.9, 50 epochs, 3 "
    "runs. Ours where the paper is silent: 7x7 patches (16 tokens), pixels in [0, 1], learned "
    "embedding and positions, trained W_H with 64 rows and relu (Eq. 1.2), mean pooling, linear "
    "read-out with bias, no layer norm, LeCun initialisation, cross-entropy, batches of 128 "
    "without replacement. Losses are over the first training images, after each epoch."
)


def image_scales(**paper: Any) -> dict[str, dict[str, Any]]:
    """The scales of a figure; `paper` has what differs between figures, such as the widths."""
    smoke = {"images": 160, "evaluated": 100, "pairs_of": 20, "epochs": 2, "batch_size": 32}
    quick = {"images": 6000, "evaluated": 2000, "pairs_of": 100, "epochs": 20, "batch_size": 32}
    full = {"images": 60000, "evaluated": 10000, "pairs_of": 100, "epochs": 50, "batch_size": 128}
    small = [16, 64] if len(paper["widths"]) > 1 else [64]
    return {
        "smoke": {"seeds": 2, **smoke, "widths": small},
        "quick": {"seeds": 3, **quick, **paper},
        "paper": {"seeds": 3, **full, **paper},
    }


def image_trials(
    settings: Mapping[str, Any],
    seeds: Sequence[int],
    options: Mapping[str, str],
    task: str = "classes",
    scalings: Iterable[str] = SCALINGS,
    **changed: Any,
) -> list[Trial]:
    """One run per width, scaling and seed, on the data that this machine has."""
    from ....data import chosen_images

    dataset = chosen_images(options["dataset"], download=False)
    result = []
    for d_m in settings["widths"]:
        for scaling in scalings:
            for seed in seeds:
                config = vit_config(
                    dict(settings), dataset, task, d_m, scaling, seed, options["block"]
                )
                place = {"dataset": dataset, "d_m": d_m, "scaling": scaling, "seed": seed}
                group = f"{task} d_m={min(d_m, 128)} {scaling} {d_m}"
                result.append(Trial(vit, {**config, **changed}, place, group))
    return result


def fetch_images(trials: Sequence[Trial]) -> None:
    """Download MNIST where it was asked for by name and is not at hand."""
    from ....data import chosen_images

    for dataset in {str(trial.config["dataset"]) for trial in trials}:
        chosen_images(dataset)


def only_dataset(data: xr.Dataset) -> xr.Dataset:
    """Without the dimension that says which images were used."""
    return data.isel(dataset=0, drop=True)


def say_which_data(data: xr.Dataset, ax: Any) -> None:
    """The name of the data on the figure's face."""
    ax.figure.suptitle(f"data: {TITLES[str(data['dataset'].values.ravel()[0])]}", fontsize=7)


def average_log_ratio(data: xr.Dataset, name: str) -> Any:
    """Mean over epochs >= 1 of log(1/d_m's value / d_m^(-1/2)'s), (seed, width)."""
    values = only_dataset(data)[name].sel(epoch=data["epoch"] > 0)
    slow, fast = (
        values.sel(scaling=scaling).transpose("seed", "d_m", "epoch").values
        for scaling in ("ntk", "realistic")
    )
    return np.mean(np.log(slow) - np.log(fast), axis=-1)


def draw_scalings(
    ax: Any, data: xr.Dataset, name: str, within: tuple[float, float] = NOT_NEGATIVE
) -> None:
    """One curve per width and scaling against the epoch, bands cut off at `within`."""
    chosen = only_dataset(data)
    for index, d_m in enumerate(chosen["d_m"].values):
        for scaling, words in SCALINGS.items():
            one = chosen.sel(d_m=d_m, scaling=scaling)
            label = f"$d_m$ = {d_m}, {words}"
            look: Any = {"label": label, "index": index, "style": STYLES[scaling]}
            draw_curve(ax, one, name, "epoch", within=within, **look)
    finish(ax, "epoch", "")
