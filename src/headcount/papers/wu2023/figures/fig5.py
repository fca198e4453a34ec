"""wu2023, Figure 5: the loss under LeCun, He and NTK initialisation, and NTK with gamma = 10."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ....lab import (
    SANITY,
    Figure,
    Finding,
    Trial,
    inside,
    open_choices,
    over_seeds,
    paired_difference,
    register,
    separation,
    steps_below,
    threshold,
)
from ....lab._readings import chosen_options
from .curves import by_seed, draw_curve, finish, with_stability
from .descent import descent, run_settings
from .fig2 import NOTES, SCALES, mark_divergence
from .sentences import INITIALISATIONS

if TYPE_CHECKING:
    import xarray as xr

PANELS: dict[str, tuple[str, float]] = {
    "LeCun, gamma = 1": ("lecun", 1.0),
    "He, gamma = 1": ("he", 1.0),
    "NTK, gamma = 1": ("ntk", 1.0),
    "NTK, gamma = 10": ("ntk", 10.0),
}
TENFOLD = 0.1
"""Speed is told by the epochs until the loss is this part of its start."""
ALIKE = 2.0
"""Within this factor two numbers of epochs count as similar."""


def trials(
    settings: Mapping[str, Any], seeds: Sequence[int], options: Mapping[str, str]
) -> list[Trial]:
    """One run per panel, width and seed."""
    result = []
    for panel, (init, gamma) in PANELS.items():
        for d_m in settings["widths"]:
            for seed in seeds:
                config = run_settings(
                    options["normalisation"], d_m=d_m, init=init, scaling=options["scaling"],
                    gamma=gamma, settings=settings, seed=seed, options=options,
                )  # fmt: skip
                place = {"panel": panel, "d_m": d_m, "seed": seed}
                result.append(Trial(descent, config, place, f"{panel} d_m={d_m}"))
    return result


def epochs_needed(loss: Any) -> Any:
    """First epoch with a loss below a tenth of its start; infinite: none; NaN: the run died."""
    return steps_below(loss, TENFOLD * loss[..., :1])


def statistics(data: xr.Dataset) -> xr.Dataset:
    """Losses, the epochs that they need to fall tenfold, stability, and finite runs."""
    import xarray as xr

    loss = data["loss"].transpose(..., "epoch")
    needed = loss.isel(epoch=0, drop=True).copy(data=epochs_needed(loss.values))
    parts = [over_seeds(loss, kind="geometric"), over_seeds(needed.rename("tenfold"))]
    return xr.merge([*parts, over_seeds(data["stability"]), over_seeds(data["finite"])])


def verdicts(data: xr.Dataset) -> list[Finding]:
    """LeCun and He alike, NTK slower, gamma = 10 as fast as LeCun; at every width judged."""
    lecun, he, ntk, ntk10 = PANELS
    found = []
    first = 1 if chosen_options(data)["widths"] == "converging" else 0
    for d_m in data["d_m"].values[first:]:
        one = data.sel(d_m=d_m)
        needed = {p: epochs_needed(by_seed(one["loss"].sel(panel=p), "epoch")) for p in PANELS}
        log = {panel: np.log(values) for panel, values in needed.items()}
        near = (-math.log(ALIKE), math.log(ALIKE))
        what = "log ratio of epochs for a tenth of the loss"
        claim, source = f"width {d_m}: He is as fast as LeCun", INITIALISATIONS
        apart = paired_difference(log[he], log[lecun])
        found.append(inside(claim, apart, near, what, source=source))
        claim = f"width {d_m}: NTK is slower than LeCun at gamma = 1"
        found.append(separation(claim, needed[ntk], needed[lecun], source=source))
        claim = f"width {d_m}: NTK with gamma = 10 is faster than with gamma = 1"
        found.append(separation(claim, needed[ntk], needed[ntk10]))
        claim = f"width {d_m}: NTK with gamma = 10 is about as fast as LeCun with 1"
        found.append(inside(claim, paired_difference(log[ntk10], log[lecun]), near, what))
    for panel in PANELS:
        finite = by_seed(data["finite"].sel(panel=panel), "d_m").mean(axis=1)
        claim = f"{panel}: training stays finite"
        found.append(threshold(claim, finite, above=0.99, source=SANITY))
    return found


def plot(data: xr.Dataset, axes: Sequence[Any]) -> None:
    """One panel per initialisation, one curve per width."""
    for ax, panel in zip(axes, PANELS, strict=True):
        for index, d_m in enumerate(data["d_m"].values):
            one = data.sel(d_m=d_m, panel=panel)
            label = with_stability(f"$d_m$ = {d_m}", one)
            draw_curve(ax, one, "geometric_loss", "epoch", label=label, index=index)
            mark_divergence(ax, one, index)
        ax.set_title(panel)
        finish(ax, "epoch", "$|f - y|^2 / 2N$", log_y=True)


figure = register(
    Figure(
        id="wu2023/fig5",
        title="Loss along training under LeCun, He and NTK initialisation",
        reference="[wu2023, Fig. 5, App. E.1]",
        scales=SCALES,
        trials=trials,
        statistics=statistics,
        verdicts=verdicts,
        plot=plot,
        axes=open_choices("headcount.papers.wu2023:choices.toml", "fig5"),
        layout=(2, 2),
        notes=NOTES,
    )
)
