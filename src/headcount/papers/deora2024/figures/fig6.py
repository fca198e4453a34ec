"""deora2024, Figure 6: a pretrained encoder fine-tuned on SST-2, by the number of heads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ....lab import (
    SANITY,
    Figure,
    Finding,
    Source,
    Trial,
    monotone,
    open_choices,
    over_seeds,
    register,
    threshold,
)
from .text import (
    OPTIONS,
    draw_by_heads,
    fetch_text,
    finetuning,
    head_counts,
    made_up,
    one_setting,
    text_setting,
)

if TYPE_CHECKING:
    import xarray as xr

PANELS = {
    "train_loss": "training loss",
    "train_accuracy": "training accuracy",
    "validation_loss": "validation loss",
    "validation_accuracy": "validation accuracy",
}
FASTER = Source(
    "increasing the number of heads speeds up the training and generalization dynamics",
    "Fig. 6, caption",
)
PLAUSIBLE = 0.88
"""What a small pretrained encoder with all heads reaches on SST-2 sentences when fully tuned."""
WELL_TUNED = f"with all heads the validation accuracy at the end is above {PLAUSIBLE}"


def trials(
    settings: Mapping[str, Any], seeds: Sequence[int], options: Mapping[str, str]
) -> list[Trial]:
    """One run per number of heads and seed."""
    shared, place = text_setting(settings, options)
    return [
        Trial(
            finetuning,
            {**shared, "records": settings["records"], "h": h, "seed": seed},
            {**place, "h": h, "seed": seed},
            "" if options["heads"] == "mask" else f"h={h}",
        )
        for seed in seeds
        for h in head_counts(settings, shared)
    ]


def statistics(data: xr.Dataset) -> xr.Dataset:
    """The four curves averaged over seeds, and their means along the run."""
    import xarray as xr

    one = one_setting(data)
    along = [over_seeds(one[name].mean("record"), f"run_{name}") for name in PANELS]
    return xr.merge([over_seeds(one[name]) for name in PANELS] + along)


def verdicts(data: xr.Dataset) -> list[Finding]:
    """Faster optimisation and generalisation with more heads; and whether numbers are plausible."""
    one = one_setting(data)
    h = np.asarray(one["h"].values, dtype=float)
    found = []
    for name, words in PANELS.items():
        direction = "decreasing" if name.endswith("loss") else "increasing"
        verb = "falls" if name.endswith("loss") else "rises"
        curves = one[name].transpose("seed", "h", "record").values[:, :, 1:]
        claim = f"more heads are faster: the {words}, averaged along the run, {verb} with h"
        along = np.nanmean(curves, axis=-1)
        found.append(monotone(claim, h, along, direction, source=FASTER))
        claim = f"the {words} at the end {verb} with h"
        found.append(monotone(claim, h, curves[:, :, -1], direction))
    last = one["validation_accuracy"].transpose("seed", "h", "record").values[:, -1, -1]
    return [*found, threshold(WELL_TUNED, last, above=PLAUSIBLE, source=SANITY)]


def plot(data: xr.Dataset, axes: Sequence[Any]) -> None:
    """Four panels against the epoch, one curve per number of heads."""
    draw_by_heads(data, axes, PANELS)


_SHARED: dict[str, Any] = {"batch_size": 32, "longest": 128}

figure = register(
    Figure(
        id="deora2024/fig6",
        title="SST-2 with a pretrained encoder: effect of the number of heads",
        reference="[deora2024, Fig. 6, App. G]",
        scales={
            "smoke": {
                "seeds": 2, "head_counts": [1, 12], "sentences": 96, "validated": 64, "epochs": 2,
                "records": 4, **_SHARED,
            },
            "quick": {
                "seeds": 3, "head_counts": [1, 4, 12], "sentences": 1600, "validated": 300,
                "epochs": 3, "records": 6, **_SHARED,
            },
            "paper": {
                "seeds": 2, "head_counts": [1, 4, 12], "sentences": 67349, "validated": 872,
                "epochs": 5, "records": 20, **_SHARED,
            },
        },
        trials=trials,
        statistics=statistics,
        verdicts=verdicts,
        plot=plot,
        axes=open_choices("headcount.papers.deora2024:choices.toml", "fig6"),
        options=OPTIONS,
        prepare=fetch_text,
        stand_in=made_up,
        layout=(2, 2),
        needs={WELL_TUNED: {"sentences": 6920, "epochs": 5}},
        notes="Given: roberta-base, AdamW 5e-6, batches of 32, 5 epochs. Ours: the numbers of "
        "heads and what they mean (heads=mask keeps the first h of every layer, heads=resplit "
        "cuts the same width into h), constant rate, weight decay 0.01, no dropout, sentences cut "
        "at 128 tokens, a new read-out per seed; model=minilm is small enough for a laptop. "
        "Training numbers are means over the batches since the last record.",
    )
)  # fmt: skip
