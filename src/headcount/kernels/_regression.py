"""Kernel regression, with a ridge or without, by one eigendecomposition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from jaxtyping import Bool, Float

from ..core import Array, BadArgument, check_finite, check_nonnegative, check_shape
from ..core._results import mappable
from ..core._shown import Shown


@mappable("cutoff")
@dataclass(frozen=True, repr=False)
class Spectrum(Shown):
    """K = V diag(values) V^T, ascending; `kept` marks the eigenvalues above the cut-off.

    Eigenvalues of at most `cutoff` times the largest are treated as zero: below n eps they are
    rounding, whatever their sign.
    """

    values: Float[Array, "n"]
    vectors: Float[Array, "n n"]
    kept: Bool[Array, "n"]
    cutoff: float

    @property
    def rank(self) -> int:
        """How many eigenvalues are kept."""
        return int(np.count_nonzero(self.kept))


def spectrum_of(kernel: Float[Array, "n n"], cutoff: float | None = None) -> Spectrum:
    """The eigendecomposition of a symmetric kernel matrix, in float64 (default cut-off n eps)."""
    K = check_kernel("kernel", kernel)
    relative = len(K) * np.finfo(np.float64).eps if cutoff is None else cutoff
    check_nonnegative("cutoff", relative)
    values, vectors = scipy.linalg.eigh(K)
    return Spectrum(values, vectors, values > relative * max(values[-1], 0.0), relative)


@mappable("ridge", "cutoff", "rank")
@dataclass(frozen=True, repr=False)
class KernelRegression(Shown):
    """f(x) = f0(x) + K(x, x_train) coefficients, as fitted by `kernel_regression`.

    `rank` counts the eigenvalues of the kernel that were kept; `residual` is the largest
    |f - y| on the training set (zero up to rounding if the ridge is 0 and the kernel regular).
    """

    coefficients: Float[Array, "n *k"]
    train: Float[Array, "n *k"]
    residual: float
    ridge: float
    cutoff: float
    rank: int
    norm: float

    def predict(
        self, kernel: Float[Array, "n_new n"], f0: Float[Array, "n_new *k"] | float = 0.0
    ) -> Float[Array, "n_new *k"]:
        """f0 + K(x_new, x_train) coefficients."""
        check_shape("kernel", kernel, (None, len(self.coefficients)))
        return np.asarray(f0) + np.asarray(kernel, np.float64) @ self.coefficients


def kernel_regression(
    kernel: Float[Array, "n n"],
    y: Float[Array, "n *k"],
    *,
    ridge: float = 0.0,
    f0: Float[Array, "n *k"] | float = 0.0,
    cutoff: float | None = None,
    spectrum: Spectrum | None = None,
) -> KernelRegression:
    """Minimise |f - y|^2 + ridge |f - f0|_H^2: coefficients (K + ridge I)^{-1} (y - f0).

    ridge = 0 is the limit of small ridge: the pseudo-inverse of K, so the interpolant of least
    norm, or the least-squares fit of least norm when K is singular (duplicate samples). Eigenvalues
    of at most cutoff times the largest (default n eps) count as zero, with and without a ridge.
    `norm` is |f - f0|_H = sqrt(coefficients^T K coefficients) (summed over the k outputs).
    `spectrum` is `spectrum_of(kernel)` where it is known: many ridges need it only once.
    """
    check_nonnegative("ridge", ridge)
    spectrum = spectrum_of(kernel, cutoff) if spectrum is None else spectrum
    y = check_targets("y", y, len(spectrum.values))
    start = np.broadcast_to(np.asarray(f0, np.float64), y.shape)
    inverse = np.zeros_like(spectrum.values)
    inverse[spectrum.kept] = 1 / (spectrum.values[spectrum.kept] + ridge)
    shape = (-1,) + (1,) * (y.ndim - 1)
    in_basis = inverse.reshape(shape) * (spectrum.vectors.T @ (y - start))
    coefficients = spectrum.vectors @ in_basis
    train = start + np.asarray(kernel, np.float64) @ coefficients
    return KernelRegression(
        coefficients=coefficients,
        train=train,
        residual=float(np.max(np.abs(train - y))),
        ridge=float(ridge),
        cutoff=spectrum.cutoff,
        rank=spectrum.rank,
        norm=float(np.sqrt(np.sum(np.clip(spectrum.values, 0, None).reshape(shape) * in_basis**2))),
    )


def check_kernel(argument: str, kernel: Any) -> Float[Array, "n n"]:
    """A finite, symmetric n x n matrix as float64, n >= 1."""
    check_shape(argument, kernel, (None, None))
    K = np.asarray(kernel, np.float64)
    if K.shape[0] != K.shape[1] or not len(K):
        raise BadArgument(
            argument, f"array of shape {K.shape}", "is not square", fix="give K(x_train, x_train)"
        )
    check_finite(argument, K)
    gap = float(np.max(np.abs(K - K.T)))
    allowed = 1e-6 if np.asarray(kernel).dtype == np.float32 else 1e-9
    if gap > allowed * float(np.max(np.abs(K))):
        raise BadArgument(
            argument, f"array of shape {K.shape}", f"is not symmetric (gap {gap:.1e})",
            fix="give K(x_train, x_train)",
        )  # fmt: skip
    return (K + K.T) / 2


def check_targets(argument: str, y: Any, n: int) -> Float[Array, "n *k"]:
    """Finite targets, one row per sample, as float64."""
    values = np.asarray(y, np.float64)
    if values.ndim not in (1, 2) or len(values) != n:
        raise BadArgument(
            argument, f"array of shape {values.shape}", f"needs {n} rows", fix="one per sample"
        )
    check_finite(argument, values)
    return values
