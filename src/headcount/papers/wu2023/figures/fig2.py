"""wu2023, Figures 2 and 9: loss, movement of the weights and drift of the kernel along training.

Figure 2 has tau0 = d_m^(-1/2), Figure 9 has tau0 = d_m^(-1); both LeCun, gamma = 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ....lab import (
    COLOURS,
    SANITY,
    Figure,
    Finding,
    Source,
    Trial,
    inside,
    mean,
    monotone,
    open_choices,
    over_seeds,
    register,
    separation,
    threshold,
)
from ....lab._readings import chosen_options
from .curves import by_seed, draw_curve, finish, numbers, with_stability
from .descent import drift, run_settings
from .sentences import KERNEL, LINEAR, SETTLED, STABLE

if TYPE_CHECKING:
    import xarray as xr

CONVERGED = 1e-4
"""A loss of this part of its first value counts as converged."""
SLOWEST = 0.5
"""Linear convergence: in its last half the log loss falls at least half as fast as before it."""
MUCH = 0.1
"""Weights that go less far than this part of their length do not change much."""
LATE = (0.9, 1.1)
"""Approximately constant: at half of the epochs the distance is within a tenth of its end."""
FIRST = 8
"""The paper's first 50 of 400 epochs, as a fraction."""

NOTES = (
    "Given in Sec. 5.1: N = 100, X 10 x 100, widths, gamma, 400 epochs. Ours, because gamma = 1 "
    "diverges at once on the printed loss: normalisation=stable has tokens N(0, 1/d), mean pooling "
    "and loss (1/N)|f - y|^2. Other readings: normalisation=printed (raw tokens, mean pooling, "
    "summed loss) and normalisation=formulas (the same with sum pooling). Drawn: (1/2N)|f - y|^2, "
    "and beside it gamma c lambda_max(K_0), stable below 2."
)
DRIFT_NOTES = (
    "Movement is |theta_{t+1} - theta_t| / |theta_t|; the kernel's distance is that to K_0 (lines) "
    "and to the epoch before (dots)."
)

SCALES: dict[str, dict[str, Any]] = {
    "smoke": {"seeds": 2, "n": 12, "T": 3, "d": 8, "epochs": 16, "widths": [4, 32]},
    "quick": {"seeds": 3, "n": 100, "T": 10, "d": 100, "epochs": 400, "widths": [10, 100, 1000]},
    "paper": {
        "seeds": 3, "n": 100, "T": 10, "d": 100, "epochs": 400, "widths": [10, 100, 1000, 4000],
    },
}  # fmt: skip


def trials(scaling: str) -> Callable[..., list[Trial]]:
    """One run per width and seed, the kernel at every epoch."""

    def every(
        settings: Mapping[str, Any], seeds: Sequence[int], options: Mapping[str, str]
    ) -> list[Trial]:
        return [
            Trial(
                drift,
                run_settings(
                    options["normalisation"], d_m=d_m, init="lecun", scaling=scaling, gamma=1.0,
                    settings=settings, seed=seed, options=options,
                ),
                {"d_m": d_m, "seed": seed},
                f"d_m={d_m}",
            )
            for d_m in settings["widths"]
            for seed in seeds
        ]  # fmt: skip

    return every


def statistics(data: xr.Dataset) -> xr.Dataset:
    """Geometric means of all curves; the stability number, and the runs that stay finite."""
    import xarray as xr

    curves = ("loss", "movement", "kernel_from_start", "kernel_from_previous")
    parts = [over_seeds(data[name], kind="geometric") for name in curves]
    parts += [over_seeds(data["stability"]), over_seeds(data["finite"])]
    return xr.merge(parts)


def halves(loss: Any) -> Any:
    """Rate of log loss over its last half, relative to that from the first eighth on; per seed."""
    epochs = loss.shape[1] - 1
    begin, middle = epochs // FIRST, epochs // 2
    with np.errstate(divide="ignore", invalid="ignore"):
        log = np.log(loss)
    before = (log[:, begin] - log[:, middle]) / (middle - begin)
    after = (log[:, middle] - log[:, -1]) / (epochs - middle)
    return after / before


def path_after(movement: Any) -> Any:
    """How far the weights go after the first eighth of the epochs, in parts of their length."""
    return np.sum(movement[:, movement.shape[1] // FIRST : -1], axis=1)


def converged(claim: str, loss: Any, source: Source, *, expected: bool = True) -> Finding:
    """The last loss is below CONVERGED times the first, or, where expected, it is not."""
    first, last = CONVERGED * loss[:, 0], loss[:, -1]
    pair = (first, last) if expected else (last, first)
    return separation(claim, *pair, source=source)


def verdicts(data: xr.Dataset) -> list[Finding]:
    """The claims of each panel: for the first width, below linear, and for those that converge."""
    widths, epochs = data["d_m"].values, data.sizes["epoch"] - 1
    found = []
    for i, d_m in enumerate(widths):
        one, words = data.sel(d_m=d_m), f"width {d_m}"
        loss, kernel, movement = (
            by_seed(one[name], "epoch") for name in ("loss", "kernel_from_start", "movement")
        )
        finite = one["finite"].values
        found.append(threshold(f"{words}: training stays finite", finite, above=0.5, source=SANITY))
        if i == 0:
            claim = f"{words}, below linear: loss stays above {CONVERGED:g} of its start"
            found.append(converged(claim, loss, LINEAR, expected=False))
        else:
            claim = f"{words}: loss falls below {CONVERGED:g} of its start"
            found.append(converged(claim, loss, LINEAR))
            claim = f"{words}: linear, the log loss falls in its last half at least half as fast"
            found.append(threshold(claim, halves(loss), above=SLOWEST, source=LINEAR))
        if i > 0 or chosen_options(data)["widths"] == "all":
            claim = f"{words}: after epoch {epochs // FIRST} the weights go less than a tenth of "
            claim += "their length"
            found.append(threshold(claim, path_after(movement), below=MUCH, source=SETTLED))
        end = kernel[:, -1]
        claim = f"{words}: the first quarter of the epochs brings over half of the kernel's change"
        found.append(separation(claim, 2 * kernel[:, epochs // 4], end, source=KERNEL))
        claim = f"{words}: from half of the epochs on the kernel is within a tenth of its end"
        share = kernel[:, epochs // 2] / end
        found.append(inside(claim, mean(share), LATE, "distance over its end", source=KERNEL))
    last = by_seed(data["kernel_from_start"].isel(epoch=-1), "d_m")
    claim, at = "the wider, the less the kernel has moved at the end", numbers(data, "d_m")
    return [*found, monotone(claim, at, last, "decreasing", scale="log", source=STABLE)]


def plot(data: xr.Dataset, axes: Sequence[Any]) -> None:
    """(a) loss, (b) relative movement of the weights, (c) kernel distance, against epochs."""
    loss, movement, kernel = axes
    for index, d_m in enumerate(data["d_m"].values):
        one = data.sel(d_m=d_m)
        label = with_stability(f"$d_m$ = {d_m}", one)
        draw_curve(loss, one, "geometric_loss", "epoch", label=label, index=index)
        label = f"$d_m$ = {d_m}"
        draw_curve(movement, one, "geometric_movement", "epoch", label=label, index=index)
        draw_curve(kernel, one, "geometric_kernel_from_start", "epoch", label=label, index=index)
        kernel.plot(
            one["epoch"].values[1:], one["geometric_kernel_from_previous"].values[1:],
            color=COLOURS[index], linestyle=":", linewidth=0.7,
        )  # fmt: skip
        mark_divergence(loss, one, index)
    finish(loss, "epoch", "$|f - y|^2 / 2N$", log_y=True)
    finish(movement, "epoch", "relative step of the weights", log_y=True)
    finish(kernel, "epoch", "kernel distance (dots: per epoch)", log_y=True)


def mark_divergence(ax: Any, one: xr.Dataset, index: int) -> None:
    """A cross at the last finite loss of runs that blow up, named once in the key."""
    if float(one["mean_finite"]) < 1:
        values = one["geometric_loss"].values
        known = np.flatnonzero(np.isfinite(values))
        if known.size:
            label = "some runs diverged"
            named = label in ax.get_legend_handles_labels()[1]
            (cross,) = ax.plot(known[-1], values[known[-1]], "x", markersize=6)
            cross.set(color=COLOURS[index], label="_again" if named else label)


def descent_figure(number: int, scaling: str, words: str) -> Figure:
    """Figure 2 or 9."""
    return Figure(
        id=f"wu2023/fig{number}",
        title=f"Loss, weights and tangent kernel along training, LeCun, {words}",
        reference=f"[wu2023, Fig. {number}]",
        scales=SCALES,
        trials=trials(scaling),
        statistics=statistics,
        verdicts=verdicts,
        plot=plot,
        axes=open_choices("headcount.papers.wu2023:choices.toml", f"fig{number}"),
        layout=(1, 3),
        notes=f"{NOTES} {DRIFT_NOTES}",
    )


figure = register(descent_figure(2, "realistic", "tau0 = d_m^(-1/2)"))
