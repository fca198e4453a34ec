"""The models and random points on which every tangent-kernel test runs."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from headcount.core import activations, normal, seeded_query, stream
from headcount.papers import arda2026, deora2024, wu2023

T, D = 5, 4

STRUCTURED: dict[str, Any] = {
    "arda2026": arda2026.PooledAttention(D, 6),
    "arda2026-query": arda2026.PooledAttention(
        D, 3, activation=activations["erf"], query=seeded_query(D, 1)
    ),
    "deora2024-full": deora2024.MultiHeadAttention(T, D, 3, "full"),
    "deora2024-pooling": deora2024.MultiHeadAttention(T, D, 3, "pooling"),
    "deora2024-last": deora2024.MultiHeadAttention(T, D, 3, "last"),
    "groups-full": deora2024.HeadGroups(T, D, (3, 1, 7), "full"),
    "groups-pooling": deora2024.HeadGroups(T, D, (2, 5), "pooling"),
    "groups-last": deora2024.HeadGroups(T, D, (4,), "last"),
    "wu2023-sum": wu2023.Encoder(D, 9, 0.3, 0.5, "sum"),
    "wu2023-narrow-mean": wu2023.Encoder(D, 3, 0.3, 0.5, "mean"),
    "wu2023-residual": wu2023.Encoder(D, 9, 0.3, 0.5, "mean", residual=True),
}
GENERIC: dict[str, Any] = {
    "indrnn": arda2026.IndRNN(D, 6),
    "linear": deora2024.LinearModel(T, D),
    "two-layer": wu2023.TwoLayerReLU(T * D, 8, 0.3),
}
ALL = {**STRUCTURED, **GENERIC}


def samples(n: int, name: str = "x", tokens: int = T) -> np.ndarray:
    """n asymmetric samples (n, tokens, D)."""
    return normal(stream(0, "test", name), (n, tokens, D)) + 0.3


def random_params(model: Any, name: str = "theta") -> Any:
    """Generic parameters in the model's shapes."""
    shapes = model.shapes()
    draws = {k: normal(stream(2, name, k), s) for k, s in shapes._asdict().items()}
    return type(shapes)(**draws)


def slow_blocks(model: Any, params: Any, x1: Any, x2: Any) -> dict[str, np.ndarray]:
    """<grad_b f(x), grad_b f(x')>, sample by sample with jax.jacrev: the twin of every path.

    Head groups are expanded to all their heads.
    """
    if isinstance(model, deora2024.HeadGroups):
        params, model = model.expand(params), model.plain
    gradient = jax.jit(jax.jacrev(model))

    def rows(x: Any) -> list[Any]:
        return [gradient(params, sample) for sample in x]

    left, right = rows(x1), rows(x2)
    return {
        name: np.array(
            [[float(jnp.vdot(getattr(a, name), getattr(b, name))) for b in right] for a in left]
        )
        for name in params._fields
    }
