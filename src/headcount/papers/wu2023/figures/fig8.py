"""wu2023, Figure 8: regression on the digits 0 and 1, training error of sign(f)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ....lab import SANITY, Finding, Trial, difference, over_seeds, threshold
from .curves import by_seed
from .images import average_log_ratio, draw_scalings, image_figure, image_trials
from .sentences import REGRESSION

if TYPE_CHECKING:
    import xarray as xr

STEPS = {"stable": 0.01, "printed": 0.1}
"""gamma: 0.1 is printed for Sec. 5.2, and the squared error diverges with it at every width."""


def trials(
    settings: Mapping[str, Any], seeds: Sequence[int], options: Mapping[str, str]
) -> list[Trial]:
    """Regression with labels -1 and +1 on zeros and ones."""
    return image_trials(settings, seeds, options, "zero-one", eta=STEPS[options["step"]])


def statistics(data: xr.Dataset) -> xr.Dataset:
    """sum (sign f - y)^2, the squared error, and the share of wrong signs, per epoch."""
    import xarray as xr

    parts = [over_seeds(data["sign_error"]), over_seeds(data["loss"], kind="geometric")]
    return xr.merge([*parts, over_seeds(data["train_error"])])


def verdicts(data: xr.Dataset) -> list[Finding]:
    """d_m^(-1/2) is faster, in the error of the sign and in the squared error."""
    ratio, one = average_log_ratio(data, "loss")[:, 0], data["sign_error"].isel(d_m=0)
    fast, slow = (by_seed(one.sel(scaling=s), "epoch") for s in ("realistic", "ntk"))
    finite = np.isfinite(slow[:, -1]) & np.isfinite(fast[:, -1])
    words = "d_m^(-1/2) has the lower"
    claim = f"{words} training error sum (sign f - y)^2 on average over epochs"
    errors = slow[:, 1:].mean(axis=1), fast[:, 1:].mean(axis=1)
    return [
        difference(claim, *errors, source=REGRESSION),
        threshold(f"{words} squared error on average over epochs (log ratio)", ratio, above=0.0),
        threshold("both scalings stay finite", finite * 1.0, above=0.5, source=SANITY),
    ]


def plot(data: xr.Dataset, axes: Sequence[Any]) -> None:
    """Error of the sign and squared error against epochs."""
    error, loss = axes
    draw_scalings(error, data, "mean_sign_error")
    error.set_yscale("symlog", linthresh=1)
    error.set_ylim(0)
    error.set_ylabel("training error $\\sum (\\mathrm{sign} f - y)^2$")
    draw_scalings(loss, data, "geometric_loss")
    loss.set_yscale("log")
    loss.set_ylabel("mean squared error")


figure = image_figure(
    8,
    "Regression on the digits 0 and 1 at width 1024, both softmax scales",
    place="App. E.2",
    widths=[1024],
    evaluated=13000,
    trials=trials,
    statistics=statistics,
    verdicts=verdicts,
    plot=plot,
    notes="Labels -1 and +1; gamma = 0.01, as the squared error diverges with 0.1 (step=printed); "
    "the paper does not name the width: 1024, or width=16384.",
)
