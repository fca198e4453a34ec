"""Models that a user may bring, in eight shapes: README's "any f(params, x)"."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

N, K, V = 13, 3, 7
RNG = np.random.default_rng(5)
REAL, VECTORS = RNG.normal(size=N), RNG.normal(size=(N, K))
SIGNS, CLASSES = np.sign(REAL), RNG.integers(0, K, N)
IDS, MASK = RNG.integers(0, V, (N, 4)), RNG.uniform(size=(N, 4)) < 0.7


def weights(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).normal(size=shape) * 0.4


def mlp(p: Any, x: Any) -> Any:
    return jnp.tanh(jnp.ravel(x) @ p["a"]) @ p["b"]


def embedded(p: Any, ids: Any) -> Any:
    return jnp.tanh(p["E"][ids].mean(axis=0) @ p["a"]) @ p["b"]


def masked(p: Any, x: Any) -> Any:
    return (jnp.tanh(p["E"][x["ids"]] @ p["a"]) * x["mask"][:, None]).sum(axis=0) @ p["b"]


def absolute(f: Any, y: Any) -> Any:
    return jnp.sum(jnp.abs(f - y) ** 1.5)


IMAGES, TOKENS = RNG.normal(size=(N, 3, 3, 2)), RNG.normal(size=(N, 4, 5))
WIDE = {"a": weights(5, 6), "b": weights(6)}
SHAPES: dict[str, tuple[Any, Any, Any, Any, Any]] = {
    "matrix": (mlp, WIDE, RNG.normal(size=(N, 5)), REAL, "mean-squared"),
    "tokens": (mlp, {"a": weights(20, 6), "b": weights(6)}, TOKENS, SIGNS, "logistic"),
    "images": (mlp, {"a": weights(18, 6), "b": weights(6, K)}, IMAGES, CLASSES, "cross-entropy"),
    "vectors": (mlp, {"a": weights(20, 6), "b": weights(6, K)}, TOKENS, VECTORS, "mean-squared"),
    "half sums": (
        mlp,
        {"a": weights(20, 6), "b": weights(6, K)},
        TOKENS,
        VECTORS,
        "half-squared-sum",
    ),
    "ids": (embedded, {"E": weights(V, 5), **WIDE}, IDS, REAL, "mean-squared"),
    "a dict": (masked, {"E": weights(V, 5), **WIDE}, {"ids": IDS, "mask": MASK}, SIGNS, "logistic"),
    "own loss": (mlp, {"a": weights(20, 6), "b": weights(6, K)}, TOKENS, VECTORS, absolute),
}
