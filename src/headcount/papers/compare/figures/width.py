"""compare/width: the width that each paper's theorems ask for, beside what training needs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ....core import papers
from ....lab import Context, Figure, Finding, Measurement, Trial, register, threshold

if TYPE_CHECKING:
    import xarray as xr

DATA: dict[str, dict[str, Any]] = {
    "dm1": {"noise": "bounded", "S": 0.9, "Z_mu": 0.05, "Z_nu": 0.05},
    "digit-pair": {},
}
"""Data sets with labels -1 and +1 and tokens in the unit ball: every paper's model can train."""
TITLES = {"dm1": "tokens of two classes (dm1)", "digit-pair": "digits 0 and 1 (digit-pair)"}
PRINTED = ("printed", "v1", "v2")
"""Variants that are a paper's own words."""
EDGE = 34.0
"""Where the axis ends; what lies beyond is said in words."""
KINDS = {"printed": "as printed", "required": "best known form", "training": "training"}


NEVER = 301.0
"""log10 of the largest width that is tried: what no width reaches is shown there."""


def measure_widths(config: dict[str, Any], context: Context) -> dict[str, Any]:
    """Least widths: of all variants of all theorems, of the printed ones, and in fact.

    `open` is 1 where the theorems' widths are only known to lie beyond what is given. Where
    training does not get there within `most_width`, its width is not a number.
    """
    from ....theory import compare

    (found,) = compare(
        {
            "data": config["data"],
            "data_options": config["data_options"],
            "n": config["n"],
            "width": config["width"],
            "steps": config["steps"],
            "seeds": (config["seed"],),
        },
        share=config["share"],
        most_width=config["most_width"],
        keys=(config["paper"],),
    )
    there = next(iter(found.promised.values()), ())
    first = [answer for answer in found.required if answer.variant in config["printed"]]
    assert found.training is not None
    return {
        "required": least(found.required),
        "printed": least(first),
        "training": least([found.training], never=math.nan),
        "open": float(all(answer.value is None for answer in found.required)),
        "failing": sum(bool(promised.failing) for promised in there),
        "theorems": len(there),
    }


def least(answers: Any, never: float = NEVER) -> float:
    """log10 of the least width among the answers, or of what it must exceed if that is all."""
    known = [answer.value or answer.beyond for answer in answers]
    widths = [width for width in known if width is not None]
    return math.log10(min(widths)) if widths else never


widths = Measurement(
    name="compare-width",
    version=4,
    function=measure_widths,
    outputs=dict.fromkeys(("required", "printed", "training", "open", "failing", "theorems"), ()),
    estimate=lambda config: (2.0 + 2e-4 * config["steps"] * config["most_width"], 5e8),
    may_be_nan=("training",),
)


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
    """The median over seeds of every logarithm, between the smallest and the largest.

    A width that no seed's theorem or training gives is infinite: it has a place in the order, and
    no average.
    """
    import xarray as xr

    found = {}
    for kind in KINDS:
        logs = data[kind].where(data[kind] < NEVER - 1, np.inf)
        found[f"{kind}_median"] = logs.reduce(_upper_median, "seed")
        found[f"{kind}_low"], found[f"{kind}_high"] = logs.min("seed"), logs.max("seed")
    return xr.Dataset(found)


def _upper_median(values: np.ndarray, axis: int) -> np.ndarray:
    """The middle value, of two the larger: nothing is averaged with what is infinite."""
    return np.take(np.sort(values, axis=axis), values.shape[axis] // 2, axis=axis)


def findings(data: xr.Dataset) -> list[Finding]:
    """For every paper and data set: theorem over training, and whether training got there."""
    found = []
    for paper in data["paper"].values:
        for name in data["data"].values:
            one = data.sel(paper=paper, data=name)
            excess = (one["required"].clip(max=EDGE) - one["training"]).values
            claim = f"{paper} on {name}: its theorems ask for more width than training needs"
            found.append(threshold(claim, excess, above=0.0))
    return found


def plot(data: xr.Dataset, axes: Sequence[Any]) -> None:
    """One panel per data set: widths on a log axis, one row per paper; none beyond the axis."""
    colours = {"printed": "#D55E00", "required": "#E69F00", "training": "#0072B2"}
    for ax, name in zip(axes, data["data"].values, strict=True):
        rows = np.arange(data.sizes["paper"])
        for shift, (kind, label) in zip((-0.2, 0.0, 0.2), KINDS.items(), strict=True):
            middle = data[f"{kind}_median"].sel(data=name).values
            ax.plot(
                np.where(middle <= EDGE, middle, np.nan),
                rows + shift,
                "o",
                color=colours[kind],
                label=label,
                ms=4,
            )
            for row, value in zip(rows, middle, strict=True):
                seeds = data.sel(data=name).isel(paper=row)
                label = label_of(value, seeds[kind].values, kind, bool(seeds["open"].any()))
                _write(ax, label, value, row + shift, kind, colours[kind])
        ax.set_yticks(rows, [short_name(key) for key in data["paper"].values])
        powers = range(0, int(EDGE) + 9, 10)
        ax.set_xticks(powers, [f"$10^{{{power}}}$" for power in powers])
        ax.set(title=TITLES[name], xlabel="width: heads or hidden units", xlim=(-1, EDGE + 9))
        ax.set_ylim(len(rows) - 0.5, -0.5)
    handles = axes[0].get_legend_handles_labels()
    axes[0].figure.legend(*handles, fontsize=7, ncols=3, loc="outside upper center", frameon=False)


def short_name(key: str) -> str:
    """A paper as one speaks of it: Arda et al. (2026)."""
    first, _, year = papers[key].citation.replace(",", " ").partition("(")
    return f"{first.split()[0]} et al. ({year}"


def number(value: float) -> str:
    """Three digits, or two and a power of ten from 1,000 on."""
    if value < 1e3:
        return f"{value:.3g}"
    digits, _, power = f"{value:.1e}".partition("e")
    return f"${digits} \\cdot 10^{{{int(power)}}}$"


def _write(ax: Any, label: str, value: float, row: float, kind: str, colour: str) -> None:
    """Beside its point; what has none stands at the end of the axis, training's at its start."""
    style: dict[str, Any] = {"textcoords": "offset points", "fontsize": 6}
    if value <= EDGE:
        ax.annotate(label, (value, row), (5, -2), **style)
    elif kind == "training":
        ax.annotate(label, (0, row), (0, -2), color=colour, **style)
    else:
        ax.annotate(label, (EDGE + 8.5, row), (0, -2), ha="right", color=colour, **style)


def label_of(middle: float, logs: np.ndarray, kind: str, open_ended: bool) -> str:
    """The width behind the median of the logarithms, and how many seeds have none."""
    word = "not reached" if kind == "training" else "never"
    missing = int(np.sum(~(logs < NEVER - 1)))
    if missing == len(logs):
        return word
    if not math.isfinite(middle):
        return f"{word} ({missing} of {len(logs)} seeds)"
    larger = "> " if open_ended and kind != "training" and not missing else ""
    several = f" ({word}: {missing} of {len(logs)} seeds)" if missing else ""
    return f"{larger}{number(10**middle)}{several}"


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
            "drawn up to some width only: beyond it, a width is known to be larger (>). "
            "Shown is the median seed."
        ),
    )
)
