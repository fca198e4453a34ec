"""Kernels as operators: K v without K, extreme eigenvalues by Lanczos, trace, and lambda_min."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
import scipy.sparse.linalg
from jaxtyping import Float

from ..core import (
    Array,
    BadArgument,
    check_choice,
    check_count,
    check_finite,
    normal,
    precision,
    rademacher,
    stream,
)
from ..core._results import mappable
from ..core._samples import Samples, count_samples, take_samples
from ..core._shown import Shown
from ..models._module import as_model
from ._features import contract_diagonal, pull_back, push_forward
from ._generic import kept_blocks, pull_back_outputs, push_forward_outputs
from ._ntk import EmpiricalNTK
from ._source import FeatureSource, check_held, chunk_size, prepare

if TYPE_CHECKING:
    import xarray as xr


class NTKOperator(scipy.sparse.linalg.LinearOperator):
    """v -> K v without storing K; scipy's solvers and eigenvalue routines take it as it is.

    The structured path keeps the factored features (n numbers per feature) and costs two products
    with them; any other f uses a reverse and a forward pass over the samples, in chunks, and
    keeps nothing. Rows of a multi-output f are (sample, output) pairs in order.
    """

    def __init__(
        self,
        model: Any,
        params: Any,
        x: Samples,
        *,
        frozen: Sequence[str] = (),
        dtype: str = "float64",
        method: str = "auto",
    ) -> None:
        model, params = as_model(model, params)
        problem, samples = prepare(
            model, params, x, names=kept_blocks(params, frozen), dtype=dtype, method=method
        )
        self.problem = problem
        self._stored = problem.method == "structured"
        chunk = chunk_size(problem.working_bytes)
        self._source = FeatureSource(problem, samples, chunk, keep=self._stored)
        size = count_samples(samples) * problem.width
        super().__init__(np.dtype(dtype), (size, size))

    def _matvec(self, v: Float[np.ndarray, "n *column"]) -> Float[np.ndarray, "n"]:
        v = np.asarray(v, self.dtype).reshape(-1)
        with np.errstate(over="ignore", invalid="ignore"):
            product = self._by_features(v) if self._stored else self._by_passes(v)
        if np.all(np.isfinite(v)):
            check_held(self.problem, product, "a product with the kernel")
        return product

    def _by_features(self, v: Float[np.ndarray, "n"]) -> Float[np.ndarray, "n"]:
        features = self._source.rows(0, self._source.n)
        parts = [push_forward(f, pull_back(f, v)) for f in features.values()]
        return np.sum(parts, axis=0, dtype=self.dtype)

    def _rmatvec(self, v: Float[np.ndarray, "n *column"]) -> Float[np.ndarray, "n"]:
        return self._matvec(v)

    def _by_passes(self, v: Float[np.ndarray, "n"]) -> Float[np.ndarray, "n"]:
        p, x, chunk = self.problem, self._source.x, self._source.chunk
        v = v.reshape(self._source.n, p.width)
        starts = range(0, self._source.n, chunk)
        with precision(p.dtype):
            direction: Any = None
            for s in starts:
                part = _pull(
                    p.model,
                    p.names,
                    p.params,
                    take_samples(x, slice(s, s + chunk)),
                    v[s : s + chunk],
                )
                direction = part if direction is None else jax.tree.map(jnp.add, direction, part)
            values = [
                _push(p.model, p.params, take_samples(x, slice(s, s + chunk)), direction)
                for s in starts
            ]
            return np.concatenate([np.asarray(value).reshape(-1) for value in values])

    def diagonal(self) -> Float[np.ndarray, "n"]:
        """K(x_j, x_j) for every sample and output, chunk by chunk."""
        n, chunk, o = self._source.n, self._source.chunk, self.problem.width
        out = np.zeros(n * o)
        for s in range(0, n, chunk):
            e = min(s + chunk, n)
            for factors in self._source.rows(s, e).values():
                with np.errstate(over="ignore", invalid="ignore"):
                    out[s * o : e * o] += contract_diagonal(factors)
        check_held(self.problem, out, "the diagonal of the kernel")
        return out


@partial(jax.jit, static_argnums=(0, 1))
def _pull(model: Any, names: tuple[str, ...], params: Any, x: Any, v: Any) -> Any:
    return pull_back_outputs(model, params, x, v, names)


@partial(jax.jit, static_argnums=0)
def _push(model: Any, params: Any, x: Any, direction: Any) -> Any:
    return push_forward_outputs(model, params, x, direction)


Kernel = EmpiricalNTK | NTKOperator | Float[Array, "n n"]


@dataclass(frozen=True)
class Trace:
    """tr K; `standard_error` is zero when it is the exact sum of the diagonal."""

    value: float
    standard_error: float
    method: str


def trace(kernel: Kernel, *, method: str = "exact", samples: int = 64, seed: int = 0) -> Trace:
    """tr K: the sum of the diagonal, or Hutchinson's estimate from `samples` random signs.

    Hutchinson is the mean of z^T K z over fair signs z; it needs only products K z.
    """
    check_choice("method", method, ("exact", "hutchinson"))
    operator = as_operator(kernel)
    if method == "exact":
        diagonal = operator.diagonal() if isinstance(operator, NTKOperator) else np.diag(operator)
        return Trace(float(np.sum(diagonal, dtype=np.float64)), 0.0, method)
    check_count("samples", samples, least=2)
    signs = rademacher(stream(seed, "trace", "hutchinson"), (samples, operator.shape[0]))
    draws = np.asarray([z @ (operator @ z) for z in signs], np.float64)
    return Trace(float(draws.mean()), float(draws.std(ddof=1) / np.sqrt(samples)), method)


def as_operator(kernel: Kernel) -> Any:
    """A symmetric float64 matrix, or the operator itself; anything else is refused."""
    if isinstance(kernel, NTKOperator):
        return kernel
    if isinstance(kernel, EmpiricalNTK):
        if not kernel.symmetric:
            raise BadArgument(
                "kernel", "K(x1, x2)", "is not a Gram matrix", fix="call ntk without x2"
            )
        return np.asarray(kernel.matrix, np.float64)
    matrix = np.asarray(kernel, np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.size == 0:
        raise BadArgument(
            "kernel", f"array of shape {matrix.shape}", "is not square", fix="give an n x n matrix"
        )
    check_finite("kernel", matrix)
    single = np.asarray(kernel).dtype == np.float32
    gap, size = np.max(np.abs(matrix - matrix.T)), np.max(np.abs(matrix))
    if gap > (1e-6 if single else 1e-12) * size:  # rounding of the kind of number that was given
        problem = f"is not symmetric: entries differ by {gap:.2g}"
        raise BadArgument(
            "kernel", f"array of shape {matrix.shape}", problem, fix="give (K + K.T)/2"
        )
    return matrix


@mappable("method")
@dataclass(frozen=True, repr=False)
class Eigenvalues(Shown):
    """Eigenvalues with eigenvectors as columns; within `residuals` of each lies an eigenvalue."""

    values: Float[np.ndarray, "k"]
    vectors: Float[np.ndarray, "n k"]
    residuals: Float[np.ndarray, "k"]
    method: str

    def to_xarray(self) -> xr.Dataset:
        """A data set over the dimensions eigenvalue and sample."""
        import xarray as xr

        variables = {
            "values": ("eigenvalue", self.values),
            "residuals": ("eigenvalue", self.residuals),
            "vectors": (("sample", "eigenvalue"), self.vectors),
        }
        return xr.Dataset(variables, attrs={"method": self.method})


def extreme_eigenvalues(
    kernel: Kernel, k: int = 1, *, which: str = "largest", tolerance: float = 0.0, seed: int = 0
) -> Eigenvalues:
    """The k largest or smallest eigenvalues, in ascending order, by Lanczos (scipy's ARPACK).

    Only products K v are used. Each comes with its residual |K v - lambda v|, |v| = 1: an
    eigenvalue lies that close. tolerance: relative accuracy, 0 for all that the dtype gives.
    Small problems (n < 32, or k near n) are solved densely.
    """
    check_choice("which", which, ("largest", "smallest"))
    operator = as_operator(kernel)
    n = operator.shape[0]
    if check_count("k", k) > n:
        raise BadArgument("k", k, f"is above n = {n}", fix=f"use k={n} or less")
    if n < 32 or 2 * k >= n:
        dense = operator @ np.eye(n, dtype=operator.dtype)
        window = (0, k - 1) if which == "smallest" else (n - k, n - 1)
        dense = np.asarray(dense + dense.T, np.float64) / 2
        values, vectors = scipy.linalg.eigh(dense, subset_by_index=window)
        method = "dense"
    else:
        start = normal(stream(seed, "lanczos", "start"), (n,))
        values, vectors = scipy.sparse.linalg.eigsh(
            operator,
            k=k,
            which="LA" if which == "largest" else "SA",
            tol=tolerance,
            v0=start.astype(operator.dtype),
            ncv=min(n, max(4 * k + 1, 40)),
            maxiter=100 * n,
        )
        method = "lanczos"
        order = np.argsort(values)
        values, vectors = values[order], vectors[:, order]
    residuals = np.linalg.norm(operator @ vectors - vectors * values, axis=0)
    return Eigenvalues(values, vectors, residuals, method)
