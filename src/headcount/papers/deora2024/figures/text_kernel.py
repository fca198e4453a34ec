"""Beyond deora2024: how far fine-tuning moves the tangent kernel of a pretrained encoder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from ....core import Array
from ....lab import (
    Context,
    Figure,
    Finding,
    Measurement,
    Trial,
    monotone,
    over_seeds,
    register,
    threshold,
)
from .curves import reference_line
from .text import (
    OPTIONS,
    Seen,
    draw_by_heads,
    fetch_text,
    follow,
    head_counts,
    load_task,
    made_up,
    one_setting,
    text_setting,
    training_of,
)

if TYPE_CHECKING:
    import xarray as xr

    from ....models.text import TextParams

PARTS = ("embedding", "attention", "feedforward", "readout")
"""The blocks whose weights are followed."""


def measure_text_kernel(config: dict[str, Any], context: Context) -> dict[str, Any]:
    """K = sum of <grad f, grad f'> over read-out and attention on `kernel_samples` sentences.

    f is the logit of "positive", the sentences are the first that are trained on. Reported after
    every part of the run: |K - K_0| / |K_0| and 1 - cos(K, K_0) by block, |theta - theta_0| /
    |theta_0| by block, and the loss on these sentences.
    """
    from ....data import batches
    from ....training._finetuning import losses_and_hits

    task = load_task(config)
    training = training_of(config, task)
    n = config["kernel_samples"]
    (watched,) = batches(task.train[:n], n, config["longest"])
    numbers = [task.train[i] for i in watched.index]
    labels = task.labels[watched.index].astype(np.int32)
    K0 = kernels_of(task.model, task.params, watched.x)

    def look(params: TextParams, seen: Seen) -> dict[str, float]:
        K = kernels_of(task.model, params, watched.x)
        losses, _ = losses_and_hits(training.outputs(params, numbers), labels)
        loss = float(np.mean(np.asarray(losses)))
        return {**_changes(K, K0), **_movement(task.params, params), "loss": loss}

    eigenvalues = np.linalg.eigvalsh(K0["total"])
    return {
        **follow(config, context, training, task, look),
        "largest_eigenvalue": eigenvalues[-1],
        "smallest_eigenvalue": eigenvalues[0],
    }


def kernels_of(model: Any, params: Any, x: Any) -> dict[str, Float[Array, "n n"]]:
    """Kernels of the read-out, of all attention, and of both, in float32."""
    from ....kernels import ntk
    from ....models.text import LayerwiseMargin

    margin = LayerwiseMargin(model)
    found = ntk(margin, margin.split(params), x, frozen=("rest",), dtype="float32")
    K = {name: np.asarray(block, np.float64) for name, block in found.blocks.items()}
    attention = sum(block for name, block in K.items() if name.startswith("attention"))
    return {
        "readout": K["readout"],
        "attention": np.asarray(attention),
        "total": K["readout"] + attention,
    }


def _changes(K: dict[str, Any], K0: dict[str, Any]) -> dict[str, float]:
    from ....kernels import kernel_distance, relative_change

    found = {}
    for name in K0:
        found[f"kernel_change_{name}"] = float(relative_change(K[name], K0[name]))
        found[f"kernel_distance_{name}"] = float(kernel_distance(K[name], K0[name]))
    return found


def _movement(begin: Any, params: Any) -> dict[str, float]:
    from ....kernels import weight_movement

    moved = weight_movement(begin, params)
    return {f"movement_{name}": float(moved[f"relative_movement/{name}"]) for name in PARTS}


def _cost(config: dict[str, Any]) -> tuple[float, float]:
    """A training step of half a second, and a kernel of 0.1 s per sentence, on one thread."""
    if config["model"] == "tiny":
        return 8.0, 5e8
    n = config["kernel_samples"]
    trained = config["epochs"] * min(config["sentences"], 6920) / 64
    return 20.0 + trained + 0.1 * n * (config["records"] + 1), 2e9 + 1.5e7 * n


CURVES = (
    *(
        f"kernel_{what}_{b}"
        for what in ("change", "distance")
        for b in ("readout", "attention", "total")
    ),
    *(f"movement_{part}" for part in PARTS),
    "loss",
    "epoch",
)

text_kernel = Measurement(
    name="deora2024-text-kernel",
    version=1,
    function=measure_text_kernel,
    outputs={
        **dict.fromkeys(CURVES, ("record",)),
        "record": ("record",),
        "largest_eigenvalue": (),
        "smallest_eigenvalue": (),
    },
    estimate=_cost,
)


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
