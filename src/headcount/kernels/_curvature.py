"""Gauss-Newton and Fisher matrices, and the spectral density of any curvature, with error bars.

    G = sum_j w J_j^T H_j J_j,    J_j = df(x_j)/dtheta,  H_j = second derivative of the loss in f

is the Hessian of the loss without the curvature of the model; for the losses that are negative
log-likelihoods (squared, logistic, cross-entropy) it is the Fisher matrix, too. The empirical
Fisher matrix has the samples' own gradients, n sum_j g_j g_j^T, in its place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Float
from matfree.decomp import tridiag_sym
from scipy.stats import norm

from ..core import (
    Array,
    BadArgument,
    Loss,
    cast,
    check_count,
    check_positive,
    float64,
    loss_of,
    normal,
    stream,
)
from ..core._checks import check_finite_leaves
from ..core._results import mappable
from ..core._samples import Samples, as_samples
from ..core._shown import Shown
from ..models._module import as_model
from ._generic import as_trained
from ._linearised import check_labels, check_pair

_NOTHING = 1e-9
"""A step of Lanczos below this, relatively, has left nothing to decompose."""

Product = Callable[[Float[Array, "p"]], Float[Array, "p"]]


@dataclass(frozen=True, eq=False)
class GaussNewton:
    """J^T H J of a loss on data, as a function of the parameters; see `gauss_newton`."""

    model: Any
    loss: Loss
    x: Samples
    y: Any
    empirical: bool = False

    @property
    def multiplicities(self) -> tuple[int, ...] | None:
        """How many equal heads each entry of the parameters stands for, if the model says."""
        return getattr(self.model, "multiplicities", None)

    @property
    def data(self) -> tuple[Any, Any]:
        """What the matrix is of."""
        return self.x, self.y

    def product(self, f: Callable[[Any, Any], Any], params: Any, vector: Any) -> Any:
        """The matrix times a vector like the parameters; f(params, sample) is the model."""
        n = len(self.y)

        def outputs(p: Any) -> Any:
            return jax.vmap(f, (None, 0))(p, self.x)

        out, moved = jax.jvp(outputs, (params,), (vector,))
        _, pull = jax.vjp(outputs, params)
        if self.empirical:
            slopes = self.loss.weight(n) * self.loss.slope(out, self.y)
            along = jnp.sum((slopes * moved).reshape(n, -1), axis=1)
            shape = (n,) + (1,) * (out.ndim - 1)
            bent = n * slopes * along.reshape(shape)
        else:
            bent = jax.jvp(lambda o: self.loss.slope(o, self.y), (out,), (moved,))[1]
            bent = self.loss.weight(n) * bent
        return pull(bent)[0]


def gauss_newton(
    model: Any, loss: Loss | str, x: Samples, y: Any, *, empirical: bool = False
) -> GaussNewton:
    """The Gauss-Newton matrix of a loss, in the place of `loss_function` in all that takes one.

    For squared, logistic and cross-entropy losses it is the Fisher matrix. empirical: the Fisher
    matrix of the observed labels, n sum_j g_j g_j^T with g_j the gradient of sample j's share.
    """
    check_pair(model, x, y)
    chosen = loss_of(loss)
    check_labels(chosen, y)
    labels = np.asarray(y) if chosen.labels in ("classes", "any") else np.asarray(y, np.float64)
    return GaussNewton(model, chosen, as_samples("x", x, "float64"), labels, empirical)


def flat_product(function: Any, params: Any) -> tuple[Product, Any, Callable[[Any], Any]]:
    """(vector -> curvature times vector, the flat parameters, back to their tree).

    Groups of equal heads count as all their heads.
    """
    matrix = isinstance(function, GaussNewton)
    if not matrix:
        _check_scalar(function, params)
    trained, stretched = as_trained(function.model if matrix else function, params)
    start, unravel = ravel_pytree(stretched)

    @jax.jit
    def product(v: Float[Array, "p"]) -> Float[Array, "p"]:
        if matrix:
            return function.product(lambda p, x: trained(unravel(p), x), start, v)
        return jax.jvp(jax.grad(lambda p: trained(unravel(p))), (start,), (v,))[1]

    return product, start, unravel


def _check_scalar(function: Any, params: Any) -> None:
    """A function of the parameters alone that gives one number."""
    shape = getattr(jax.eval_shape(function, params), "shape", None)
    if shape != ():
        problem = f"gives {'no array' if shape is None else f'shape {shape}'}, not one number"
        fix = "take one output: lambda params, x: f(params, x)[0]"
        raise BadArgument("function", type(function).__name__, problem, fix=fix)


def at_params(function: Any, params: Any) -> tuple[Any, Any]:
    """A function of parameters, and where to take it: a module in it brings its own."""
    if hasattr(function, "model"):
        model, params = as_model(function.model, params)
        function = function if model is function.model else replace(function, model=model)
    if params is None:
        raise BadArgument("params", None, "is nothing to start from", fix="give parameters")
    return function, params


@mappable("size")
@dataclass(frozen=True, repr=False)
class SpectralDensity(Shown):
    """The eigenvalues of a p x p curvature as a measure: one quadrature for each random vector.

    The share of eigenvalues at most t is estimated by the weight of the nodes up to t: unbiased
    but for the quadrature, with the standard error over the vectors.
    """

    nodes: Float[Array, "probes order"]
    weights: Float[Array, "probes order"]
    size: int

    @property
    def trace(self) -> tuple[float, float]:
        """tr and its standard error, from the first moments."""
        return _mean(self.size * np.sum(self.nodes * self.weights, axis=1))

    def share_below(self, t: Any) -> tuple[Float[Array, "t"], Float[Array, "t"]]:
        """The share of eigenvalues at most t, and its standard error."""
        at = np.atleast_1d(np.asarray(t, float))
        return _mean(np.sum(self.weights * (self.nodes <= at[:, None, None]), axis=2), axis=1)

    def density(self, t: Any, width: float) -> tuple[Float[Array, "t"], Float[Array, "t"]]:
        """The density at t, smoothed by a normal law of this width, and its standard error."""
        check_positive("width", width)
        at = np.atleast_1d(np.asarray(t, float))
        bumps = norm.pdf(at[:, None, None], loc=self.nodes, scale=width)
        return _mean(np.sum(self.weights * bumps, axis=2), axis=1)


def spectral_density(
    function: Any, params: Any, *, probes: int = 8, order: int = 60, seed: int = 0
) -> SpectralDensity:
    """The spectrum of a Hessian or Gauss-Newton matrix by stochastic Lanczos, in float64.

    function: what `loss_function`, `model_function` or `gauss_newton` give. Each of `probes` random
    vectors costs `order` products. The more vectors, the smaller the error; the higher the order,
    the finer the spectrum is resolved.
    """
    check_count("probes", probes, least=2)
    check_count("order", order)
    function, params = at_params(function, params)
    check_finite_leaves("params", params)
    with float64():
        product, start, _ = flat_product(function, cast(params, "float64"))
        steps = min(order, start.size)
        decompose = tridiag_sym(steps)
        found = []
        for k in range(probes):
            vector = normal(stream(seed, "spectral density", str(k)), (start.size,))
            first = jnp.asarray(vector / np.linalg.norm(vector))
            triangle = _before_the_end(np.asarray(decompose(product, first).J_small))
            values, vectors = np.linalg.eigh(triangle)
            missing = (0, steps - len(values))
            found.append((np.pad(values, missing), np.pad(vectors[0] ** 2, missing)))
    nodes, weights = (np.stack(part) for part in zip(*found, strict=True))
    return SpectralDensity(nodes, weights, int(start.size))


def _before_the_end(triangle: Float[np.ndarray, "k k"]) -> Float[np.ndarray, "j j"]:
    """The part before the Krylov space was exhausted: what follows is made of rounding errors."""
    beside = np.abs(np.diag(triangle, 1))
    size = np.maximum.accumulate(np.maximum(np.abs(np.diag(triangle))[:-1], beside))
    ended = np.flatnonzero(beside <= _NOTHING * size)
    end = int(ended[0]) + 1 if ended.size else len(triangle)
    return triangle[:end, :end]


def _mean(values: Any, axis: int = 0) -> Any:
    count = values.shape[axis]
    return np.mean(values, axis=axis), np.std(values, axis=axis, ddof=1) / np.sqrt(count)
