"""Spaces that the records of deora2024 draw from, beside those of the engine."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from ...core import Array
from ...theory import Positive, Reals, Signs
from ...theory.families import log_uniform

MOST_HEADS = 1e12
"""The largest multiplicity that a search visits."""


class Entries(Reals):
    """Normal entries, drawn at sizes from `low` to `high`."""

    def __init__(
        self, *shape: str, low: float = 1.0, high: float = 1.0, largest: float = 1e3
    ) -> None:
        super().__init__(*shape, smallest=1e-9, largest=largest)
        self.low, self.high = low, high

    def _random(self, rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> Array:
        sizes = log_uniform(rng, self.low, self.high, count, *[1] * len(shape))
        return rng.normal(size=(count, *shape)) * sizes


class Words(Entries):
    """Tokens; in a third of the draws opposite ones, in a sixth on one line."""

    def __init__(self, *shape: str) -> None:
        super().__init__(*shape, low=0.1, high=5.0, largest=30.0)

    def _random(self, rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> Array:
        X = super()._random(rng, count, shape)
        kind = rng.integers(0, 6, count).reshape(-1, *[1] * len(shape))
        opposite = X[..., :1, :] * np.where(np.arange(shape[-2]) % 2, -1.0, 1.0)[:, None]
        line = X[..., :1, :] * rng.uniform(-1, 1, (*X.shape[:-1], 1))
        return np.where(kind < 2, opposite, np.where(kind == 2, line, X))


class Labels(Signs):
    """Labels: +1 where an entry is not negative."""

    asks = ""
    free = True


class Whole(Positive):
    """Whole numbers, such as multiplicities."""

    def __init__(self, *shape: str, low: float = 1.0, high: float = MOST_HEADS) -> None:
        super().__init__(*shape, low=low, high=high)

    def _random(self, rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> Array:
        return np.round(log_uniform(rng, self.low, min(self.high, 1e6), count, *shape))

    def kept(self, x: Any) -> Any:
        return jnp.clip(jnp.round(jnp.abs(x)), self.low, self.high)


class Counts(Whole):
    """Multiplicities, drawn up to a thousand."""

    def _random(self, rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> Array:
        return np.round(log_uniform(rng, 1.0, 1e3, count, *shape))


class Longest(Positive):
    """Step sizes: drawn so long that whoever moves a run into hypotheses decides."""

    def _random(self, rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> Array:
        return np.ones((count, *shape))
