"""A smallest eigenvalue that can be quoted: float64, an interval, a warning when it is noise."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.linalg
from jaxtyping import Float

from ..core._rounding import interval_text
from ..core._shown import Shown
from ._ntk import EmpiricalNTK
from ._spectrum import Kernel, NTKOperator, as_operator, extreme_eigenvalues

if TYPE_CHECKING:
    import xarray as xr


class RoundingWarning(UserWarning):
    """A number that rounding errors could have made: it should not be quoted."""


@dataclass(frozen=True, repr=False)
class SmallestEigenvalue(Shown):
    """lambda_min of a kernel matrix: the value, and lower <= lambda_min <= upper.

    `residual` is |K v - value v| for the unit vector v found, `rounding` is n eps |K|, with the
    precision in which K was computed: below it an eigenvalue is indistinguishable from zero
    (`below_rounding`). `certified` says that the lower end was proved by a Cholesky factorisation;
    from products K v alone (an operator) only the upper end is proved. `equal_samples` lists pairs
    of samples with the same tangent features: they make the kernel singular.
    """

    value: float
    lower: float
    upper: float
    residual: float
    rounding: float
    below_rounding: bool
    certified: bool
    equal_samples: tuple[tuple[int, int], ...]
    n: int
    dtype: str
    method: str

    def summary(self) -> dict[str, Any]:
        """The value, the interval it lies in, and whether that is proved."""
        return {
            "value": self.value,
            "lies in": interval_text(self.lower, self.upper),
            "lower end": "proved" if self.certified else "estimated",
            "below_rounding": self.below_rounding,
            "n": self.n,
        }

    def to_xarray(self) -> xr.Dataset:
        """A data set of scalars; pairs of equal samples over a dimension of their own."""
        import xarray as xr

        scalars = {k: getattr(self, k) for k in ("value", "lower", "upper", "residual", "rounding")}
        flags = {k: int(getattr(self, k)) for k in ("below_rounding", "certified")}
        pairs = np.asarray(self.equal_samples, np.int64).reshape(-1, 2)
        attributes = {"n": self.n, "dtype": self.dtype, "method": self.method}
        return xr.Dataset(
            {**scalars, **flags, "equal_samples": (("pair", "member"), pairs)}, attrs=attributes
        )


def smallest_eigenvalue(kernel: Kernel, *, seed: int = 0) -> SmallestEigenvalue:
    """lambda_min with an interval; `RoundingWarning` when it lies below rounding.

    A matrix: the smallest eigenpair by LAPACK. The upper end is its Rayleigh quotient; the lower
    end is a shift mu for which the Cholesky factorisation of K - mu I exists, less its backward
    error (n + 1) u tr(K - mu I), u the unit roundoff. An operator: Lanczos; the lower end is then
    value - residual, within which an eigenvalue lies, though not provably the smallest one.
    Both ends are widened by `rounding`, an allowance for the error of K itself.
    """
    operator = as_operator(kernel)
    dtype = _computed_in(kernel)
    n = operator.shape[0]
    eps = float(np.finfo(dtype).eps)
    pairs: tuple[tuple[int, int], ...] = ()
    if isinstance(operator, NTKOperator):
        pair = extreme_eigenvalues(operator, seed=seed, which="smallest")
        value, residual, method = float(pair.values[0]), float(pair.residuals[0]), pair.method
        size = float(extreme_eigenvalues(operator, seed=seed).values[-1])
        rounding = n * eps * abs(size)
        lower, certified = value - residual, False
    else:
        value, residual, method = *_smallest_pair(operator), "dense"
        # Both norms bound the spectral norm from above.
        size = min(np.linalg.norm(operator), np.abs(operator).sum(axis=1).max())
        rounding = n * eps * float(size)
        pairs = equal_samples(operator, eps)
        lower, certified = _cholesky_bound(operator, value, max(residual, rounding)), True
    below = value <= rounding
    if below:
        _warn(value, rounding, dtype, pairs)
    return SmallestEigenvalue(
        value=value,
        lower=lower - rounding,
        upper=value + rounding,
        residual=residual,
        rounding=rounding,
        below_rounding=below,
        certified=certified,
        equal_samples=pairs,
        n=n,
        dtype=dtype,
        method=method,
    )


def equal_samples(
    K: Float[np.ndarray, "n n"], eps: float, *, at_most: int = 20
) -> tuple[tuple[int, int], ...]:
    """Pairs (i, j), i < j, with |grad f(x_i) - grad f(x_j)|^2 = K_ii + K_jj - 2 K_ij = 0.

    Zero up to rounding, 8 eps (K_ii + K_jj); the first `at_most` pairs.
    """
    diagonal = np.diag(K)
    found: list[tuple[int, int]] = []
    for i in range(len(K) - 1):
        sums = diagonal[i] + diagonal[i + 1 :]
        close = np.flatnonzero(sums - 2 * K[i, i + 1 :] <= 8 * eps * sums)
        found.extend((i, i + 1 + int(j)) for j in close)
        if len(found) >= at_most:
            break
    return tuple(found[:at_most])


def _smallest_pair(K: Float[np.ndarray, "n n"]) -> tuple[float, float]:
    """The Rayleigh quotient of the computed eigenvector, and its residual."""
    _, vectors = scipy.linalg.eigh(K, subset_by_index=(0, 0))
    v = vectors[:, 0] / np.linalg.norm(vectors[:, 0])
    Kv = K @ v
    value = float(v @ Kv)
    return value, float(np.linalg.norm(Kv - value * v))


def _cholesky_bound(K: Float[np.ndarray, "n n"], value: float, step: float) -> float:
    """A proved lower bound of lambda_min: the largest shift tried for which Cholesky succeeds."""
    n = len(K)
    step = max(step, float(np.finfo(np.float64).tiny))
    while True:
        mu = value - step
        shifted = K.copy()
        shifted[np.diag_indices(n)] -= mu
        size = float(np.trace(shifted))
        try:
            scipy.linalg.cholesky(shifted, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:
            step *= 4
            continue
        unit = np.finfo(np.float64).eps / 2
        growth = (n + 1) * unit / (1 - (n + 1) * unit)
        return mu - growth / (1 - growth) * size


def _computed_in(kernel: Any) -> str:
    if isinstance(kernel, EmpiricalNTK):
        return kernel.dtype
    found = str(np.asarray(kernel).dtype) if not isinstance(kernel, NTKOperator) else kernel.dtype
    return "float32" if str(found) == "float32" else "float64"


def _warn(value: float, rounding: float, dtype: str, pairs: tuple[tuple[int, int], ...]) -> None:
    if pairs:
        i, j = pairs[0]
        more = f" (and {len(pairs) - 1} more pairs)" if len(pairs) > 1 else ""
        reason = f"samples {i} and {j} have the same tangent features{more}: the kernel is singular"
    else:
        reason = "the kernel is singular up to rounding"
        reason += ", compute it in float64" if dtype == "float32" else ""
    warnings.warn(
        f"lambda_min = {value:.3g} is below rounding ({rounding:.3g}, {dtype}); {reason}",
        RoundingWarning,
        stacklevel=3,
    )
