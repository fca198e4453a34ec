"""One wu2023 training step: the fast path against two jitted autodiff twins.

The first twin is the model as the paper prints it (queries X W_Q^T and keys X W_K^T of width d_m
for every token); the second is `naive_path` of our own model, which already forms W_Q^T W_K once.
Times are CPU seconds of this process, so that other processes on the machine count little.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks._timing import target
from headcount.core import Array, cast, normal, precision, stream
from headcount.core._losses import HALF_SQUARED_SUM
from headcount.papers.wu2023.model import Encoder, EncoderParams
from headcount.papers.wu2023.starts import lecun
from headcount.training import gradient_path, naive_path

N, TOKENS, FEATURES = 100, 10, 100
WIDTHS = (1000, 4000, 16000)
TWINS = ("as_printed", "naive_path")
TARGET_WIDTH, TARGET, AIM = 4000, 2.3, 4.0


def as_printed(model: Encoder) -> Callable[[EncoderParams, Array], Array]:
    """f(X) with every token's query, key and value computed at width d_m."""

    def f(params: EncoderParams, x: Array) -> Array:
        queries, keys, values = x @ params.W_Q.T, x @ params.W_K.T, x @ params.W_V.T
        attention = jax.nn.softmax(model.tau0 * queries @ keys.T, axis=-1)
        return params.w_O @ model.pooled(attention @ values)

    return f


def attention_part(model: Encoder) -> Callable[..., Any]:
    """What a step does for the softmax alone: phi, and the gradients of W_Q and W_K."""

    def phi(M: Array, x: Array) -> Array:
        queries = (x.reshape(-1, model.d) @ M).reshape(x.shape)
        logits = jnp.einsum("bid,bjd->bij", queries, x)
        return jnp.einsum("bij,bjd->bid", jax.nn.softmax(logits, axis=-1), x)

    def part(params: EncoderParams, x: Array, grad_phi: Array) -> Any:
        M = model.tau0 * (params.W_Q.T @ params.W_K)
        value, pull = jax.vjp(lambda M: phi(M, x), M)
        grad_M = model.tau0 * pull(grad_phi)[0]
        return value, params.W_K @ grad_M.T, params.W_Q @ grad_M

    return part


def width_products(params: EncoderParams, M: Array) -> Any:
    """The three products of d^2 d_m multiplications that a step cannot avoid."""
    return params.W_Q.T @ params.W_K, params.W_K @ M.T, params.W_Q @ M


def best_seconds(jobs: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """The least CPU time of each job; the jobs take turns, so that a busy spell hits all.

    Each runs once untimed before it is timed: otherwise it would pay for the caches and buffers
    that the job before it left behind, and the figures would depend on the order of the jobs.
    """
    best = dict.fromkeys(jobs, float("inf"))
    for _ in range(repeats):
        for name, job in jobs.items():
            jax.block_until_ready(job())
            started = time.process_time()
            jax.block_until_ready(job())
            best[name] = min(best[name], time.process_time() - started)
    return best


def _one_width(d_m: int, repeats: int) -> dict[str, float]:
    model = Encoder(FEATURES, d_m, tau0=d_m**-0.5, tau1=1.0, pooling="sum")
    x = cast(normal(stream(0, "bench", "x"), (N, TOKENS, FEATURES)), "float32")
    y = cast(normal(stream(0, "bench", "y"), (N,)), "float32")
    params = cast(lecun(model, 0), "float32")
    paths = {
        "fast": gradient_path(model, HALF_SQUARED_SUM, n=N, T=TOKENS),
        "as_printed": naive_path(as_printed(model), HALF_SQUARED_SUM),
        "naive_path": naive_path(model, HALF_SQUARED_SUM),
    }

    def step_of(path: Any) -> Callable[[], Any]:
        data, step = path.prepare(x, y), jax.jit(path.loss_and_gradient)
        return lambda: step(params, data)

    attend, products = jax.jit(attention_part(model)), jax.jit(width_products)
    M = x[:10].reshape(FEATURES, FEATURES)
    jobs = {name: step_of(path) for name, path in paths.items()}
    jobs["attention"] = lambda: attend(params, x, x)
    jobs["d2_dm_products"] = lambda: products(params, M)
    results = [jobs[name]() for name in paths]
    seconds = best_seconds(jobs, repeats)
    fast, *twins = [np.concatenate([np.ravel(v) for v in jax.tree.leaves(r)]) for r in results]
    gaps = [float(np.linalg.norm(fast - t) / np.linalg.norm(t)) for t in twins]
    return {f"{name}_ms": 1e3 * s for name, s in seconds.items()} | {"relative_gap": max(gaps)}


def run(repeats: int = 7) -> dict[str, Any]:
    """Times by width, the ratios at d_m = 4000, and what attention costs beyond d^2 d_m."""
    with precision("float32"):
        figures = {d_m: _one_width(d_m, repeats) for d_m in WIDTHS}
    at = figures[TARGET_WIDTH]
    ratios = {f"{twin} / fast": at[f"{twin}_ms"] / at["fast_ms"] for twin in TWINS}
    return {
        "name": "wu2023_step",
        "figures": {f"d_m={d_m}": values for d_m, values in figures.items()},
        "attention_beyond_d2_dm_ms": {
            f"d_m={d_m}": v["attention_ms"] - v["d2_dm_products_ms"] for d_m, v in figures.items()
        },
        "targets": [
            target(f"{name} at d_m={TARGET_WIDTH}", ratio, at_least=TARGET, aim=AIM)
            for name, ratio in ratios.items()
        ],
    }
