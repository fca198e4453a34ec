"""AR(L) windows with fixed positional channels: the long-memory task of arda2026, Sec. 6."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import jax
import numpy as np
from jaxtyping import Float

from ...core import (
    Array,
    BadArgument,
    check_choice,
    check_count,
    check_positive,
    check_samples,
    normal,
    stream,
)
from ...data import (
    Dataset,
    Measurement,
    PositionalTokens,
    clip_to_ball,
    data_models,
    positional_channels,
)
from ...data._base import token_norms
from ...data._positional import FREQUENCIES

STANDARDISATIONS = ("train", "train+val", "none")
WINDOWS = ("disjoint", "overlapping")
SPLITS = ("separate", "random")


@dataclass(frozen=True)
class ARWindows:
    """x_t = alpha x_{t-L} + eps_t, label y = x_{T+1} of a window of T tokens [arda2026, Sec. 6].

    A token is (x_t, positional channels), d = 1 + 2 pairs. With T = L + 1 (T=0 stands for it) the
    token that tells about y is the window's second one. The best mean squared error of
    standardised labels is 1 - alpha^2.

    normalise_tokens: clip each token to the unit ball, as the theory asks; the released code does
    not. standardise_labels: with the mean and deviation of the training labels, of training and
    validation together (released code), or not at all. windows: cut from one series without
    overlap, or at every step (released code). split: validation windows from a separate series, or
    a random choice among all windows of one series (released code; with overlapping windows this
    leaks, and training data then differ from `sample`). Positional channels have these frequencies
    (see `data.positional_channels`) and are multiplied by position_scale.
    """

    L: int = 4
    T: int = 0
    alpha: float = 0.9
    noise_variance: float = 0.1
    pairs: int = 8
    normalise_tokens: bool = True
    standardise_labels: str = "train"
    windows: str = "disjoint"
    split: str = "separate"
    frequencies: str = "dyadic"
    position_scale: float = 1.0
    name: ClassVar[str] = "ar"
    assumption: ClassVar[str] = (
        "arda2026, Sec. 3.1: every token lies in the unit ball (true with normalise_tokens)"
    )

    def __post_init__(self) -> None:
        check_count("L", self.L)
        check_count("T", self.T, least=0)
        if self.T == 0:
            object.__setattr__(self, "T", self.L + 1)
        if self.T < self.L:
            raise BadArgument(
                "T", self.T, "is below L: the window misses x_{T+1-L}", fix=f"use T={self.L + 1}"
            )
        if not -1 < self.alpha < 1:
            raise BadArgument(
                "alpha", self.alpha, "must lie in (-1, 1): the series explodes", fix="use 0.9"
            )
        check_positive("noise_variance", self.noise_variance)
        check_count("pairs", self.pairs, least=0)
        check_choice("standardise_labels", self.standardise_labels, STANDARDISATIONS)
        check_choice("windows", self.windows, WINDOWS)
        check_choice("split", self.split, SPLITS)
        check_choice("frequencies", self.frequencies, FREQUENCIES)
        check_positive("position_scale", self.position_scale)

    @property
    def d(self) -> int:
        """Features per token."""
        return 1 + 2 * self.pairs

    @property
    def token_form(self) -> PositionalTokens | None:
        """The form of its tokens, from which a gradient path can save work."""
        known = self.pairs and self.frequencies == "dyadic"
        return PositionalTokens(self.T, self.pairs) if known else None

    @property
    def informative(self) -> int:
        """Index of the token that holds x_{T+1-L}, counted from zero."""
        return self.T - self.L

    def series(self, length: int, seed: int, part: str = "train") -> Float[Array, "length"]:
        """The stationary series: its first L entries are N(0, noise_variance / (1 - alpha^2)).

        The released code starts from N(0, 1) and drops 800 entries, which is not enough for
        large L: at L = 96 the variance is then 0.58 instead of 0.53.
        """
        check_count("length", length)
        draws = normal(stream(seed, "series", part), (-(-length // self.L), self.L))
        drive = math.sqrt(self.noise_variance) * draws
        drive[0] /= math.sqrt(1 - self.alpha**2)
        # Entries L apart form one AR(1) chain, so each column is a chain of its own.
        from scipy.signal import lfilter  # slow to import

        return lfilter([1.0], [1.0, -self.alpha], drive, axis=0).ravel()[:length]

    def sample(self, n: int, seed: int) -> Dataset:
        """n windows of one series."""
        x, y = self._raw(n, seed, "train")
        return self._finished(x, y, *self._statistics(y))

    def sample_split(self, n: int, n_val: int, seed: int) -> tuple[Dataset, Dataset]:
        """Training and validation windows; see `split` for what they share."""
        check_count("n", n)
        check_count("n_val", n_val)
        if self.split == "separate":
            (x, y), (x_val, y_val) = self._raw(n, seed, "train"), self._raw(n_val, seed, "val")
        else:
            x_all, y_all = self._raw(n + n_val, seed, "train")
            order = np.asarray(jax.random.permutation(stream(seed, "series", "split"), n + n_val))
            x, x_val = np.split(x_all[order], [n])
            y, y_val = np.split(y_all[order], [n])
        pooled = np.concatenate([y, y_val]) if self.standardise_labels == "train+val" else y
        mean, deviation = self._statistics(pooled)
        train = self._finished(x, y, mean, deviation)
        return train, self._finished(x_val, y_val, mean, deviation)

    def measure(self, dataset: Dataset) -> dict[str, Measurement]:
        """Token norms against 1; labels; how the informative token and the label go together."""
        check_samples(*dataset)
        x, y = dataset
        told = x[:, self.informative, 0]
        related = float(np.corrcoef(told, y)[0, 1]) if np.std(told) * np.std(y) > 0 else 0.0
        return {
            "token_norm": token_norms(x, 1.0),
            "label_mean": Measurement.observed(np.mean(y), "mean label"),
            "label_sd": Measurement.observed(np.std(y), "standard deviation of the labels"),
            "lag_correlation": Measurement.observed(
                related, "correlation of the label with the informative token; alpha in the limit"
            ),
        }

    def _raw(self, n: int, seed: int, part: str) -> tuple[Float[Array, "n T"], Float[Array, "n"]]:
        check_count("n", n)
        stride = self.T + 1 if self.windows == "disjoint" else 1
        values = self.series((n - 1) * stride + self.T + 1, seed, part)
        cut = np.lib.stride_tricks.sliding_window_view(values, self.T + 1)[::stride]
        return cut[:, : self.T], cut[:, self.T]

    def _statistics(self, y: Float[Array, "n"]) -> tuple[float, float]:
        if self.standardise_labels == "none":
            return 0.0, 1.0
        if len(y) < 2:
            raise BadArgument(
                "n",
                len(y),
                "is too small to standardise labels",
                fix='use n >= 2 or standardise_labels="none"',
            )
        return float(np.mean(y)), float(np.std(y))

    def _finished(
        self, values: Float[Array, "n T"], y: Float[Array, "n"], mean: float, deviation: float
    ) -> Dataset:
        channels = positional_channels(self.T, self.pairs, self.frequencies)
        positions = self.position_scale * channels
        spread = np.broadcast_to(positions, (len(y), *positions.shape))
        x = np.concatenate([values[:, :, None], spread], axis=2)
        return Dataset(clip_to_ball(x) if self.normalise_tokens else x, (y - mean) / deviation)


data_models.register("ar", ARWindows)
