"""wu2023, Figure 4: a vision Transformer on MNIST, two softmax scalings, and its attention."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ....lab import (
    SANITY,
    Finding,
    difference,
    draw_interval,
    inside,
    mean,
    monotone,
    over_seeds,
    separation,
    threshold,
    tick_at,
)
from ....lab._drawing import NOT_NEGATIVE
from .curves import SCALINGS, by_seed, finish, numbers
from .images import average_log_ratio, draw_scalings, image_figure
from .sentences import ALIKE as SIMILAR
from .sentences import ATTENTION, EXTREMELY, SLOWER

if TYPE_CHECKING:
    import xarray as xr

ALIKE = math.log(1.5)
"""Losses within a factor 1.5, on average over epochs, count as alike."""
A_LOT = 0.25
"""Mean distance of attention rows (half the l1 distance, at most 1) that counts as a lot."""
EARLY = 10
"""Extremely slow: after all epochs not yet where the other scaling is after a tenth of them."""


def statistics(data: xr.Dataset) -> xr.Dataset:
    """Losses per epoch, attention's movement per width, and maps of one seed and image."""
    import xarray as xr

    shown = data.sel(scaling="realistic", drop=True)
    shown = shown.isel(seed=0, d_m=min(1, data.sizes["d_m"] - 1), drop=True)
    maps = {f"map_{when}": shown[f"attention_{when}"] for when in ("before", "after")}
    parts = [
        over_seeds(data["loss"], kind="geometric"),
        over_seeds(data["attention_change"]),
        over_seeds(data["attention_unevenness"]),
    ]
    return xr.merge([*parts, xr.Dataset(maps)])


def verdicts(data: xr.Dataset) -> list[Finding]:
    """Alike when narrow, slower when wide, hardly moving when widest; attention changes."""
    widths, ratio = data["d_m"].values, average_log_ratio(data, "loss")
    claim = f"width {widths[0]}: both scalings converge alike (loss within a factor 1.5)"
    near, what = (-ALIKE, ALIKE), "mean log ratio of the losses"
    found = [inside(claim, mean(ratio[:, 0]), near, what, source=SIMILAR)]
    for i, d_m in enumerate(widths[1:], 1):
        claim = f"width {d_m}: training is slower with 1/d_m (mean log ratio of the losses)"
        found.append(threshold(claim, ratio[:, i], above=0.0, source=SLOWER))
    finite = np.isfinite(data["loss"].isel(epoch=-1).transpose("d_m", "seed", "scaling").values)
    for d_m, ends in zip(widths, finite.mean(axis=2), strict=True):
        claim = f"width {d_m}: training stays finite"
        found.append(threshold(claim, ends, above=0.99, source=SANITY))
    claim = "the lag of 1/d_m grows with the width"
    found.append(monotone(claim, numbers(data, "d_m"), ratio, "increasing"))
    found.append(_extremely_slow(data))
    change = data["attention_change"]
    claim = "attention changes a lot in training with d_m^(-1/2), on average over the widths"
    moved = by_seed(change.sel(scaling="realistic"), "d_m").mean(axis=1)
    found.append(threshold(claim, moved, above=A_LOT, source=ATTENTION))
    claim = f"width {widths[-1]}: attention moves less with 1/d_m than with d_m^(-1/2)"
    realistic, ntk = (change.sel(d_m=widths[-1], scaling=s).values for s in ("realistic", "ntk"))
    return [*found, difference(claim, realistic, ntk)]


def _extremely_slow(data: xr.Dataset) -> Finding:
    widest = data["loss"].isel(d_m=-1)
    early = max(1, (data.sizes["epoch"] - 1) // EARLY)
    slow = by_seed(widest.sel(scaling="ntk"), "epoch")[:, -1]
    fast = by_seed(widest.sel(scaling="realistic"), "epoch")[:, early]
    epochs = data.sizes["epoch"] - 1
    claim = (
        f"width {data['d_m'].values[-1]}: extremely slow with 1/d_m, its loss after {epochs} "
        f"epochs is above that of d_m^(-1/2) after {early}"
    )
    return separation(claim, slow, fast, source=EXTREMELY)


def plot(data: xr.Dataset, axes: Sequence[Any]) -> None:
    """Loss against epochs, movement of attention against width, maps before and after."""
    losses, change, before, after = axes
    draw_scalings(losses, data, "geometric_loss")
    losses.set_yscale("log")
    losses.set_ylabel("training loss")
    for index, (scaling, words) in enumerate(SCALINGS.items()):
        one = data.sel(scaling=scaling)
        # Colours that no width has in the first panel.
        look: Any = {"label": words, "index": 3 + index, "within": NOT_NEGATIVE}
        draw_interval(change, one, "mean_attention_change", "d_m", **look)
    change.set_xscale("log")
    tick_at(change, data["d_m"].values)
    finish(change, "width $d_m$", "attention moved in training")
    top = float(np.nanmax([data["map_before"].max(), data["map_after"].max()]))
    for ax, when in ((before, "before"), (after, "after")):
        image = ax.imshow(data[f"map_{when}"].values, cmap="viridis", vmin=0, vmax=top)
        ax.set_title(f"attention {when} training, $d_m^{{-1/2}}$")
        ax.set_xlabel("key token")
        ax.set_ylabel("query token")
        ax.grid(visible=False)
        ax.figure.colorbar(image, ax=ax)


figure = image_figure(
    4,
    "A vision Transformer on MNIST: training loss by width and softmax scale; attention",
    place="Sec. 5.2",
    widths=[16, 1024, 16384],
    statistics=statistics,
    verdicts=verdicts,
    plot=plot,
    layout=(2, 2),
)
