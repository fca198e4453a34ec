"""compare/width: the width that each paper's theorems ask for, beside what training needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ....core import papers
from ....lab import Figure, Finding, Trial, over_seeds, register, threshold
from ..measurement import NEVER, widths

if TYPE_CHECKING:
    import xarray as xr

DATA: dict[str, dict[str, Any]] = {
    "dm1": {"noise": "bounded", "S": 0.9, "Z_mu": 0.05, "Z_nu": 0.05},
    "digit-pair": {},
}
"""Data sets with labels -1 and +1 and tokens in the unit ball: every paper's model can train."""
PRINTED = ("printed", "v1", "v2")
"""Variants that are a paper's own words."""
EDGE = 34.0
"""Where the axis ends: larger widths are drawn there, with their number."""
KINDS = {"printed": "as printed", "required": "best known form", "training": "training"}


def trials(
    settings: Mapping[str, Any], seeds: Sequence[int], options: Mapping[str, str]
) -> list[Trial]:
    """Every paper with theorems about widths on every data set."""
    asked = [key for key, paper in papers.items() if paper.setting is not None and paper.models]
    return [
        Trial(
            widths,
            {
                "paper": key,
                "data": data,
                "data_options": data_options,
                "printed": list(PRINTED),
                "seed": seed,
                **{name: value for name, value in settings.items() if name != "seeds"},
            },
            {"paper": key, "data": data, "seed": seed},
            group=f"{key} {data}",
        )
        for key in asked
        for data, data_options in DATA.items()
        for seed in seeds
    ]


def statistics(data: xr.Dataset) -> xr.Dataset:
    """Means over seeds of the logarithms, with intervals."""
    import xarray as xr

    return xr.merge([over_seeds(data[kind], f"{kind}_mean") for kind in KINDS])


def findings(data: xr.Dataset) -> list[Finding]:
    """For every paper and data set: theorem over training, and whether training got there."""
    found = []
    for paper in data["paper"].values:
        for name in data["data"].values:
            one = data.sel(paper=paper, data=name)
            excess = (one["required"] - one["training"]).values
            claim = f"{paper} on {name}: its theorems ask for more width than training needs"
            found.append(threshold(claim, excess, above=0.0))
    return found


def plot(data: xr.Dataset, axes: Sequence[Any]) -> None:
    """One panel per data set: widths on a log axis, one row per paper."""
    colours = {"printed": "#D55E00", "required": "#E69F00", "training": "#0072B2"}
    for ax, name in zip(axes, data["data"].values, strict=True):
        rows = np.arange(data.sizes["paper"])
        beyond = data["open"].sel(data=name).max("seed").values > 0
        for shift, (kind, label) in zip((-0.2, 0.0, 0.2), KINDS.items(), strict=True):
            middle = data[f"{kind}_mean"].sel(data=name).values
            shown = np.minimum(middle, EDGE)
            ax.plot(shown, rows + shift, "o", color=colours[kind], label=label, ms=4)
            for x, y, value, more in zip(shown, rows + shift, middle, beyond, strict=True):
                text, x = ("not reached", -0.2) if np.isnan(value) else (label_of(value), x)
                if more and kind != "training" and value < NEVER - 1:
                    text = f"> {text}"
                ax.annotate(text, (x, y), (5, -2), textcoords="offset points", fontsize=6)
        ax.set_yticks(rows, data["paper"].values)
        ax.set(title=f"data: {name}", xlabel="log10 of the width", xlim=(-1, EDGE + 9))
        ax.set_ylim(len(rows) - 0.5, -0.5)
    handles = axes[0].get_legend_handles_labels()
    axes[0].figure.legend(*handles, fontsize=7, ncols=3, loc="outside upper center", frameon=False)


def label_of(value: float) -> str:
    """The width behind a logarithm, or "never"."""
    if value >= NEVER - 1:
        return "never"
    return f"{10**value:.3g}"


COMMON = {"width": 64, "share": 0.1}

figure = register(
    Figure(
        id="compare/width",
        title="Width to bring the loss to a tenth of its start: theorems and training",
        reference="all papers",
        scales={
            "smoke": {**COMMON, "n": 10, "steps": 20, "most_width": 4, "seeds": 2},
            "quick": {**COMMON, "n": 30, "steps": 400, "most_width": 64, "seeds": 5},
            "paper": {**COMMON, "n": 100, "steps": 1500, "most_width": 256, "seeds": 5},
        },
        trials=trials,
        statistics=statistics,
        verdicts=findings,
        plot=plot,
        layout=(1, 2),
        notes=(
            "Every paper trains its own model on its own loss; labels are -1 and +1. A theorem "
            "whose hypotheses fail at every width asks for one that is never reached. A start is "
            "drawn up to some width only: beyond it, a width is known to be larger (>)."
        ),
    )
)
