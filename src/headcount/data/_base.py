"""What a data model is: a law of samples, the assumption it claims, and a way to measure it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from ..core import Array, Registry, check_samples
from ..core._papers import bring_rooms

_ROUNDING = 1e-12
"""Relative slack of a measured bound: a token divided by its norm may have norm 1 + 2e-16."""


class Dataset(NamedTuple):
    """n samples with their labels, NumPy float64: x: (n, T, d), y: (n,)."""

    x: Float[Array, "n T d"]
    y: Float[Array, "n"]


@dataclass(frozen=True)
class Measurement:
    """One quantity of an assumption, as found on a sample.

    `holds` says whether the value respects `bound`; None where nothing was claimed.
    """

    value: float
    bound: float | None
    holds: bool | None
    meaning: str

    @classmethod
    def observed(cls, value: Any, meaning: str) -> Measurement:
        """A quantity about which the assumption claims nothing."""
        return cls(float(value), None, None, meaning)

    @classmethod
    def at_most(cls, value: Any, bound: float, meaning: str) -> Measurement:
        """A quantity that the assumption bounds from above."""
        slack = _ROUNDING * max(1.0, abs(bound))
        return cls(float(value), float(bound), bool(value <= bound + slack), meaning)

    @classmethod
    def at_least(cls, value: Any, bound: float, meaning: str) -> Measurement:
        """A quantity that the assumption bounds from below."""
        slack = _ROUNDING * max(1.0, abs(bound))
        return cls(float(value), float(bound), bool(value >= bound - slack), meaning)

    @classmethod
    def above(cls, value: Any, bound: float, meaning: str) -> Measurement:
        """A quantity that the assumption asks to be strictly larger than `bound`."""
        return cls(float(value), float(bound), bool(value > bound), meaning)


@runtime_checkable
class DataModel(Protocol):
    """A frozen, hashable description of a law of labelled samples.

    `assumption` names, in words, the assumption of the paper that the law claims to satisfy.
    """

    name: ClassVar[str]
    assumption: ClassVar[str]

    @property
    def T(self) -> int:
        """Tokens per sample."""
        ...

    @property
    def d(self) -> int:
        """Features per token."""
        ...

    def sample(self, n: int, seed: int) -> Dataset:
        """n samples; the same (n, seed) gives the same samples everywhere."""
        ...

    def sample_split(self, n: int, n_val: int, seed: int) -> tuple[Dataset, Dataset]:
        """Training data, equal to `sample(n, seed)`, and validation data disjoint from it."""
        ...

    def measure(self, dataset: Dataset) -> dict[str, Measurement]:
        """The quantities of the assumption on a sample, with the bounds that it claims."""
        ...


data_models: Registry[Callable[..., DataModel]] = Registry("data model", bring_rooms)
"""The data models by the name that the command line uses."""


def as_dataset(x: Any, y: Any) -> Dataset:
    """Arrays of a user as a checked float64 data set."""
    check_samples(x, y)
    return Dataset(np.asarray(x, np.float64), np.asarray(y, np.float64))


def largest_token_norm(x: Float[Array, "n T d"]) -> float:
    """max over samples and tokens of |x_t|."""
    return float(np.max(np.linalg.norm(x, axis=-1)))


def token_norms(x: Float[Array, "n T d"], bound: float) -> Measurement:
    """The largest token norm against the radius that the assumption allows."""
    return Measurement.at_most(largest_token_norm(x), bound, "largest token norm max_t |x_t|")
