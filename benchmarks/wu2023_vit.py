"""An epoch of wu2023's vision Transformer at d_m = 64 and 16384, images of MNIST's shape.

The collapse of the key-query and value-output products makes the time nearly independent of d_m.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks._timing import in_new_process, interleaved, target

IMAGES, EPOCHS = 60000, 50


def epochs(widths: list[int], images: int = 6000) -> dict[str, Any]:
    """Processor seconds of an epoch of `images` random images at each width, and of the set-up."""
    import jax
    import jax.numpy as jnp

    from headcount.core import normal, stream
    from headcount.papers.wu2023.vit import VisionTransformer, collapse, vision_start
    from headcount.training import EpochTraining, cross_entropy

    x = jnp.asarray(normal(stream(0, "x"), (images, 16, 49)), jnp.float32)
    labels = jnp.asarray(np.arange(images) % 10, jnp.int32)
    actions, set_up = {}, {}
    for d_m in widths:
        began = time.process_time()
        wide = VisionTransformer(49, 16, 64, d_m, d_m**-0.5, 10)
        narrow = collapse(wide, vision_start(wide, 0))
        set_up[d_m] = time.process_time() - began
        training = EpochTraining(narrow.model, cross_entropy, 0.1, 0.9, 128)
        state = training.start(narrow.params, "float32")

        def one_epoch(training: Any = training, state: Any = state) -> Any:
            return jax.block_until_ready(training.advance(state, x, labels, stream(0, "b")))

        actions[d_m] = one_epoch
    seconds = interleaved(actions, repeats=5)
    return {"epoch_s": list(seconds.values()), "set_up_s": list(set_up.values())}


def run() -> dict[str, Any]:
    """Time of a paper-scale run at d_m = 16384, and its ratio to d_m = 64."""
    widths, images = [64, 1024, 16384], 6000
    found = in_new_process(epochs, widths=widths, images=images)
    whole = [
        s + EPOCHS * IMAGES / images * e
        for s, e in zip(found["set_up_s"], found["epoch_s"], strict=True)
    ]
    rows = [
        {"d_m": d_m, "epoch_of_mnist_s": IMAGES / images * e, "run_of_50_epochs_s": w}
        for d_m, e, w in zip(widths, found["epoch_s"], whole, strict=True)
    ]
    return {
        "name": "wu2023_vit",
        "figures": rows,
        "ratios": {"16384 / 64": whole[-1] / whole[0]},
        "targets": [
            target("50 epochs at d_m = 16384, seconds of one core", whole[-1], at_most=150),
            target("time at d_m = 16384 / time at 64", whole[-1] / whole[0], at_most=1.1),
        ],
    }
