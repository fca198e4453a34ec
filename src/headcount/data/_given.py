"""Data of the user's own: arrays, or windows of a series in a CSV file. They claim nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from ..core import Array, BadArgument, check_choice, check_count, stream, uniform
from ..core._results import equal_by_content
from ._base import Dataset, Measurement, as_dataset, data_models, token_norms
from ._gaussian import clip_to_ball
from ._series import windows_of_series


def _first(whole: Dataset, n: int, argument: str) -> Dataset:
    check_count(argument, n)
    if n > len(whole.y):
        raise BadArgument(argument, n, f"exceeds the {len(whole.y)} samples", fix="use fewer")
    return Dataset(whole.x[:n], whole.y[:n])


@equal_by_content
@dataclass(frozen=True, eq=False)
class Arrays:
    """x: (n, T, d) and y: (n,) of the user; the first samples are those for training.

    Validation samples are the ones that follow. The seed has no effect.
    """

    x: Float[Array, "n T d"] = field(repr=False)
    y: Float[Array, "n"] = field(repr=False)

    name: ClassVar[str] = "arrays"
    assumption: ClassVar[str] = "none: data of the user"

    def __post_init__(self) -> None:
        as_dataset(self.x, self.y)

    @property
    def T(self) -> int:
        """Tokens per sample."""
        return int(np.shape(self.x)[1])

    @property
    def d(self) -> int:
        """Features per token."""
        return int(np.shape(self.x)[2])

    def sample(self, n: int, seed: int) -> Dataset:
        """The first n samples."""
        return _first(as_dataset(self.x, self.y), n, "n")

    def sample_split(self, n: int, n_val: int, seed: int) -> tuple[Dataset, Dataset]:
        """The first n samples and the n_val that follow."""
        both = _first(as_dataset(self.x, self.y), n + n_val, "n + n_val")
        return Dataset(both.x[:n], both.y[:n]), Dataset(both.x[n:], both.y[n:])

    def measure(self, dataset: Dataset) -> dict[str, Measurement]:
        """The largest token norm, about which nothing is claimed."""
        largest = token_norms(as_dataset(*dataset).x, np.inf)
        return {"token_norm": Measurement.observed(largest.value, largest.meaning)}


def _direction(x: Float[Array, "n T 1"], y: Float[Array, "n"]) -> Float[Array, "n"]:
    """-1 where the next value y is below the last one of the window x, else +1."""
    return np.where(y < x[:, -1, 0], -1.0, 1.0)


SERIES_LABELS = ("next", "direction")
"""What a window of a series is labelled by: the next value, or whether it goes up or down."""


@dataclass(frozen=True)
class Series:
    """Windows of T values of one column of a CSV file, labelled by the next value.

    The series is cut once in time and standardised with its first part (`windows_of_series`); a
    seed picks n windows of that part at random. `clip` moves every token into the unit ball, as
    theorems about unit tokens ask. With labels="direction" a window is labelled +1 where the next
    value is not below its last one, and -1 where it is: what theorems about signs, and `compare`,
    take.
    """

    path: str = ""
    T: int = 8
    column: str | None = None
    missing: str = "error"
    stride: int = 1
    validation: float = 0.2
    clip: bool = False
    labels: str = "next"

    name: ClassVar[str] = "series"
    assumption: ClassVar[str] = "none: the user's own time series"
    d: ClassVar[int] = 1

    @cached_property
    def _parts(self) -> tuple[Dataset, Dataset]:
        options: dict[str, Any] = {"column": self.column, "missing": self.missing}
        options |= {"stride": self.stride, "validation": self.validation}
        check_choice("labels", self.labels, SERIES_LABELS)
        label = _direction if self.labels == "direction" else (lambda x, y: y)
        clip = clip_to_ball if self.clip else np.asarray
        parts = windows_of_series(self.path, self.T, **options)
        first, later = (Dataset(clip(x), label(x, y)) for x, y in parts)
        return first, later

    def sample(self, n: int, seed: int) -> Dataset:
        """n windows of the first part, each at most once, in random order."""
        whole = self._parts[0]
        order = np.argsort(uniform(stream(seed, "series", "windows"), (len(whole.y),)))
        return _first(Dataset(whole.x[order], whole.y[order]), n, "n")

    def sample_split(self, n: int, n_val: int, seed: int) -> tuple[Dataset, Dataset]:
        """Windows of the first part, and the first n_val of the later part."""
        return self.sample(n, seed), _first(self._parts[1], n_val, "n_val")

    def measure(self, dataset: Dataset) -> dict[str, Measurement]:
        """The largest token norm, claimed to be at most 1 where tokens are clipped."""
        x, _ = as_dataset(*dataset)
        largest = token_norms(x, 1.0)
        if self.clip:
            return {"token_norm": largest}
        return {"token_norm": Measurement.observed(largest.value, largest.meaning)}


data_models.register("series", Series)
