"""Gaussian tokens in the unit ball."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from ..core import Array, check_count, check_samples, normal, stream
from ._base import Dataset, Measurement, data_models, token_norms


def clip_to_ball(x: Float[Array, "*batch d"], radius: float = 1.0) -> Float[Array, "*batch d"]:
    """Each vector moved radially into the ball of the given radius; those inside stay."""
    norms = np.linalg.norm(x, axis=-1, keepdims=True)
    return x * np.minimum(1.0, radius / np.maximum(norms, np.finfo(np.float64).tiny))


@dataclass(frozen=True)
class GaussianTokens:
    """Tokens N(0, I_d), clipped radially to |X_t| <= 1.

    A law of inputs: its labels are zero. For d = 8 nearly every token ends on the sphere.
    """

    T: int = 16
    d: int = 8
    name: ClassVar[str] = "gaussian-tokens"
    assumption: ClassVar[str] = "every token lies in the unit ball"

    def __post_init__(self) -> None:
        check_count("T", self.T)
        check_count("d", self.d)

    def inputs(self, n: int, seed: int, part: str = "train") -> Float[Array, "n T d"]:
        """n inputs from the key stream of `part`; different parts are independent."""
        check_count("n", n)
        return clip_to_ball(normal(stream(seed, "inputs", part), (n, self.T, self.d)))

    def sample(self, n: int, seed: int) -> Dataset:
        """n inputs with zero labels."""
        return Dataset(self.inputs(n, seed), np.zeros(n))

    def sample_split(self, n: int, n_val: int, seed: int) -> tuple[Dataset, Dataset]:
        """Independent training and validation inputs."""
        validation = self.inputs(check_count("n_val", n_val), seed, "validation")
        return self.sample(n, seed), Dataset(validation, np.zeros(n_val))

    def measure(self, dataset: Dataset) -> dict[str, Measurement]:
        """The largest token norm, and how many tokens were moved to the sphere."""
        check_samples(*dataset)
        norms = np.linalg.norm(dataset.x, axis=-1)
        return {
            "token_norm": token_norms(dataset.x, 1.0),
            "on_sphere": Measurement.observed(
                np.mean(norms >= 1 - 1e-12), "share of tokens on the unit sphere"
            ),
        }


data_models.register("gaussian-tokens", GaussianTokens)
