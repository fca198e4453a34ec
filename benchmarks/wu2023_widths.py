"""The least width at which (2) and (3) of wu2023 hold on toy data, over initialisations and seeds.

Tokens are random directions of length c; for every width the best c of a grid and the best C_*
decide. Widths go up by factors of 4; the answer is the first at which both conditions hold.

An earlier search had one draw: NumPy's default generator with seed 0, tokens, labels, W_Q, W_K,
W_V, w_O in this order. That draw is taken here as well, beside many seeds of our own.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks._timing import target
from headcount.core import Array, normal, stream
from headcount.models import initialisations
from headcount.papers.wu2023.constants import Norms
from headcount.papers.wu2023.model import Encoder, EncoderParams, output_scale, softmax_scale
from headcount.papers.wu2023.setting import Start, best_room, constants_at, measure_start

SHAPES = {"N=1 ds=1 d=1": (1, 1, 1), "N=2 ds=1 d=2": (2, 1, 2), "N=2 ds=2 d=4": (2, 2, 4),
          "N=4 ds=1 d=4": (4, 1, 4)}  # fmt: skip
SCHEMES = {"lecun realistic": ("lecun", "realistic"), "lecun ntk": ("lecun", "ntk"),
           "ntk ntk": ("ntk", "ntk")}  # fmt: skip
SEEDS = tuple(range(15))
SCALES = tuple(np.geomspace(0.003, 3.0, 13))
WIDTHS = tuple(4**k for k in range(1, 12))
EARLIER_WIDTHS = WIDTHS[3:]
"""The earlier search began at 256."""

EARLIER = {
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
    ("ntk ntk", "N=4 ds=1 d=4"): None,
}
"""What the earlier search found; None: not up to 2^22."""

Shape = tuple[int, int, int]
Drawn = tuple[EncoderParams, Array, Array]
Draw = Callable[[Encoder, str, Shape], Drawn]


def drawn_by(seed: int) -> Draw:
    """Data and start of a seed, as the package draws them."""

    def draw(model: Encoder, init: str, shape: Shape) -> Drawn:
        x = normal(stream(seed, "wu2023", "widths", "x"), shape)
        y = normal(stream(seed, "wu2023", "widths", "y"), shape[:1])
        return initialisations[init](model, seed), x, y

    return draw


def earlier_draw(model: Encoder, init: str, shape: Shape) -> Drawn:
    """The one draw of the earlier search."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal(shape), rng.standard_normal(shape[0])
    size = {"lecun": (model.d**-0.5, model.d_m**-0.5), "ntk": (1.0, 1.0)}[init]
    W_Q, W_K, W_V = (size[0] * rng.standard_normal((model.d_m, model.d)) for _ in range(3))
    return EncoderParams(W_Q, W_K, W_V, size[1] * rng.standard_normal(model.d_m)), x, y


def least_possible(start: Start) -> float:
    """No C_* makes the worse of (2) and (3) better than this.

    lamV lamO > C_V C_O, so that one of the first two terms of (2) is above 1; (3) grows with C_*.
    """
    if start.alpha <= 0:
        return np.inf
    k = constants_at(start, Norms(0.0, 0.0, 0.0, 0.0))
    return float(max(8 * k.rho * k.residual / start.alpha**2, k.condition_3))


def worst(shape: Shape, scheme: tuple[str, str], draw: Draw, width: int) -> tuple[float, float]:
    """The worse ratio of (2) and (3) at the best c and C_*, and that c."""
    (_, _, d), (init, scaling) = shape, scheme
    model = Encoder(d, width, softmax_scale(scaling, width), output_scale(init, width), "sum")
    params, x, y = draw(model, init, shape)
    x = x / np.linalg.norm(x, axis=-1, keepdims=True)
    starts = [(measure_start(model, params, c * x, y), c) for c in SCALES]
    best = (np.inf, SCALES[0])
    for start, c in sorted(starts, key=lambda one: least_possible(one[0])):
        if least_possible(start) >= best[0]:
            break
        best = min(best, (best_room(start).worst, c))
    return best


def search(
    shape: Shape, scheme: tuple[str, str], draw: Draw, widths: tuple[int, ...] = WIDTHS
) -> tuple[int | None, float]:
    """The first width that does, or None; and the last ratio seen."""
    ratio = np.inf
    for width in (width for width in widths if width >= shape[0]):
        ratio, _ = worst(shape, scheme, draw, width)
        if ratio <= 1:
            return width, ratio
    return None, ratio


def rows() -> Iterator[dict[str, Any]]:
    """One row per scheme and shape: the width of the earlier draw and of every seed."""
    for scheme, names in SCHEMES.items():
        for shape, sizes in SHAPES.items():
            same, _ = search(sizes, names, earlier_draw, EARLIER_WIDTHS)
            found = [search(sizes, names, drawn_by(seed)) for seed in SEEDS]
            widths = [width or 4 * WIDTHS[-1] for width, _ in found]
            before = EARLIER[scheme, shape] or 4 * WIDTHS[-1]
            print(scheme, shape, same, found, file=sys.stderr, flush=True)
            yield {
                "scheme": scheme,
                "shape": shape,
                "earlier": before,
                "earlier draw": same or 4 * WIDTHS[-1],
                "widths": [width for width, _ in found],
                "least": min(widths),
                "median": statistics.median(widths),
                "most": max(widths),
                "seeds done at the earlier width": sum(width <= before for width in widths),
                "last ratios": [round(ratio, 3) for _, ratio in found],
            }


def run() -> dict[str, Any]:
    """The table; is the earlier draw within a factor 4 of what was found with it?"""
    began = time.process_time()
    table = list(rows())
    targets = []
    for row in table:
        name = f"{row['scheme']}, {row['shape']}"
        ratio = row["earlier draw"] / row["earlier"]
        targets.append(target(f"{name}: earlier draw", ratio, at_least=0.25, at_most=4.0))
    seconds = time.process_time() - began
    return {"name": "wu2023_widths", "table": table, "seconds": seconds, "targets": targets}
