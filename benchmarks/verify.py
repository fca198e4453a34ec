"""Boxes a second of one core in `verify`: float64 intervals by the thousand, balls one by one.

    python -m benchmarks.verify

prints both rates and their ratio for a few lemmas.
"""

from __future__ import annotations

import json
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks._timing import target
from headcount.theory import Box, lemma
from headcount.theory._verify import TOLERANCE, _Search

BOXES, BALLS = 4096, 60


@lemma(p=Box(low=0, high=1), x=Box(2))
def third_moment(p: Any, x: Any) -> Any:
    """Third central moment of two tokens."""
    share = jnp.stack([p, 1 - p])
    return jnp.abs(share @ (x - share @ x) ** 3), 4 / (3 * jnp.sqrt(3.0))


@lemma(z=Box(3), u=Box(3))
def softmax_moves(z: Any, u: Any) -> Any:
    """The squared change of a softmax of three logits."""
    return jnp.sum((jax.nn.softmax(z + u) - jax.nn.softmax(z)) ** 2), 0.9


@lemma(a=Box(4, low=0.1, high=1), b=Box(low=0, high=1))
def means(a: Any, b: Any) -> Any:
    """A geometric mean beside an arithmetic one."""
    return jnp.exp(jnp.mean(jnp.log(a))) * jnp.tanh(b), jnp.mean(a)


def rates(own: Any) -> tuple[float, float]:
    """Boxes per second in balls, and by intervals."""
    search = _Search(own, next(iter(own.variants)), {}, TOLERANCE)
    rng = np.random.default_rng(0)
    ends = np.array([interval for interval, _ in search.domains])
    width = (ends[:, 1] - ends[:, 0]) / 8
    low = ends[:, 0] + rng.uniform(0, 7, (BOXES, len(ends))) * width
    high = low + width
    cells = [tuple(zip(a, b, strict=True)) for a, b in zip(low[:BALLS], high[:BALLS], strict=True)]
    started = time.process_time()
    for cell in cells:
        search._look(cell)
    in_balls = BALLS / (time.process_time() - started)
    assert search._sieve is not None
    started = time.process_time()
    search._sieve.look(low, high)
    return in_balls, BOXES / (time.process_time() - started)


def run() -> dict[str, Any]:
    """Both rates of each lemma, side by side."""
    rows = [
        {"lemma": own.id, "balls": slow, "intervals": fast, "ratio": fast / slow}
        for own in (third_moment, softmax_moves, means)
        for slow, fast in (rates(own),)
    ]
    worst = min(row["ratio"] for row in rows)
    return {
        "name": "verify",
        "rows": rows,
        "targets": [target("boxes per second beside balls", worst, at_least=20)],
    }


if __name__ == "__main__":
    print(json.dumps(run(), indent=1))
