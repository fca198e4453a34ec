"""Data of wu2023: Gaussian regression and vector input of Sec. 5.1, and two digits to tell apart.

With measurements of its four assumptions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import jax
import numpy as np
from jaxtyping import Float

from ...core import Array, BadArgument, check_choice, check_count, check_samples, normal, stream
from ...data import Dataset, Measurement, as_dataset, data_models, load_images, patches
from ...data._base import token_norms
from ...data._images import IMAGE_CHOICES, IMAGE_SETS, chosen_images

TOKENS = ("scaled", "raw")
LAYOUTS = ("row", "column")
_MOST_PAIRED = 200
"""Samples whose pairs are looked at for the tail of Assumption 3: at most 19 900 pairs."""


def _gaussian(shape: tuple[int, ...], width: int, tokens: str, seed: int, part: str) -> Dataset:
    scale = 1 / math.sqrt(width) if tokens == "scaled" else 1.0
    x = scale * normal(stream(seed, "wu2023", part, "x"), shape)
    return Dataset(x, normal(stream(seed, "wu2023", part, "y"), shape[:1]))


class _Parts:
    """Training and validation samples from one law, with the paper's four assumptions."""

    assumption: ClassVar[str] = (
        "wu2023, Assumptions 1 to 4: bounded Frobenius norm (with the realised C_x), full row "
        "rank, dissimilar samples, full-rank covariance of the summed tokens"
    )

    def _part(self, n: int, seed: int, part: str) -> Dataset:
        raise NotImplementedError

    def sample(self, n: int, seed: int) -> Dataset:
        """n samples."""
        return self._part(check_count("n", n), seed, "train")

    def sample_split(self, n: int, n_val: int, seed: int) -> tuple[Dataset, Dataset]:
        """Independent training and validation samples."""
        check_count("n_val", n_val)
        return self.sample(n, seed), self._part(n_val, seed, "validation")

    def measure(self, dataset: Dataset) -> dict[str, Measurement]:
        """C_x, row rank, the tail of Assumption 3 and C_Sigma."""
        return encoder_assumptions(dataset)


@dataclass(frozen=True)
class GaussianRegression(_Parts):
    """X: d_s x d with Gaussian entries, y ~ N(0, 1) independent of X [wu2023, Sec. 5.1].

    T is the paper's d_s. tokens "raw": entries N(0, 1), as the paper says; "scaled": N(0, 1/d),
    so that tokens have norm near 1 and the printed step sizes are stable.
    """

    T: int = 10
    d: int = 100
    tokens: str = "scaled"
    name: ClassVar[str] = "gaussian-regression"

    def __post_init__(self) -> None:
        check_count("T", self.T)
        check_count("d", self.d)
        check_choice("tokens", self.tokens, TOKENS)

    def _part(self, n: int, seed: int, part: str) -> Dataset:
        return _gaussian((n, self.T, self.d), self.d, self.tokens, seed, part)


@dataclass(frozen=True)
class VectorInput(_Parts):
    """x in R^D as one token of D features or as D tokens of one feature [wu2023, Corollary 1].

    layout "row": (1, D), where the encoder is a two-layer ReLU network; "column": (D, 1), where
    its last hidden layer has rank at most 2 and Assumption 2 fails. Both layouts hold the same
    numbers for the same seed.
    """

    D: int = 100
    layout: str = "row"
    tokens: str = "scaled"
    name: ClassVar[str] = "vector-input"

    def __post_init__(self) -> None:
        check_count("D", self.D)
        check_choice("layout", self.layout, LAYOUTS)
        check_choice("tokens", self.tokens, TOKENS)

    @property
    def T(self) -> int:
        """Tokens per sample."""
        return 1 if self.layout == "row" else self.D

    @property
    def d(self) -> int:
        """Features per token."""
        return self.D if self.layout == "row" else 1

    def _part(self, n: int, seed: int, part: str) -> Dataset:
        x, y = _gaussian((n, self.D), self.D, self.tokens, seed, part)
        return Dataset(x.reshape(n, self.T, self.d), y)


def encoder_assumptions(dataset: Dataset) -> dict[str, Measurement]:
    """The constants of wu2023's Assumptions 1 to 4 on any data set.

    C_x = max_n |X_n|_F / sqrt(d_s); row rank of every X_n; size and decay of the pair products
    |X_n X_n'^T|_F^2; C_Sigma = lambda_min of the mean of x x^T, x = sum_i x_i, undecided for n < d.
    """
    n, T, d = check_samples(*dataset)
    x = np.asarray(dataset.x, np.float64)
    sizes = np.linalg.norm(x, axis=(1, 2))
    singular = np.linalg.svd(x, compute_uv=False)
    ranks = np.sum(singular > max(T, d) * np.finfo(np.float64).eps * singular[:, :1], axis=1)
    smallest = float(np.min(singular[:, -1]) ** 2) if d >= T else 0.0
    summed = np.sum(x, axis=1)
    eigenvalue = float(np.linalg.eigvalsh(summed.T @ summed / n)[0]) if n >= d else 0.0
    meaning = "C_Sigma: smallest eigenvalue of the summed tokens' second moment"
    found = {
        "C_x": Measurement.observed(np.max(sizes) / math.sqrt(T), "A1: max |X|_F / sqrt(d_s)"),
        "row_rank": Measurement.at_least(np.min(ranks), T, "A2: smallest rank of X, against d_s"),
        "C_lambda": Measurement.observed(smallest, "A2: smallest eigenvalue of any X X^T"),
        "C_Sigma": Measurement.above(eigenvalue, _rank_floor(summed, d), f"A4: {meaning}")
        if n >= d
        else Measurement.observed(eigenvalue, f"A4: {meaning}; undecided, n is below d"),
    }
    return {**found, **_pair_tail(x[:_MOST_PAIRED])}


def _rank_floor(summed: Float[Array, "n d"], d: int) -> float:
    """Below this an eigenvalue is zero up to rounding."""
    return float(d * np.finfo(np.float64).eps * np.mean(np.sum(summed**2, axis=1)))


def pair_products(x: Float[Array, "n T d"]) -> Float[Array, "pairs"]:
    """<X_n^T X_n, X_m^T X_m> = |X_n X_m^T|_F^2 of every pair n < m, in increasing order [A3]."""
    n, T, d = np.shape(x)
    tokens = np.reshape(x, (n * T, d))
    squares = ((tokens @ tokens.T) ** 2).reshape(n, T, n, T).sum(axis=(1, 3))
    return np.sort(squares[np.triu_indices(n, 1)])


def tail_exponent(products: Float[Array, "pairs"]) -> float:
    """c of P(product >= t) ~ exp(-(t/t0)^c): the slope of log(-log tail) against log t.

    Fitted over the upper half of the sorted products; NaN where these are too few or all equal.
    """
    tail = 1 - np.arange(len(products)) / len(products)
    upper = (tail <= 0.5) & (products > 0)
    if np.sum(upper) < 10 or products[upper][-1] <= products[upper][0]:
        return math.nan
    return float(np.polyfit(np.log(products[upper]), np.log(-np.log(tail[upper])), 1)[0])


def _pair_tail(x: Float[Array, "n T d"]) -> dict[str, Measurement]:
    """Largest pair product and the tail's exponent [A3].

    The printed A3 (all t, no scale t0) cannot hold below the smallest product, so nothing is
    judged.
    """
    if len(x) < 2:
        return {}
    products = pair_products(x)
    found = {"A3_largest": Measurement.observed(products[-1], "A3: largest |X_n X_n'^T|_F^2")}
    slope = tail_exponent(products)
    if math.isfinite(slope):
        found["A3_exponent"] = Measurement.observed(slope, "A3: fitted tail exponent")
    return found


data_models.register("gaussian-regression", GaussianRegression)
data_models.register("vector-input", VectorInput)

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
