"""What Theorem 3 and Lemma 1 say about the width: the Hessian's norm and the kernel's limit."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from ....core import Array
from ....lab import Context, Measurement
from ..hessian import BLOCKS

RADII = (0.0, 1.0)
"""Distance from the initialisation at which the Hessian is taken, along a random direction."""


LIMIT_ERRORS = ("limit_error", "shape_error", "printed_error", "attention_share")


def measure_hessian(config: dict[str, Any], context: Context) -> dict[str, Any]:
    """||Hess f(X)|| for d = 1 at every width, at the start and at distance 1 from it, and blocks.

    X has d_s Gaussian tokens with |X|_F = sqrt(d_s), sum pooling as in the theorem.
    """
    from ....core import normal, stream
    from ....models import initialisations
    from ..hessian import scalar_hessian
    from ..model import Encoder, EncoderParams, output_scale, softmax_scale

    seed, widths = config["seed"], config["widths"]
    x = normal(stream(seed, "wu2023", "hessian", "x"), (config["T"], 1))
    x = x * (np.sqrt(config["T"]) / np.linalg.norm(x))
    norms, blocks = np.zeros((len(widths), len(RADII))), np.zeros((len(widths), len(BLOCKS)))
    for i, d_m in enumerate(widths):
        tau0, tau1 = softmax_scale(config["scaling"], d_m), output_scale(config["init"], d_m)
        start = initialisations[config["init"]](Encoder(1, d_m, tau0, tau1, "sum"), seed)
        drawn = [normal(stream(seed, "wu2023", "hessian", "to", b), np.shape(getattr(start, b)))
                 for b in EncoderParams._fields]  # fmt: skip
        length = np.sqrt(sum(np.sum(part**2) for part in drawn))
        for j, radius in enumerate(RADII):
            moved = [a + radius / length * b for a, b in zip(start, drawn, strict=True)]
            hessian = scalar_hessian(EncoderParams(*moved), x, tau0=tau0, tau1=tau1)
            norms[i, j] = hessian.norm(seed)
            if radius == 0:
                blocks[i] = [hessian.block_norms()[name] for name in BLOCKS]
        context.progress(i + 1, len(widths))
    return {
        "d_m": np.asarray(widths),
        "hessian_norm": norms[:, 0],
        "hessian_norm_nearby": norms[:, 1],
        "block_norm": blocks,
    }


def measure_limit(config: dict[str, Any], context: Context) -> dict[str, Any]:
    """Relative Frobenius distances of the tangent kernel from Lemma 1's, at every width.

    limit_error: as it is; shape_error: after the best common factor, which is what can be asked
    of LeCun and He, whose kernels grow with d_m; printed_error: from the kernel with the printed
    matrix product, also after the best factor; attention_share: |K_Q + K_K| / |K|.
    """
    from ....kernels import ntk
    from ....models import initialisations
    from ..limit import limit_wu2023
    from ..model import Encoder, output_scale, softmax_scale
    from ..regression import GaussianRegression

    seed, widths = config["seed"], config["widths"]
    law = GaussianRegression(config["T"], config["d"], config["tokens"])
    x = law.sample(config["n"], seed).x
    limit = limit_wu2023(x, pooling="sum").total
    printed = printed_limit(x)
    rows = []
    for i, d_m in enumerate(widths):
        tau0, tau1 = softmax_scale(config["scaling"], d_m), output_scale(config["init"], d_m)
        model = Encoder(config["d"], d_m, tau0, tau1, "sum")
        found = ntk(model, initialisations[config["init"]](model, seed), x, blocks="each")
        share = np.linalg.norm(found.blocks["W_Q"] + found.blocks["W_K"])
        K = np.asarray(found.total)
        rows.append(
            [
                np.linalg.norm(K - limit) / np.linalg.norm(limit),
                shape_distance(K, limit),
                shape_distance(K, printed),
                share / np.linalg.norm(K),
            ]
        )
        context.progress(i + 1, len(widths))
    columns = dict(zip(LIMIT_ERRORS, np.array(rows).T, strict=True))
    return {"d_m": np.asarray(widths), **columns}


def shape_distance(K: Float[Array, "n n"], target: Float[Array, "n n"]) -> float:
    """min over s of |s K - target| / |target|: the sine of the angle between the two."""
    unit, aim = K / np.linalg.norm(K), target / np.linalg.norm(target)
    return float(np.linalg.norm(np.sum(unit * aim) * unit - aim))


def printed_limit(x: Float[Array, "n T d"]) -> Float[Array, "n n"]:
    """Lemma 1 with its second product as printed, a matrix product; sum pooling."""
    from ..limit import limit_wu2023

    summed = np.sum(x, axis=1)
    blocks = limit_wu2023(x, pooling="sum").blocks
    gram = summed @ summed.T
    return np.asarray(blocks["w_O"] + (blocks["W_V"] / gram) @ gram)


hessian_widths = Measurement(
    name="wu2023-hessian",
    version=1,
    function=measure_hessian,
    outputs={
        "d_m": ("d_m",),
        "hessian_norm": ("d_m",),
        "hessian_norm_nearby": ("d_m",),
        "block_norm": ("d_m", "block"),
    },
    estimate=lambda config: (2.0 + 1e-4 * sum(config["widths"]), 3e8),
)

limit_widths = Measurement(
    name="wu2023-limit",
    version=1,
    function=measure_limit,
    outputs={
        "d_m": ("d_m",),
        **dict.fromkeys(LIMIT_ERRORS, ("d_m",)),
    },
    estimate=lambda config: (
        3.0 + 2e-9 * sum(config["widths"]) * (config["n"] * config["T"]) ** 2,
        4e8 + 24.0 * max(config["widths"]) * config["n"] * config["T"],
    ),
)
