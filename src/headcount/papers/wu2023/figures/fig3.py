"""wu2023, Figure 3: vectors as one long token, as many short ones, and a two-layer network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ....lab import Figure, Finding, Trial, open_choices, over_seeds, register, threshold
from .curves import STYLES, by_seed, draw_curve, finish, with_stability
from .descent import NORMALISATIONS, descent
from .fig2 import NOTES, converged, mark_divergence
from .sentences import MANY_TOKENS, ONE_TOKEN, SAME_AS_TWO_LAYERS

if TYPE_CHECKING:
    import xarray as xr

INPUTS: dict[str, tuple[str, str]] = {
    "d_s = 1, d = D": ("wu2023", "row"),
    "d_s = D, d = 1": ("wu2023", "column"),
    "two-layer": ("two-layer-relu", "row"),
}
SAME = 1e-6
"""Losses whose logarithms differ by less at every epoch count as the same; float64 is used."""
ROUNDING = 1e-12
"""Below this part of its start a loss is made of rounding errors of f to a visible degree."""


def trials(
    settings: Mapping[str, Any], seeds: Sequence[int], options: Mapping[str, str]
) -> list[Trial]:
    """One run per kind of input and seed; the same vectors and labels in all three."""
    from ....training import TrainConfig

    chosen, result = NORMALISATIONS[options["normalisation"]], []
    for words, (model, layout) in INPUTS.items():
        own = {"scaling": "ntk", "pooling": chosen["pooling"]} if model == "wu2023" else {}
        for seed in seeds:
            config = TrainConfig.of(
                {
                    "model": model,
                    "width": settings["width"],
                    "init": "lecun",
                    "model_options": own,
                    "data": "vector-input",
                    "data_options": {
                        "D": settings["D"], "layout": layout, "tokens": chosen["tokens"],
                    },
                    "n": settings["n"],
                    "seeds": [seed],
                    "loss": chosen["loss"],
                    "optimiser": "gd",
                    "eta": None if options["gamma"] == "lambda" else 1.0,
                    "steps": settings["epochs"],
                    "dtype": "float64",
                }
            ).model_dump(mode="json")  # fmt: skip
            result.append(Trial(descent, config, {"input": words, "seed": seed}, words))
    return result


def statistics(data: xr.Dataset) -> xr.Dataset:
    """Losses per kind of input."""
    import xarray as xr

    parts = [over_seeds(data["loss"], kind="geometric"), over_seeds(data["stability"])]
    return xr.merge([*parts, over_seeds(data["finite"])])


def verdicts(data: xr.Dataset) -> list[Finding]:
    """One long token is the two-layer network; many short ones do not converge [Corollary 1]."""
    row, column, two = (by_seed(data["loss"].sel(input=words), "epoch") for words in INPUTS)
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = np.abs(np.log(row) - np.log(two))
    apart = np.max(np.where(row > ROUNDING * row[:, :1], gap, 0.0), axis=1)
    return [
        threshold(
            "d_s = 1: the loss is that of the two-layer network, down to 1e-12 (log difference)",
            apart,
            below=SAME,
            source=SAME_AS_TWO_LAYERS,
        ),
        converged("d_s = 1: converges (loss below 1e-4 of its start)", row, ONE_TOKEN),
        converged("d_s = D: does not converge", column, MANY_TOKENS, expected=False),
        threshold(
            "d_s = D: keeps over half of its first loss", column[:, -1] / column[:, 0], above=0.5
        ),
    ]


def plot(data: xr.Dataset, axes: Sequence[Any]) -> None:
    """Three losses against epochs."""
    (ax,) = axes
    for index, words in enumerate(INPUTS):
        one = data.sel(input=words)
        style = STYLES["ntk"] if words == "two-layer" else "-"
        label = with_stability(words, one)
        draw_curve(ax, one, "geometric_loss", "epoch", label=label, index=index, style=style)
        mark_divergence(ax, one, index)
    finish(ax, "epoch", "$|f - y|^2 / 2N$", log_y=True)


figure = register(
    Figure(
        id="wu2023/fig3",
        title="Vectors as one token or as many: loss along training beside a two-layer network",
        reference="[wu2023, Fig. 3, Corollary 1]",
        scales={
            "smoke": {"seeds": 2, "n": 12, "D": 8, "width": 16, "epochs": 16},
            "quick": {"seeds": 5, "n": 100, "D": 100, "width": 100, "epochs": 400},
            "paper": {"seeds": 10, "n": 100, "D": 100, "width": 100, "epochs": 400},
        },
        trials=trials,
        statistics=statistics,
        verdicts=verdicts,
        plot=plot,
        axes=open_choices("headcount.papers.wu2023:choices.toml", "fig3"),
        notes=f"{NOTES} LeCun, tau0 = 1/d_m, width 100; gamma = 1 and the epochs are ours.",
    )
)
