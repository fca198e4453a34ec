"""Beyond deora2024: how far fine-tuning moves the tangent kernel of a pretrained encoder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ....lab import Figure, Finding, Trial, monotone, over_seeds, register, threshold
from ..measurements.text_kernel import CURVES, text_kernel
from .curves import reference_line
from .text import (
    OPTIONS,
    draw_by_heads,
    fetch_text,
    head_counts,
    made_up,
    one_setting,
    text_setting,
)

if TYPE_CHECKING:
    import xarray as xr

LAZY = 0.1
"""A kernel that changes by less than this part counts as lazy."""
PANELS = {
    "kernel_change_readout": "read-out: $|K - K_0| / |K_0|$",
    "kernel_change_attention": "attention: $|K - K_0| / |K_0|$",
    "movement_attention": "attention: $|\\theta - \\theta_0| / |\\theta_0|$",
    "loss": "loss on the sentences of $K$",
}


def trials(
    settings: Mapping[str, Any], seeds: Sequence[int], options: Mapping[str, str]
) -> list[Trial]:
    """One run per number of heads and seed."""
    shared, place = text_setting(settings, options)
    more = {name: settings[name] for name in ("records", "kernel_samples")}
    return [
        Trial(
            text_kernel, {**shared, **more, "h": h, "seed": seed}, {**place, "h": h, "seed": seed}
        )
        for seed in seeds
        for h in head_counts(settings, shared)
    ]


def statistics(data: xr.Dataset) -> xr.Dataset:
    """All curves averaged over seeds."""
    import xarray as xr

    one = one_setting(data)
    return xr.merge([over_seeds(one[name]) for name in CURVES if name != "epoch"])


def verdicts(data: xr.Dataset) -> list[Finding]:
    """Lazy or not, by block, and whether more heads are lazier."""
    one = one_setting(data)
    h = np.asarray(one["h"].values, dtype=float)
    found = []
    for block, words in (("readout", "read-out"), ("attention", "attention blocks")):
        change = one[f"kernel_change_{block}"].transpose("seed", "h", "record").values[:, :, -1]
        claim = f"lazy, {h[-1]:g} heads: the kernel of the {words} changes by less than {LAZY:.0%}"
        found.append(threshold(claim, change[:, -1], below=LAZY))
        claim = f"more heads are lazier: the change of the kernel of the {words} falls with h"
        found.append(monotone(claim, h, change, "decreasing"))
    moved = one["movement_attention"].transpose("seed", "h", "record").values[:, -1, -1]
    claim = f"lazy, {h[-1]:g} heads: the attention's weights move by less than {LAZY:.0%}"
    return [*found, threshold(claim, moved, below=LAZY)]


def plot(data: xr.Dataset, axes: Sequence[Any]) -> None:
    """Change of both kernels, movement of weights and loss against the epoch."""
    draw_by_heads(data, axes, PANELS, "o-")
    for ax, name in zip(axes, PANELS, strict=True):
        if name != "loss":
            reference_line(ax, LAZY, "lazy below this line", below=True)


_SHARED: dict[str, Any] = {"batch_size": 32, "longest": 128, "validated": 1}

figure = register(
    Figure(
        id="deora2024/text-kernel",
        title="Tangent kernel of a pretrained encoder during fine-tuning: drift by block",
        reference="[beyond deora2024, Fig. 6]",
        scales={
            "smoke": {
                "seeds": 2, "head_counts": [1, 12], "sentences": 64, "epochs": 2, "records": 2,
                "kernel_samples": 12, **_SHARED,
            },
            "quick": {
                "seeds": 3, "head_counts": [1, 12], "sentences": 1600, "epochs": 3, "records": 3,
                "kernel_samples": 100, **_SHARED,
            },
            "paper": {
                "seeds": 2, "head_counts": [1, 4, 12], "sentences": 6920, "epochs": 5,
                "records": 5, "kernel_samples": 200, **_SHARED,
            },
        },
        trials=trials,
        statistics=statistics,
        verdicts=verdicts,
        plot=plot,
        options=OPTIONS,
        prepare=fetch_text,
        stand_in=made_up,
        layout=(2, 2),
        notes="Beyond the paper. The kernel is that of the logit in the parameters of the read-out "
        "and of all attention blocks, in float32, on sentences that are trained on; fine-tuning as "
        "in deora2024/fig6. The theory's lazy regime is a kernel that hardly changes.",
    )
)  # fmt: skip
