"""The tangent kernel of a pretrained encoder while it is fine-tuned: how lazy practice is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from ....core import Array
from ....lab import Context, Measurement
from .finetune import Seen, follow, load_task, training_of

if TYPE_CHECKING:
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
    from ....training import losses_and_hits

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
