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
from ._ntk import EmpiricalNTK

Kernel = EmpiricalNTK | Float[Array, "_n1 _n2"] | Float[Array, "_n1 _k1 _n2 _k2"]
"""One number for two samples, or a matrix over their outputs."""


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


def spectrum_of(kernel: Kernel, cutoff: float | None = None) -> Spectrum:
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
        self, kernel: Kernel, f0: Float[Array, "n_new *k"] | float = 0.0
    ) -> Float[Array, "n_new *k"]:
        """f0 + K(x_new, x_train) coefficients."""
        return np.asarray(f0) + applied(
            check_cross("kernel", kernel, self.coefficients.shape), self.coefficients
        )


def kernel_regression(
    kernel: Kernel,
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
    A kernel (n, k, n, k) couples the outputs; with (n, n) each is fitted on its own.
    `spectrum` is `spectrum_of(kernel)` where it is known: many ridges need it only once.
    """
    check_nonnegative("ridge", ridge)
    K = np.asarray(kernel, np.float64)
    spectrum = spectrum_of(kernel, cutoff) if spectrum is None else spectrum
    y = check_targets("y", y, K)
    start = np.broadcast_to(np.asarray(f0, np.float64), y.shape)
    inverse = np.zeros_like(spectrum.values)
    inverse[spectrum.kept] = 1 / (spectrum.values[spectrum.kept] + ridge)
    in_basis = inverse[:, None] * (spectrum.vectors.T @ (y - start).reshape(len(inverse), -1))
    coefficients = (spectrum.vectors @ in_basis).reshape(y.shape)
    train = start + applied(K, coefficients)
    squares = np.clip(spectrum.values, 0, None)[:, None] * in_basis**2
    return KernelRegression(
        coefficients=coefficients,
        train=train,
        residual=float(np.max(np.abs(train - y))),
        ridge=float(ridge),
        cutoff=spectrum.cutoff,
        rank=spectrum.rank,
        norm=float(np.sqrt(np.sum(squares))),
    )


def applied(kernel: Any, coefficients: Any) -> Any:
    """K c: over the samples, or over samples and outputs where the kernel couples these."""
    return np.tensordot(kernel, coefficients, axes=np.ndim(kernel) // 2)


def check_cross(argument: str, kernel: Any, trained: tuple[int, ...]) -> Float[np.ndarray, "..."]:
    """A kernel between new samples and those of coefficients of this shape, as float64."""
    K = np.asarray(kernel, np.float64)
    coupled = K.ndim == 4 and len(trained) == 2
    check_shape(argument, K, (None, trained[1], *trained) if coupled else (None, trained[0]))
    return K


def check_kernel(argument: str, kernel: Any) -> Float[Array, "N N"]:
    """A finite, symmetric matrix as float64; of (n, k, n, k), that of all samples and outputs."""
    K = np.asarray(kernel, np.float64)
    if K.ndim == 4:
        K = K.reshape(K.shape[0] * K.shape[1], -1)
    check_shape(argument, K, (None, None))
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


def check_targets(argument: str, y: Any, kernel: Any) -> Float[Array, "n *k"]:
    """Finite targets, one row per sample and one entry per output of the kernel, as float64."""
    values, shape = np.asarray(y, np.float64), np.shape(kernel)
    fits = values.shape == shape[:2] if len(shape) == 4 else values.ndim in (1, 2)
    if not fits or len(values) != shape[0]:
        rows = f"shape {shape[:2]}" if len(shape) == 4 else f"{shape[0]} rows"
        raise BadArgument(
            argument, f"array of shape {values.shape}", f"needs {rows}", fix="one per sample"
        )
    check_finite(argument, values)
    return values
