"""wu2023, Figure 7: test accuracy and training loss of the vision Transformer, two scalings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ....lab import Finding, difference, over_seeds, separation, threshold
from .curves import by_seed
from .images import average_log_ratio, draw_scalings, image_figure
from .sentences import ACCURACY

if TYPE_CHECKING:
    import xarray as xr


def statistics(data: xr.Dataset) -> xr.Dataset:
    """Loss and test accuracy after every epoch."""
    accuracy = over_seeds(data["test_accuracy"])
    return over_seeds(data["loss"], kind="geometric").merge(accuracy)


def verdicts(data: xr.Dataset) -> list[Finding]:
    """d_m^(-1/2) has the higher test accuracy and the lower training loss."""
    ratio = average_log_ratio(data, "loss")[:, 0]
    fast, slow = (data.isel(d_m=0).sel(scaling=scaling) for scaling in ("realistic", "ntk"))
    best, other = (by_seed(one["test_accuracy"], "epoch") for one in (fast, slow))
    averages = (values[:, 1:].mean(axis=1) for values in (best, other))
    last = (by_seed(one["loss"], "epoch")[:, -1] for one in (slow, fast))
    words = "d_m^(-1/2) has the"
    claim = f"{words} higher final test accuracy"
    found = [difference(claim, best[:, -1], other[:, -1], source=ACCURACY)]
    found.append(difference(f"{words} higher test accuracy on average over epochs", *averages))
    claim = f"{words} lower training loss on average over epochs (log ratio)"
    found.append(threshold(claim, ratio, above=0.0, source=ACCURACY))
    return [*found, separation(f"{words} lower final training loss", *last)]


def plot(data: xr.Dataset, axes: Sequence[Any]) -> None:
    """Training loss and test accuracy against epochs."""
    loss, accuracy = axes
    draw_scalings(loss, data, "geometric_loss")
    loss.set_yscale("log")
    loss.set_ylabel("training loss")
    draw_scalings(accuracy, data, "mean_test_accuracy", within=(0.0, 1.0))
    accuracy.set_ylabel("test accuracy")


figure = image_figure(
    7,
    "Training loss and test accuracy on MNIST at width 1024, both softmax scales",
    place="App. E.2",
    widths=[1024],
    statistics=statistics,
    verdicts=verdicts,
    plot=plot,
    notes="The paper does not name the width: 1024, or width=16384; the trials are Fig. 4's.",
)
