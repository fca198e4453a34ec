"""wu2023, Figure 6: Assumption 3 on the tokens of a vision Transformer, before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ....lab import Finding, Trial
from .images import image_figure, image_trials
from .sentences import DECAY_OF_IMAGES
from .tails import draw_tail, tail_statistics, tail_verdicts

if TYPE_CHECKING:
    import xarray as xr

WHEN = ("before", "after")


def trials(
    settings: Mapping[str, Any], seeds: Sequence[int], options: Mapping[str, str]
) -> list[Trial]:
    """The runs of Figure 4 with one scale."""
    return image_trials(settings, seeds, options, scalings=(options["scaling"],))


def _one(data: xr.Dataset) -> xr.Dataset:
    return data.isel(d_m=0, scaling=0, drop=True)


def statistics(data: xr.Dataset) -> xr.Dataset:
    """Quantiles of the pair products, and the fitted exponents."""
    return tail_statistics(_one(data), [f"_{when}" for when in WHEN])


def verdicts(data: xr.Dataset) -> list[Finding]:
    """Before and after training."""
    one = _one(data)
    return [
        finding
        for when in WHEN
        for finding in tail_verdicts(one, f"_{when}", f"{when} training: ", DECAY_OF_IMAGES)
    ]


def plot(data: xr.Dataset, axes: Sequence[Any]) -> None:
    """The tail and its fit, on two panels."""
    for index, when in enumerate(WHEN):
        draw_tail(axes, data, f"_{when}", f"{when} training", index)


figure = image_figure(
    6,
    "Assumption 3 on images: tail of the pair products of a vision Transformer's tokens",
    place="App. E.2",
    widths=[1024],
    trials=trials,
    statistics=statistics,
    verdicts=verdicts,
    plot=plot,
    notes="X are the embedded tokens of 100 random training images, divided by |X|_F.",
)
