"""Second-order tools: Hessian-vector products, extreme eigenvalues, Hessians of single heads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse.linalg
from jax.flatten_util import ravel_pytree
from jaxtyping import Float
from matfree.decomp import tridiag_sym
from matfree.eig import eigh_partial

from ..core import (
    Array,
    BadArgument,
    Loss,
    cast,
    check_count,
    check_finite,
    check_shape,
    float64,
    loss_of,
    normal,
    own_precision,
    stream,
    total,
)
from ..core._checks import check_finite_leaves
from ..core._precision import traced
from ..core._samples import Samples
from ..models import over_heads
from ._curvature import GaussNewton, at_params, flat_product
from ._generic import as_precise
from ._linearised import check_labels, check_pair

Function = Callable[[Any, Float[Array, "T d"]], Float[Array, ""]]
Scalar = Callable[[Any], Float[Array, ""]]


def hessian_vector_product(function: Scalar | GaussNewton, params: Any, vector: Any) -> Any:
    """Hess function(params) vector, forward over reverse: about the cost of two gradients.

    Pure and jittable; `model_function` and `loss_function` give the scalar functions, and
    `gauss_newton` has its own matrix in the Hessian's place. Where their
    model has groups of equal heads, vector and product hold one head of each group.
    """
    function, params = at_params(function, params)
    return _product(function, params, vector, getattr(function, "data", ()))


@own_precision
def _product(function: Scalar | GaussNewton, params: Any, vector: Any, _: Any) -> Any:
    """The product, in the precision of the parameters and of the data, which come last."""
    params, vector = as_precise(params, vector), as_precise(vector, params)
    if isinstance(function, GaussNewton):
        product = function.product(function.model, params, vector)
    else:
        product = jax.jvp(jax.grad(function), (params,), (vector,))[1]
    return over_heads(function, product, power=-2)


@dataclass(frozen=True, eq=False)
class _OfModel:
    """A function of a model's parameters that knows how many heads its groups stand for."""

    model: Any
    value: Callable[..., Any]
    data: tuple[Any, ...]

    def __call__(self, params: Any) -> Any:
        return _called(self.value, self.model, params, *self.data)

    @property
    def multiplicities(self) -> tuple[int, ...] | None:
        return getattr(self.model, "multiplicities", None)


@own_precision
def _called(function: Callable[..., Any], *args: Any) -> Any:
    """function(*args), with the data among args: they have a say in the precision."""
    return function(*args)


def model_function(model: Function, x: Any) -> Scalar:
    """params -> f(params, x), the model at one sample of any shape."""
    if not traced(x):
        check_finite_leaves("x", x)
    return _OfModel(model, lambda f, params, x: f(params, x), (x,))


def loss_function(model: Function, loss: Loss | str, x: Samples, y: Any) -> Scalar:
    """params -> the loss of the model on the data."""
    check_pair(model, x, y)
    chosen = loss_of(loss)
    check_labels(chosen, y)

    def value(f: Function, params: Any, x: Any, y: Any) -> Array:
        return total(chosen, jax.vmap(f, (None, 0))(params, x), y)

    return _OfModel(model, value, (x, y))


@dataclass(frozen=True)
class Extreme:
    """An extreme eigenvalue of a Hessian, and its eigenvector as a parameter pytree.

    An eigenvalue lies in [lower, upper] = value -+ residual, residual = |H v - value v|; the value
    is a Rayleigh quotient, so the true extreme is at least as extreme. `converged` is False when
    Lanczos stopped at its iteration limit.
    """

    value: float
    lower: float
    upper: float
    vector: Any
    converged: bool


@dataclass(frozen=True)
class HessianExtremes:
    """The smallest and the largest eigenvalue of one Hessian."""

    smallest: Extreme
    largest: Extreme

    @property
    def norm(self) -> float:
        """The spectral norm: the larger absolute value of the two."""
        return max(abs(self.smallest.value), abs(self.largest.value))


def hessian_extremes(
    function: Scalar, params: Any, *, seed: int = 0, iterations: int = 3000, dense_below: int = 128
) -> HessianExtremes:
    """The extreme eigenvalues of Hess function(params) by Lanczos, in float64.

    A Gauss-Newton or Fisher matrix (`gauss_newton`) is taken in place of a Hessian.
    Up to `dense_below` parameters the Hessian is formed and diagonalised instead. The start vector
    comes from `seed`; `iterations` limits the products with the Hessian. Groups of equal heads
    count as all their heads: one head of each is set apart (`HeadGroups.split`, which has every
    eigenvalue of the H heads), and the eigenvectors hold one head of each group so made.
    """
    check_count("iterations", iterations)
    check_count("dense_below", dense_below, least=3)
    function, params = at_params(function, params)
    check_finite_leaves("params", params)
    if isinstance(function, (_OfModel, GaussNewton)) and any(
        k > 1 for k in function.multiplicities or ()
    ):
        model, params = function.model.split(params)
        function = replace(function, model=model)
    with float64():
        product, start, unravel = flat_product(function, cast(params, "float64"))
        size = start.size
        if size == 0:
            raise BadArgument("params", params, "holds no numbers", fix="give parameters")

        def to_params(vector: Float[Array, "p"]) -> Any:
            return over_heads(function, jax.tree.map(np.asarray, unravel(vector)), power=-1)

        def apply(v: Float[Array, "p"]) -> Float[Array, "p"]:
            with float64():
                image = np.asarray(product(jnp.asarray(v, jnp.float64).reshape(-1)))
            if not np.all(np.isfinite(image)):
                problem = "its Hessian at params, times a vector, is not finite"
                fix = "take smaller data or parameters, and look for NaN in what it closes over"
                raise BadArgument("function", function, problem, fix=fix)
            return image

        if size <= dense_below:
            pairs = _dense_ends(np.stack([apply(e) for e in np.eye(size)]))
        else:
            pairs = _lanczos_ends(product, apply, size, seed, iterations)
        ends = [_extreme(apply, vector, good, to_params) for vector, good in pairs]
    return HessianExtremes(smallest=ends[0], largest=ends[1])


def _dense_ends(hessian: Float[Array, "p p"]) -> list[tuple[Float[Array, "p"], bool]]:
    _, vectors = np.linalg.eigh((hessian + hessian.T) / 2)
    return [(vectors[:, 0], True), (vectors[:, -1], True)]


def _lanczos_ends(
    product: Callable[[Any], Any],
    apply: Callable[[Any], Any],
    size: int,
    seed: int,
    iterations: int,
) -> list[tuple[Float[Array, "p"], bool]]:
    operator = scipy.sparse.linalg.LinearOperator((size, size), matvec=apply, dtype=np.float64)
    first = normal(stream(seed, "hessian", "lanczos"), (size,))
    if not np.any(apply(first)):
        return [(first, True)] * 2  # a random vector finds every nonzero Hessian
    space = min(size, 40)
    pairs = []
    for end in ("SA", "LA"):
        try:
            _, vectors = scipy.sparse.linalg.eigsh(
                operator, k=1, which=end, v0=first, ncv=space, maxiter=max(1, iterations // space)
            )
            pairs.append((vectors[:, 0], True))
        except scipy.sparse.linalg.ArpackNoConvergence:
            # The outcome is data: the best Rayleigh quotient of a short Krylov space, marked.
            _, ritz = eigh_partial(tridiag_sym(space))(product, jnp.asarray(first))
            pairs.append((np.asarray(ritz[0 if end == "SA" else -1]), False))
    return pairs


def _extreme(
    apply: Callable[[Any], Any],
    vector: Float[Array, "p"],
    converged: bool,
    to_params: Callable[[Any], Any],
) -> Extreme:
    unit = vector / np.linalg.norm(vector)
    image = apply(unit)
    value = float(unit @ image)
    rounding = 4 * np.finfo(np.float64).eps * np.sqrt(len(unit)) * float(np.linalg.norm(image))
    residual = float(np.linalg.norm(image - value * unit)) + rounding
    return Extreme(
        value, value - residual, value + residual, to_params(jnp.asarray(unit)), converged
    )


@own_precision
def head_hessian(head: Callable[..., Float[Array, ""]], theta: Any, *args: Any) -> Array:
    """The dense Hessian of head(*theta, *args) in theta, a tuple of arrays, flattened in order.

    Of a model with heads, `head_hessian(model.head, (U_i, W_i), x)` is the (d + d^2)-square Hessian
    of one; pure and jittable.
    """
    flat, unravel = ravel_pytree(tuple(theta))
    return jax.hessian(lambda t: head(*unravel(t), *args))(flat)


def head_hessians(model: Any, params: Any, x: Float[Array, "T d"]) -> Float[Array, "heads p p"]:
    """`head_hessian` of every head of a model with heads, in float64.

    These are Hessians of the heads h_i themselves, theta_i = (U_i, W_i): without the output weight
    c_i and the factor m^{-1/2} or H^{-1/2}. The model's Hessian in theta is block diagonal, with
    these blocks times that scale. Equal heads of one group have one block.
    """
    one_head = getattr(model, "head", None)
    if one_head is None or not hasattr(params, "U") or not hasattr(params, "W"):
        raise BadArgument(
            "model", type(model).__name__, "has no heads (U, W)", fix="use a model with `head`"
        )
    check_shape("x", x, (None, model.d))
    check_finite("x", x)
    check_finite_leaves("params", params)
    with float64():
        U, W, sample = cast((params.U, params.W, np.asarray(x)), "float64")
        every = jax.jit(jax.vmap(lambda u, w: head_hessian(one_head, (u, w), sample)))
        return np.asarray(every(U, W))
