"""The tangent kernel of wu2023 at d_m = 4000, N = 100 against Jacobian contraction."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks._timing import in_new_process, interleaved, target
from benchmarks.ntk_arda2026 import compare


def against_jacobian(
    dtype: str, N: int = 100, d_s: int = 10, d: int = 100, d_m: int = 4000
) -> dict[str, Any]:
    """Four closed-form blocks against all Jacobians at once, LeCun start, tau0 = d_m^{-1/2}."""
    from headcount.core import normal, stream
    from headcount.papers.wu2023.model import Encoder, softmax_scale
    from headcount.papers.wu2023.starts import lecun

    model = Encoder(d, d_m, softmax_scale("realistic", d_m), 1.0, "sum")
    x = normal(stream(0, "x"), (N, d_s, d))
    setting = {"dtype": dtype, "d_m": d_m, "N": N, "d_s": d_s, "d": d}
    found = compare(model, lecun(model, 0), x, dtype, repeats=5)
    limit = unavoidable(dtype, N * d_s, d, d_m)
    return {
        **setting,
        **found,
        "limit_s": limit,
        "share_of_limit": limit / found["structured_s"],
        "ratio_at_limit": found["jacobian_s"] / limit,
    }


def unavoidable(dtype: str, tokens: int, d: int, d_m: int) -> float:
    """Seconds of the two products through the width: the hidden layer and the symmetric one.

    h = phi W_V^T of all tokens, and the Gram matrix of the weighted masks. What the structured path
    takes beyond them is memory traffic and the small blocks.
    """
    random = np.random.default_rng(0)
    phi, W_V, mask = (
        random.random(s).astype(dtype) for s in ((tokens, d), (d_m, d), (tokens, d_m))
    )
    seconds = interleaved({"h": lambda: phi @ W_V.T, "mask": lambda: mask @ mask.T}, repeats=7)
    return sum(seconds.values())


def run() -> dict[str, Any]:
    """The ratio in both precisions, with the target."""
    figures = [in_new_process(against_jacobian, dtype=dtype) for dtype in ("float32", "float64")]
    return {
        "name": "ntk_wu2023",
        "figures": figures,
        "ratios": {r["dtype"]: r["ratio"] for r in figures},
        "targets": [
            target(f"Jacobians / structured, {r['dtype']}", r["ratio"], at_least=20)
            for r in figures
        ]
        + [
            target(f"share of the machine's limit, {r['dtype']}", r["share_of_limit"], at_least=0.5)
            for r in figures
        ],
    }
