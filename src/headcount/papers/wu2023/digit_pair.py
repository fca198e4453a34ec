"""Two digits to tell apart: patches of images as tokens, labels -1 and +1."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import jax
import numpy as np

from ...core import BadArgument, check_choice, check_count, stream
from ...data import (
    IMAGE_CHOICES,
    IMAGE_SETS,
    Dataset,
    Measurement,
    as_dataset,
    chosen_images,
    data_models,
    load_images,
    patches,
    token_norms,
)

SIDES = {"mnist": 28, "digits": 8}
PATCHES = {"mnist": 14, "digits": 4}
"""Side of a patch by default: four tokens an image."""


@dataclass(frozen=True)
class DigitPair:
    """Images of two digits, cut into square patches; the second digit has the label +1.

    source: "auto" is MNIST where it is at hand, else the digits that ship. Every sample is divided
    by the length of the longest patch of all images of its set, so that tokens lie in the unit
    ball. A seed picks the samples.
    """

    source: str = "auto"
    first: int = 0
    second: int = 1
    patch: int | None = None
    name: ClassVar[str] = "digit-pair"
    assumption: ClassVar[str] = "tokens in the unit ball, labels -1 and +1"

    def __post_init__(self) -> None:
        check_choice("source", self.source, IMAGE_CHOICES)
        for argument in ("first", "second"):
            check_choice(argument, getattr(self, argument), tuple(range(10)))
        if self.first == self.second:
            problem = "is the first digit, too"
            raise BadArgument("second", self.second, problem, fix="take two different digits")
        side = SIDES[self.images]
        if side % self.size:
            problem = f"does not divide the side {side} of an image"
            raise BadArgument("patch", self.size, problem, fix="use a divisor")

    @property
    def images(self) -> str:
        """The image set that is used on this machine."""
        return self.source if self.source in IMAGE_SETS else chosen_images(self.source)

    @property
    def size(self) -> int:
        """The side of a patch."""
        return PATCHES[self.images] if self.patch is None else self.patch

    @property
    def T(self) -> int:
        """Patches of an image."""
        return (SIDES[self.images] // self.size) ** 2

    @property
    def d(self) -> int:
        """Pixels of a patch."""
        return self.size**2

    def sample(self, n: int, seed: int) -> Dataset:
        """n images of the training split, in a random order of their own for every seed."""
        return self._pick("train", n, seed)

    def sample_split(self, n: int, n_val: int, seed: int) -> tuple[Dataset, Dataset]:
        """Training images, and n_val of the test split."""
        return self._pick("train", n, seed), self._pick("test", n_val, seed)

    def _pick(self, split: str, count: int, seed: int) -> Dataset:
        check_count("n" if split == "train" else "n_val", count)
        whole = _tokens(self.images, split, self.first, self.second, self.size)
        if count > len(whole.y):
            problem = f"exceeds the {len(whole.y)} images of the {split} split"
            raise BadArgument("n", count, problem, fix="use fewer")
        key = stream(seed, "digit-pair", split)
        order = np.asarray(jax.random.permutation(key, len(whole.y)))[:count]
        return Dataset(whole.x[order], whole.y[order])

    def measure(self, dataset: Dataset) -> dict[str, Measurement]:
        """The largest token norm against 1."""
        return {"token_norm": token_norms(as_dataset(*dataset).x, 1.0)}


@lru_cache(maxsize=8)
def _tokens(images: str, split: str, first: int, second: int, size: int) -> Dataset:
    found = load_images(images, split, (first, second))
    x = patches(found.images, size)
    longest = np.max(np.linalg.norm(patches(load_images(images, "train").images, size), axis=-1))
    inside = x / max(longest, float(np.max(np.linalg.norm(x, axis=-1))))
    return Dataset(inside, np.where(found.digits == second, 1.0, -1.0))


data_models.register(DigitPair.name, DigitPair)
