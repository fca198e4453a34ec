"""Queries q_X of pooled attention: functions of one sample, never trained."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ._errors import BadArgument
from ._keys import normal, stream
from ._types import Array

Query = Callable[[Float[Array, "T d"]], Float[Array, "d"]]
"""A query: maps a sample (T, d) to the vector q_X (d) that attends."""


@dataclass(frozen=True)
class LastToken:
    """q_X = X_T, the query of the paper's width experiments."""

    def __call__(self, X: Float[Array, "T d"]) -> Float[Array, "d"]:
        """The last token."""
        return X[-1]


LAST_TOKEN = LastToken()
"""The default query, as one shared object: a dataclass default must not be a call."""


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


def check_query(query: Query, d: int) -> None:
    """A query is callable, and a fixed one has d entries."""
    if not callable(query):
        raise BadArgument("query", query, "is not callable", fix="use LastToken() or FixedQuery(v)")
    if isinstance(query, FixedQuery) and len(query.vector) != d:
        raise BadArgument(
            "query", query.vector, f"has {len(query.vector)} entries", fix=f"give {d}"
        )
