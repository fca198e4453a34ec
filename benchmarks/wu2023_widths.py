"""The least width at which (2) and (3) of wu2023 hold on toy data, over initialisations and seeds.

Tokens are random directions of length c; for every width the best c of a grid and the best C_*
decide. Widths go up by factors of 4; the answer is the first at which both conditions hold.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks._timing import target
from headcount.core import normal, stream
from headcount.models import Encoder, initialisations, output_scale, softmax_scale
from headcount.papers.wu2023.conditions import best_room, measure_start

SHAPES = {"N=1 ds=1 d=1": (1, 1, 1), "N=2 ds=1 d=2": (2, 1, 2), "N=2 ds=2 d=4": (2, 2, 4),
          "N=4 ds=1 d=4": (4, 1, 4)}  # fmt: skip
SCHEMES = {"lecun realistic": ("lecun", "realistic"), "lecun ntk": ("lecun", "ntk"),
           "ntk ntk": ("ntk", "ntk")}  # fmt: skip
SEEDS = (0, 1, 2)
SCALES = tuple(0.003 * 1.8**k for k in range(13))
WIDTHS = tuple(4**k for k in range(1, 12))

ONE_SEED = {
    ("lecun realistic", "N=1 ds=1 d=1"): 256,
    ("lecun realistic", "N=2 ds=1 d=2"): 16384,
    ("lecun realistic", "N=2 ds=2 d=4"): 16384,
    ("lecun realistic", "N=4 ds=1 d=4"): 2**20,
    ("lecun ntk", "N=1 ds=1 d=1"): 256,
    ("lecun ntk", "N=2 ds=1 d=2"): 4096,
    ("lecun ntk", "N=2 ds=2 d=4"): 1024,
    ("lecun ntk", "N=4 ds=1 d=4"): 16384,
    ("ntk ntk", "N=1 ds=1 d=1"): 256,
    ("ntk ntk", "N=2 ds=1 d=2"): 2**22,
    ("ntk ntk", "N=2 ds=2 d=4"): 2**18,
}
"""What an earlier search found with one seed of its own."""


def _worst(
    shape: tuple[int, int, int],
    scheme: tuple[str, str],
    seed: int,
    width: int,
    scales: Sequence[float],
) -> tuple[float, float]:
    """The worse ratio of (2) and (3) at the best c and C_*, and that c."""
    (n, T, d), (init, scaling) = shape, scheme
    x = normal(stream(seed, "wu2023", "widths", "x"), (n, T, d))
    x = x / np.linalg.norm(x, axis=-1, keepdims=True)
    y = normal(stream(seed, "wu2023", "widths", "y"), (n,))
    model = Encoder(d, width, softmax_scale(scaling, width), output_scale(init, width), "sum")
    params = initialisations[init](model, seed)
    return min((best_room(measure_start(model, params, c * x, y)).worst, c) for c in scales)


def _search(shape: tuple[int, int, int], scheme: tuple[str, str], seed: int) -> tuple[Any, float]:
    """The first width that does, or None; and the last ratio seen.

    The best c moves slowly with the width: after the first width only its neighbours are tried.
    """
    worst, scales = np.inf, SCALES
    for width in (width for width in WIDTHS if width >= shape[0]):
        worst, best = _worst(shape, scheme, seed, width, scales)
        place = SCALES.index(best)
        scales = SCALES[max(place - 2, 0) : place + 3]
        if worst <= 1:
            return width, worst
    return None, worst


def rows() -> Iterator[dict[str, Any]]:
    """One row per scheme and shape: the width of every seed."""
    for scheme, names in SCHEMES.items():
        for shape, sizes in SHAPES.items():
            found = [_search(sizes, names, seed) for seed in SEEDS]
            widths = [width or 4 * WIDTHS[-1] for width, _ in found]
            print(scheme, shape, found, file=sys.stderr, flush=True)
            yield {
                "scheme": scheme,
                "shape": shape,
                "widths": [width for width, _ in found],
                "last ratios": [round(ratio, 3) for _, ratio in found],
                "median": statistics.median(widths),
            }


def run() -> dict[str, Any]:
    """The table, and whether its medians are within a factor 4 of what one seed gave."""
    began = time.perf_counter()
    table = list(rows())
    factors = {
        (row["scheme"], row["shape"]): row["median"] / ONE_SEED[row["scheme"], row["shape"]]
        for row in table
        if (row["scheme"], row["shape"]) in ONE_SEED
    }
    return {
        "name": "wu2023_widths",
        "table": table,
        "seconds": time.perf_counter() - began,
        "targets": [
            target(f"{scheme}, {shape}: median over earlier", factor, at_least=0.25, at_most=4.0)
            for (scheme, shape), factor in factors.items()
        ],
    }
