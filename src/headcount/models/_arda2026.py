"""The pooled multi-head attention of arda2026, Sec. 3.2."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ..core import (
    Activation,
    Array,
    BadArgument,
    activations,
    check_count,
    mirrored_sum,
    normal,
    pooled_attention,
    stream,
)
from ._base import models


class PooledAttentionParams(NamedTuple):
    """varphi = (c_i, U_i, W_i), i = 1..m [arda2026, Eq. (4)]."""

    c: Float[Array, "m"]
    U: Float[Array, "m d"]
    W: Float[Array, "m d d"]


@dataclass(frozen=True)
class LastToken:
    """q_X = X_T, the query of the paper's width experiments."""

    def __call__(self, X: Float[Array, "T d"]) -> Float[Array, "d"]:
        """The last token."""
        return X[-1]


@dataclass(frozen=True)
class FixedQuery:
    """The same query vector for every input, like a [CLS] token; |q| <= 1 as Sec. 3.2 asks."""

    vector: tuple[float, ...]

    def __post_init__(self) -> None:
        length = math.sqrt(sum(v * v for v in self.vector))
        if not length <= 1 + 1e-12:
            raise BadArgument("query", self.vector, "has norm above 1", fix="divide it by its norm")

    def __call__(self, X: Float[Array, "T d"]) -> Float[Array, "d"]:
        """The fixed vector, in the precision of X."""
        return jnp.asarray(self.vector, dtype=X.dtype)


def seeded_query(d: int, seed: int) -> FixedQuery:
    """A pre-specified random unit query, drawn from its own key stream."""
    vector = normal(stream(seed, "query"), (d,))
    return FixedQuery(tuple((vector / np.linalg.norm(vector) * (1 - 1e-15)).tolist()))


Query = Callable[[Float[Array, "T d"]], Float[Array, "d"]]


@dataclass(frozen=True)
class PooledAttention:
    """f(X; varphi) = m^{-1/2} sum_i c_i sigma(U_i . a(X; W_i)) [arda2026, Eqs. (2)-(4)].

    a(X; W) = sum_t alpha_t X_t with alpha = softmax(X W q_X), tokens X_t as rows of X: (T, d).
    No temperature; the query q_X is not trained.
    """

    d: int
    m: int
    activation: Activation = activations["tanh"]
    query: Query = LastToken()
    name: ClassVar[str] = "arda2026"

    def __post_init__(self) -> None:
        check_count("d", self.d)
        check_count("m", self.m)
        if isinstance(self.query, FixedQuery) and len(self.query.vector) != self.d:
            raise BadArgument(
                "query",
                self.query.vector,
                f"has {len(self.query.vector)} entries",
                fix=f"give {self.d}",
            )

    def head(
        self, U: Float[Array, "d"], W: Float[Array, "d d"], x: Float[Array, "T d"]
    ) -> Float[Array, ""]:
        """h(X; theta_i) = sigma(U_i . a(X; W_i)) [arda2026, Eq. (3)]."""
        alpha = pooled_attention(x, W, self.query(x))
        return self.activation(U @ (alpha @ x))

    def __call__(self, params: PooledAttentionParams, x: Float[Array, "T d"]) -> Float[Array, ""]:
        """f(X; varphi) [arda2026, Eq. (4)]."""
        h = jax.vmap(self.head, in_axes=(0, 0, None))(params.U, params.W, x)
        return mirrored_sum(params.c * h) / math.sqrt(self.m)

    def shapes(self) -> PooledAttentionParams:
        """Shapes of (c, U, W)."""
        d, m = self.d, self.m
        return PooledAttentionParams((m,), (m, d), (m, d, d))


models.register("arda2026", PooledAttention)
