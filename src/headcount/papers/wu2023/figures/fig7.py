"""wu2023, Figure 7: test accuracy and training loss of the vision Transformer, two scalings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ....lab import (
    Figure,
    Finding,
    difference,
    open_choices,
    over_seeds,
    register,
    separation,
    threshold,
)
from .curves import by_seed
from .images import (
    NOTES,
    OPTIONS,
    average_log_ratio,
    draw_scalings,
    fetch_images,
    image_scales,
    image_trials,
    only_dataset,
    say_which_data,
)

if TYPE_CHECKING:
    import xarray as xr


def statistics(data: xr.Dataset) -> xr.Dataset:
    """Loss and test accuracy after every epoch."""
    accuracy = over_seeds(data["test_accuracy"])
    return over_seeds(data["loss"], kind="geometric").merge(accuracy)


def verdicts(data: xr.Dataset) -> list[Finding]:
    """d_m^(-1/2) has the higher test accuracy and the lower training loss."""
    chosen, found = only_dataset(data), []
    ratio = average_log_ratio(data, "loss")
    for i, d_m in enumerate(data["d_m"].values):
        one = chosen.sel(d_m=d_m)
        fast, slow = (
            by_seed(one["test_accuracy"].sel(scaling=s), "epoch") for s in ("realistic", "ntk")
        )
        words = f"width {d_m}: d_m^(-1/2) has"
        found.append(
            difference(f"{words} the higher final test accuracy", fast[:, -1], slow[:, -1])
        )
        claim = f"{words} the higher test accuracy on average over epochs"
        found.append(difference(claim, fast[:, 1:].mean(axis=1), slow[:, 1:].mean(axis=1)))
        claim = f"{words} the lower training loss on average over epochs (log ratio)"
        found.append(threshold(claim, ratio[:, i], above=0.0))
        last = [by_seed(one["loss"].sel(scaling=s), "epoch")[:, -1] for s in ("ntk", "realistic")]
        found.append(separation(f"{words} the lower final training loss", last[0], last[1]))
    return found


def plot(data: xr.Dataset, axes: Sequence[Any]) -> None:
    """Training loss and test accuracy against epochs."""
    loss, accuracy = axes
    draw_scalings(loss, data, "geometric_loss")
    loss.set_yscale("log")
    loss.set_ylabel("training loss")
    draw_scalings(accuracy, data, "mean_test_accuracy", within=(0.0, 1.0))
    accuracy.set_ylabel("test accuracy")
    say_which_data(data, loss)


figure = register(
    Figure(
        id="wu2023/fig7",
        title="Training loss and test accuracy on MNIST at width 1024, both softmax scales",
        reference="[wu2023, Fig. 7, App. E.2]",
        scales=image_scales(widths=[1024]),
        trials=image_trials,
        statistics=statistics,
        verdicts=verdicts,
        plot=plot,
        prepare=fetch_images,
        axes=open_choices("headcount.papers.wu2023:choices.toml", "fig7"),
        options=OPTIONS,
        layout=(1, 2),
        notes=f"{NOTES} The paper does not name the width of this figure; the trials are Fig. 4's.",
    )
)
