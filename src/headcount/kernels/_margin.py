"""Margins: of tangent features, of given directions, of the linear model, of a trained model."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import numpy as np
import optax
import scipy.optimize
from jaxtyping import Float, Int, Num

from ..core import (
    Array,
    BadArgument,
    cast,
    check_finite,
    check_positive,
    check_shape,
    float64,
)
from ..core._checks import check_finite_leaves, check_samples
from ..core._rounding import interval_text
from ..core._samples import Samples, as_samples
from ..core._shown import Shown
from ..models import over_heads
from ..models._module import as_model
from ._linearised import check_pair, check_signs
from ._ntk import ntk
from ._regression import check_kernel

Function = Callable[[Any, Any], Float[Array, ""]]

SEPARABLE = "separable"
NOT_SEPARABLE = "not separable"
UNDECIDED = "undecided"
_EPS = float(np.finfo(np.float64).eps)
NTK_NORM = math.sqrt(2)


@dataclass(frozen=True, repr=False)
class Margin(Shown):
    """The largest gamma with y_i <phi_i, theta> >= gamma for all i and |theta| = norm.

    `primal` is the margin of the direction found, `dual` norm times the length of the shortest
    convex combination of the y_i phi_i; the true value lies between them. `lower` and `upper`
    widen that bracket by the rounding of the kernel matrix, in its own precision. The direction is
    theta = sum_i coefficients_i phi_i; `support` are the samples with a positive weight.
    `status` is "separable" if lower > 0, "not separable" if the shortest combination is zero up to
    rounding (then gamma is 0 and upper bounds what rounding could hide), else "undecided".
    """

    primal: float
    dual: float
    lower: float
    upper: float
    status: str
    norm: float
    coefficients: Float[Array, "n *k"]
    weights: Float[Array, "n"]
    support: Int[Array, "k"]

    @property
    def gamma(self) -> float:
        """The margin attained by the direction, zero if there is none."""
        return max(self.primal, 0.0) if self.status != NOT_SEPARABLE else 0.0

    def summary(self) -> dict[str, Any]:
        """The margin, the interval it lies in, and whether the samples are separable."""
        return {
            "gamma": self.gamma,
            "lies in": interval_text(self.lower, self.upper),
            "status": self.status,
            "norm": self.norm,
            "n": len(self.weights),
            "support": len(self.support),
        }

    def direction(self, model: Function, params: Any, x: Samples) -> Any:
        """The maximising direction theta as a parameter pytree, phi_i = grad f(params, x_i)."""
        if self.status == NOT_SEPARABLE:
            raise BadArgument(
                "margin",
                self.status,
                "there is no direction of positive margin",
                fix="check status",
            )
        model, params = as_model(model, params)
        with float64():
            samples = as_samples("x", x, "float64")
            theta = _combined(model, cast(params, "float64"), samples, self.coefficients)
            return over_heads(model, jax.tree.map(np.asarray, theta), power=-2)


@partial(jax.jit, static_argnums=0)
def _combined(model: Function, params: Any, x: Samples, coefficients: Float[Array, "n *k"]) -> Any:
    """sum_i coefficients_i grad f(params, x_i)."""
    _, back = jax.vjp(lambda p: jax.vmap(model, (None, 0))(p, x), params)
    return back(coefficients)[0]


@partial(jax.jit, static_argnums=0)
def _slopes(model: Function, params: Any, direction: Any, x: Samples) -> Array:
    """<grad f(params, x_i), direction> for every sample."""
    outputs = jax.vmap(model, (None, 0))
    return jax.jvp(lambda p: outputs(p, x), (params,), (direction,))[1]


def kernel_margin(
    kernel: Float[Array, "..."], y: Num[Array, "n"], *, norm: float = NTK_NORM
) -> Margin:
    """The margin of features with Gram matrix `kernel`, (n, n), and signs y.

    Of a kernel of k outputs, (n, k, n, k), and classes y it is the least lead of the right output
    over another one: that of the differences of their features, n (k - 1) of them.

    max_{|theta| = norm} min_i y_i <phi_i, theta> = norm min_{a in simplex} |sum_i a_i y_i phi_i|.
    With B^T B = (y_i K_ij y_j) the shortest combination is a non-negative least squares problem:
    the minimiser of |B a|^2 + (sum a - 1)^2 over a >= 0, divided by its sum. The values returned
    are computed from the kernel itself, so that they bracket the margin however well it was solved.
    """
    check_positive("norm", norm)
    if np.ndim(kernel) == 4 and np.shape(kernel)[1] == 1:  # a vector of one output
        kernel = np.reshape(kernel, (len(kernel), -1))
    if np.ndim(kernel) == 4:
        return _class_margin(np.asarray(kernel), y, norm)
    check_signs(y)
    return _margin(kernel, y, norm, 1)


def _class_margin(kernel: Float[Array, "n k n k"], y: Num[Array, "n"], norm: float) -> Margin:
    n, k = kernel.shape[:2]
    check_shape("kernel", kernel, (n, k, n, k))
    check_shape("y", y, (n,))
    classes = np.asarray(y)
    if classes.dtype.kind not in "iu" or classes.min() < 0 or classes.max() >= k:
        shown = f"{classes.dtype} from {classes.min()} to {classes.max()}"
        raise BadArgument("y", shown, f"are no classes of {k} outputs", fix="use 0..k-1")
    leads = np.eye(k)[classes][:, None, :] - np.eye(k)[None]  # of the right output, over each
    others = leads[np.arange(k) != classes[:, None]].reshape(n, k - 1, k)
    mixed = np.einsum("iak,ikjl,jbl->iajb", others, kernel, others, optimize=True)
    mixed = mixed.reshape(n * (k - 1), -1).astype(kernel.dtype)
    found = _margin((mixed + mixed.T) / 2, np.ones(len(mixed)), norm, 4)
    weights = found.weights.reshape(n, k - 1)
    return replace(
        found,
        coefficients=np.einsum("ia,iak->ik", found.coefficients.reshape(n, k - 1), others),
        weights=weights.sum(axis=1),
        support=np.flatnonzero(weights.any(axis=1)),
    )


def _margin(kernel: Float[Array, "n n"], y: Num[Array, "n"], norm: float, sums: int) -> Margin:
    """That of signs; every entry of the kernel is a sum of so many rounded numbers."""
    K = check_kernel("kernel", kernel)
    n = len(K)
    check_shape("y", y, (n,))
    signs = np.asarray(y, np.float64)
    signed = signs[:, None] * K * signs[None, :]
    size = sums * float(np.max(np.abs(K)))
    if size == 0:
        return _not_separable(np.full(n, 1 / n), 0.0, norm)
    weights = _shortest_combination(signed / size)
    products = signed @ weights
    square = float(weights @ products)
    # n entries of K, each rounded, are summed with weights of sum one; the weights themselves were
    # found from eigenvalues that are known up to n eps times the largest.
    stored_in = np.float32 if np.asarray(kernel).dtype == np.float32 else np.float64
    eps = float(np.finfo(stored_in).eps)
    spread = float(weights @ weights) * float(np.linalg.norm(K, 2))
    rounding = n * eps * (4 * size + spread)
    if square <= rounding:
        return _not_separable(weights, square + rounding, norm)
    length = math.sqrt(square)
    primal, dual = norm * float(np.min(products)) / length, norm * length
    lower = norm * (float(np.min(products)) - rounding) / math.sqrt(square + rounding)
    return Margin(
        primal=primal,
        dual=dual,
        lower=lower,
        upper=norm * math.sqrt(square + rounding),
        status=SEPARABLE if lower > 0 else UNDECIDED,
        norm=norm,
        coefficients=(norm / length) * weights * signs,
        weights=weights,
        support=np.flatnonzero(weights),
    )


def _not_separable(weights: Float[Array, "n"], square: float, norm: float) -> Margin:
    return Margin(
        primal=0.0,
        dual=0.0,
        lower=-math.inf,
        upper=norm * math.sqrt(square),
        status=NOT_SEPARABLE,
        norm=norm,
        coefficients=np.zeros_like(weights),
        weights=weights,
        support=np.flatnonzero(weights),
    )


def _shortest_combination(signed: Float[Array, "n n"]) -> Float[Array, "n"]:
    """Weights of the shortest convex combination, from the signed Gram matrix (entries <= 1)."""
    values, vectors = np.linalg.eigh(signed)
    kept = values > len(values) * _EPS * values[-1]
    root = np.sqrt(values[kept])[:, None] * vectors[:, kept].T
    system = np.vstack([root, np.ones(len(values))])
    target = np.zeros(len(system))
    target[-1] = 1.0
    solution, _ = scipy.optimize.nnls(system, target, maxiter=30 * len(values))
    weights = solution / np.sum(solution)
    return _polished(signed, weights)


def _polished(signed: Float[Array, "n n"], weights: Float[Array, "n"]) -> Float[Array, "n"]:
    """One refinement on the support, where all products must agree; kept only if it is better."""
    support = np.flatnonzero(weights)
    block = signed[np.ix_(support, support)]
    direct, *_ = np.linalg.lstsq(block, np.ones(len(support)), rcond=None)
    if np.min(direct) <= 0:
        return weights
    refined = np.zeros_like(weights)
    refined[support] = direct / np.sum(direct)
    return refined if _gap(signed, refined) < _gap(signed, weights) else weights


def _gap(signed: Float[Array, "n n"], weights: Float[Array, "n"]) -> float:
    products = signed @ weights
    return float(weights @ products - np.min(products))


def ntk_margin(
    model: Function,
    params: Any,
    x: Samples,
    y: Num[Array, "n"],
    *,
    norm: float = NTK_NORM,
) -> Margin:
    """`kernel_margin` of the tangent features at `params`; `margin_path` follows it along a run.

    y are signs, or the classes of a model with a vector as output.
    """
    model, params = as_model(model, params)
    check_pair(model, x, y)
    return kernel_margin(ntk(model, params, x, blocks="total").total, y, norm=norm)


def margin_path(
    kernels: Float[Array, "records nk nk"], y: Num[Array, "n"], *, norm: float = NTK_NORM
) -> list[Margin]:
    """gamma along a training run: the margin of every kernel that `tangent_kernel` recorded."""
    n, k = len(y), max(1, np.shape(kernels)[-1] // len(y))
    check_shape("kernels", kernels, (None, n * k, n * k))
    shape = (n, n) if k == 1 else (n, k, n, k)
    return [kernel_margin(np.reshape(kernel, shape), y, norm=norm) for kernel in kernels]


def linear_margin(x: Float[Array, "n T d"], y: Num[Array, "n"], *, norm: float = 1.0) -> Margin:
    """The largest min_i y_i <U, X_i> over |U| = norm: the linear model's margin."""
    n, T, d = check_samples(x, y)
    check_signs(y)
    flat = np.asarray(x, np.float64).reshape(n, T * d)
    margin = kernel_margin(flat @ flat.T, y, norm=norm)
    shortest = float(np.linalg.norm((margin.weights * np.asarray(y, np.float64)) @ flat))
    # The Gram matrix holds half the digits of the samples: what is zero there may not be zero here.
    if margin.status == NOT_SEPARABLE and shortest > n * _EPS * np.linalg.norm(flat, axis=1).max():
        return replace(margin, status=UNDECIDED)
    return margin


def direction_margins(
    model: Function,
    params: Any,
    direction: Any,
    x: Samples,
    y: Num[Array, "n"],
    *,
    norm: float | None = NTK_NORM,
) -> Float[Array, "n"]:
    """y_i <grad f(params, x_i), theta> with theta scaled to `norm` (None: as given).

    For classes y of a vector f: the lead of the right output over the largest of the others. The
    smallest entry is the margin of the direction.
    """
    model, params = as_model(model, params)
    check_pair(model, x, y)
    check_finite_leaves("params", params)
    check_finite_leaves("direction", direction)
    with float64():
        theta = cast(direction, "float64")
        samples = as_samples("x", x, "float64")
        slopes = _slopes(model, cast(params, "float64"), theta, samples)
        length = float(optax.tree.norm(over_heads(model, theta)))
    if norm is not None and length == 0:
        raise BadArgument("direction", "all zeros", "has no length", fix="give a nonzero direction")
    scale = 1.0 if norm is None else check_positive("norm", norm) / length
    if slopes.ndim == 2:
        own = np.arange(slopes.shape[1]) == np.asarray(y)[:, None]
        lead = np.sum(np.where(own, slopes, 0), axis=1)
        return scale * (lead - np.max(np.where(own, -np.inf, slopes), axis=1))
    check_signs(y)
    return np.asarray(y, np.float64) * np.asarray(slopes) * scale


def normalised_margin(
    outputs: Float[Array, "n"], y: Num[Array, "n"], readout: Any, *, model: Any = None
) -> float:
    """min_i y_i f(x_i) / |U|, U the read-out weights (an array or pytree).

    NaN when U = 0. Give the model if it has groups of equal heads: |U| is then over all heads.
    """
    check_shape("y", y, np.shape(outputs))
    check_finite("outputs", outputs)
    check_signs(y)
    readout = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), readout)
    leaves = jax.tree.leaves(over_heads(model, readout))
    length = math.sqrt(sum(float(np.vdot(leaf, leaf)) for leaf in leaves))
    smallest = float(np.min(np.asarray(y, np.float64) * np.asarray(outputs, np.float64)))
    return smallest / length if length else math.nan
