"""The tangent kernel of arda2026 against Jacobian contraction, and a kernel of 10,000 samples."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks._timing import in_new_process, interleaved, peak_bytes, target


def multiply_peak(dtype: str, size: int = 2048) -> float:
    """Operations per second of a large matrix product, in this process."""
    A = np.random.default_rng(0).standard_normal((size, size)).astype(dtype)
    return 2 * size**3 / interleaved({"A A": lambda: A @ A})["A A"]


def jacobian_contraction(model: Any, params: Any, x: Any, dtype: str) -> Callable[[], Any]:
    """The twin: all Jacobians by one compiled vmap(jacrev), then one product per block."""
    import jax
    import jax.numpy as jnp

    from headcount.core import cast, precision

    params, x = cast(params, dtype), cast(x, dtype)

    @jax.jit
    def kernel(params: Any, x: Any) -> Any:
        J = jax.vmap(jax.jacrev(model), in_axes=(None, 0))(params, x)
        flat = [leaf.reshape(x.shape[0], -1) for leaf in J]
        return sum(jnp.tensordot(F, F, axes=(1, 1)) for F in flat)

    def contraction() -> Any:
        with precision(dtype):
            return kernel(params, x).block_until_ready()

    return contraction


def problem(n: int, T: int, d: int, m: int) -> tuple[Any, Any, Any]:
    """A model at its paired initialisation and n samples with tokens of norm about 1."""
    from headcount.core import normal, stream
    from headcount.papers.arda2026 import PooledAttention, paired

    model = PooledAttention(d, m)
    return model, paired(model, 0), normal(stream(0, "x"), (n, T, d)) / d**0.5


def compare(model: Any, params: Any, x: Any, dtype: str, *, repeats: int) -> dict[str, float]:
    """Structured path, the plain JAX twin, and our own tiled Jacobian path, taking turns."""
    from headcount.kernels import ntk

    call = {"blocks": "total", "dtype": dtype}
    twin = jacobian_contraction(model, params, x, dtype)
    K = ntk(model, params, x, **call).total
    difference = float(np.max(np.abs(K - np.asarray(twin()))) / np.max(np.abs(K)))
    actions = {
        "structured": lambda: ntk(model, params, x, **call),
        "jacobian": twin,
        "tiled_jacobian": lambda: ntk(model, params, x, method="jacobian", **call),
    }
    seconds = interleaved(actions, repeats=repeats)
    return {
        **{f"{name}_s": value for name, value in seconds.items()},
        "ratio": seconds["jacobian"] / seconds["structured"],
        "ratio_to_tiled": seconds["tiled_jacobian"] / seconds["structured"],
        "relative_difference": difference,
    }


def against_jacobian(d: int, n: int = 1000, T: int = 16, m: int = 256) -> dict[str, float]:
    """The comparison at one token dimension, float32."""
    return {"d": d, **compare(*problem(n, T, d, m), "float32", repeats=2)}


def large(n: int = 10_000, T: int = 16, d: int = 8, m: int = 256) -> dict[str, Any]:
    """n = 10,000 in float32: peak memory, time, and the share of the matrix-multiply peak."""
    from headcount.kernels import ntk

    model, params, x = problem(n, T, d, m)
    start = time.process_time()
    K = ntk(model, params, x, blocks="total", dtype="float32")
    seconds = time.process_time() - start
    held = peak_bytes()
    # The symmetric kernel needs one multiply-add per feature and unordered pair.
    operations = n * (n + 1) * (m + 2 * m * d + d)
    peak_rate = multiply_peak("float32")
    return {
        "n": n,
        "seconds": seconds,
        "planned_bytes": K.plan.peak,
        "peak_bytes": held,
        "allowed_bytes": 4 * n * n + 2**30,
        "multiply_peak_gflops": peak_rate / 1e9,
        "share_of_peak": operations / seconds / peak_rate,
    }


def run() -> dict[str, Any]:
    """Ratios at d = 8, 16, 32 and the kernel of 10,000 samples, with the targets."""
    ratios = [in_new_process(against_jacobian, d=d) for d in (8, 16, 32)]
    big = in_new_process(large)
    at_8, at_16, at_32 = (row["ratio"] for row in ratios)
    return {
        "name": "ntk_arda2026",
        "figures": {"against_jacobian": ratios, "large": big},
        "ratios": {f"d={r['d']}": r["ratio"] for r in ratios},
        "targets": [
            target("Jacobians / structured at d=16", at_16, at_least=10),
            target("growth of that ratio with d", min(at_16 / at_8, at_32 / at_16), at_least=1),
            target("peak / (4 n^2 + 1 GiB)", big["peak_bytes"] / big["allowed_bytes"], at_most=1),
        ],
    }
