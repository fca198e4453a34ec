"""deora2024 on DM1 from zero: one group of 256 equal heads against the plain 256-head loop.

The groups run all 1500 steps of all 5 seeds. The plain loop (naive path, jitted) is timed on
fewer steps of each seed and scaled to 1500; steps cost the same throughout. Times are CPU seconds
of this process, so that other processes on the machine count little.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks._timing import target
from headcount.core import LOGISTIC, float64
from headcount.papers.deora2024.dm1 import DM1
from headcount.papers.deora2024.model import HeadGroups, MultiHeadParams
from headcount.papers.deora2024.starts import zero
from headcount.training import GradientPath, gradient_path, naive_path

H, SAMPLES, STEPS, SEEDS, ETA = 256, 100, 1500, 5, 1.0
PLAIN_STEPS = 4
TARGET = 50.0


def descent(path: GradientPath, steps: int) -> Callable[[Any, Any], Any]:
    """`steps` steps of gradient descent as one compiled program."""

    def step(_: int, params: Any, data: Any) -> Any:
        gradient = path.loss_and_gradient(params, data)[1]
        return jax.tree.map(lambda p, g: p - ETA * g, params, gradient)

    def descend(params: Any, data: Any) -> Any:
        return jax.lax.fori_loop(0, steps, lambda i, p: step(i, p, data), params)

    return jax.jit(descend)


def cpu_seconds(job: Callable[[], Any]) -> tuple[float, Any]:
    """CPU time and result of a job that has been compiled before."""
    started = time.process_time()
    result = jax.block_until_ready(job())
    return time.process_time() - started, result


def _timed(
    path: GradientPath, start: MultiHeadParams, steps: int, sets: list[Any]
) -> tuple[float, list[MultiHeadParams]]:
    descend = descent(path, steps)
    prepared = [path.prepare(jnp.asarray(s.x), jnp.asarray(s.y)) for s in sets]
    jax.block_until_ready(descend(start, prepared[0]))
    timed = [cpu_seconds(lambda data=data: descend(start, data)) for data in prepared]
    return sum(seconds for seconds, _ in timed), [end for _, end in timed]


def run() -> dict[str, Any]:
    """The ratio of the two loops for 1500 steps and 5 seeds, and how far apart they end."""
    law = DM1(T=10, d=4, M=2, S=2.0, zeta=0.1, noise="gaussian", noise_sd=0.1)
    sets = [law.sample(SAMPLES, seed) for seed in range(SEEDS)]
    model = HeadGroups(law.T, law.d, (H,))
    start = zero(model)
    with float64():
        fast = gradient_path(model, LOGISTIC, n=SAMPLES, T=law.T)
        plain_fast = gradient_path(model.plain, LOGISTIC, n=SAMPLES, T=law.T)
        every = jax.tree.map(jnp.asarray, zero(model.plain))
        groups, ends = _timed(fast, start, STEPS, sets)
        _, early = _timed(fast, start, PLAIN_STEPS, sets)
        naive, plain_ends = _timed(naive_path(model.plain, LOGISTIC), every, PLAIN_STEPS, sets)
        analytic, _ = _timed(plain_fast, every, PLAIN_STEPS, sets)
        data = [fast.prepare(jnp.asarray(s.x), jnp.asarray(s.y)) for s in sets]
        final = [fast.loss_and_gradient(end, part)[0] for end, part in zip(ends, data, strict=True)]
        gap = max(
            float(np.max(np.abs(np.asarray(plain.U) - np.asarray(one.U))) / np.max(np.abs(one.U)))
            for plain, one in zip(plain_ends, early, strict=True)
        )
    scale = STEPS / PLAIN_STEPS
    return {
        "name": "deora2024_groups",
        "figures": {
            "groups_s": groups,
            "plain_naive_s_scaled": naive * scale,
            "plain_analytic_s_scaled": analytic * scale,
            "plain_steps_timed_per_seed": PLAIN_STEPS,
            "relative_gap_after_timed_steps": gap,
            "final_train_loss_geometric_mean": math.exp(float(np.mean(np.log(final)))),
        },
        "ratios": {
            "plain naive / groups": naive * scale / groups,
            "plain analytic / groups": analytic * scale / groups,
            "plain naive / plain analytic": naive / analytic,
        },
        "targets": [target("plain naive / groups", naive * scale / groups, at_least=TARGET)],
    }
