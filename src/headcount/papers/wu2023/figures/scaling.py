"""Beyond the figures of wu2023: where attention matters, which softmax scale trains faster?

Raw tokens have logits of size 1 with d_m^(-1/2) and d_m^(-1/2) with 1/d_m [Sec. 5.1].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ....lab import (
    OURS,
    Figure,
    Finding,
    Trial,
    draw_interval,
    monotone,
    open_choices,
    over_seeds,
    register,
    separation,
    tick_at,
)
from .curves import SCALINGS, STYLES, by_seed, draw_curve, finish, numbers
from .descent import scaled_descent, scaled_settings
from .fig5 import epochs_needed
from .sentences import FASTER

if TYPE_CHECKING:
    import xarray as xr


def trials(
    settings: Mapping[str, Any], seeds: Sequence[int], options: Mapping[str, str]
) -> list[Trial]:
    """One run per width, scaling and seed, each with gamma = 1/lambda_max of its own kernel."""
    return [
        Trial(
            scaled_descent,
            scaled_settings(
                d_m=d_m, scaling=scaling, settings=settings, seed=seed, options=options
            ),
            {"d_m": d_m, "scaling": scaling, "seed": seed},
            f"d_m={d_m} {scaling}",
        )
        for d_m in settings["widths"]
        for scaling in SCALINGS
        for seed in seeds
    ]


def log_ratio(slow: Any, fast: Any) -> Any:
    """log(slow/fast); NaN where neither got there."""
    with np.errstate(invalid="ignore"):
        return np.log(slow) - np.log(fast)


def statistics(data: xr.Dataset) -> xr.Dataset:
    """Losses, the epochs until a tenth of the loss, and the log ratio of these."""
    import xarray as xr

    loss = data["loss"].transpose(..., "epoch")
    needed = loss.isel(epoch=0, drop=True).copy(data=epochs_needed(loss.values))
    slow, fast = (needed.sel(scaling=scaling, drop=True) for scaling in ("ntk", "realistic"))
    gap = slow.copy(data=log_ratio(slow.values, fast.values)).rename("log_advantage")
    parts = [over_seeds(loss, kind="geometric"), over_seeds(needed.rename("tenfold"))]
    return xr.merge([*parts, over_seeds(gap)])


def verdicts(data: xr.Dataset) -> list[Finding]:
    """Does d_m^(-1/2) beat 1/d_m, at a level of the loss, and from which width on?"""
    widths, found, gaps = data["d_m"].values, [], []
    for d_m in widths:
        fast, slow = (
            epochs_needed(by_seed(data["loss"].sel(d_m=d_m, scaling=s), "epoch"))
            for s in ("realistic", "ntk")
        )
        gaps.append(log_ratio(slow, fast))
        claim = f"width {d_m}: d_m^(-1/2) needs fewer epochs for a tenth of the loss"
        source = FASTER if d_m == widths[-1] else OURS
        found.append(separation(claim, slow, fast, source=source))
    claim = "the advantage of d_m^(-1/2) in epochs (log ratio) grows with the width"
    return [*found, monotone(claim, numbers(data, "d_m"), np.stack(gaps, axis=1), "increasing")]


def plot(data: xr.Dataset, axes: Sequence[Any]) -> None:
    """Losses against epochs; the advantage against the width."""
    loss, gap = axes
    for index, d_m in enumerate(data["d_m"].values):
        for scaling, words in SCALINGS.items():
            one, style = data.sel(d_m=d_m, scaling=scaling), STYLES[scaling]
            label = f"$d_m$ = {d_m}, {words}"
            draw_curve(loss, one, "geometric_loss", "epoch", label=label, index=index, style=style)
    finish(loss, "epoch", "$|f - y|^2 / 2N$", log_y=True)
    draw_interval(gap, data, "mean_log_advantage", "d_m", label="mean")
    gap.axhline(0, color="0.45", linestyle=":")
    gap.set_xscale("log")
    tick_at(gap, data["d_m"].values)
    finish(gap, "width $d_m$", "log of epochs with $d_m^{-1}$ over $d_m^{-1/2}$")


figure = register(
    Figure(
        id="wu2023/scaling",
        title="Where attention matters: loss with both softmax scales, raw tokens",
        reference="[wu2023, Secs. 4.4 and 5.1, App. C.6]",
        scales={
            "smoke": {"seeds": 2, "n": 12, "T": 3, "d": 8, "epochs": 16, "widths": [4, 32]},
            "quick": {
                "seeds": 5, "n": 100, "T": 10, "d": 100, "epochs": 400, "widths": [10, 100, 1000],
            },
            "paper": {
                "seeds": 10, "n": 100, "T": 10, "d": 100, "epochs": 400,
                "widths": [10, 100, 1000, 4000],
            },
        },
        trials=trials,
        statistics=statistics,
        verdicts=verdicts,
        plot=plot,
        axes=open_choices("headcount.papers.wu2023:choices.toml", "scaling"),
        layout=(1, 2),
        notes="Raw tokens N(0, 1), mean pooling, loss (1/N)|f - y|^2, gamma = 1/lambda_max(c K_0), "
        "c = 2/N, for each run; float64; y is independent of X, so that fitting means memorising.",
    )
)  # fmt: skip
