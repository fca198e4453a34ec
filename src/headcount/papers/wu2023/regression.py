"""Gaussian regression data and vector input of wu2023, Sec. 5.1, with its four assumptions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from ...core import Array, check_choice, check_count, check_samples, normal, stream
from ...data import Dataset, Measurement, data_models

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
