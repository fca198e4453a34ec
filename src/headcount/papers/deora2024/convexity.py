"""Self-bounded weak convexity along training: curvature, segments, the largest step, tau_k.

The numbers that Corollary 1, Proposition 4 and Lemmas 7 and 8 bound, measured at given parameters
of H heads or of groups of equal heads; all norms and eigenvalues are over all H heads.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Float

from ...core import LOGISTIC, Array, check_count
from ...core._precision import in_float64
from ...kernels import hessian_extremes, loss_function
from ...kernels._hessian import HessianExtremes
from ...models import over_heads
from ...training import naive_path
from .constants import beta_3
from .model import MultiHeadParams
from .stability import Heads, largest_head


@dataclass(frozen=True)
class Curvature:
    """L, |grad L|, the extreme eigenvalues of Hess L and |theta|_{2,inf} at one point."""

    loss: float
    gradient: float
    hessian: HessianExtremes
    size: float


def curvature(
    model: Heads, theta: MultiHeadParams, x: Float[Array, "n T d"], y: Float[Array, "n"]
) -> Curvature:
    """What Corollary 1 is about; eigenvalues by Lanczos."""
    loss, gradient = in_float64(_loss_and_gradient(model), theta, x, y)
    return Curvature(
        loss=float(loss),
        gradient=float(_length(model, gradient)),
        hessian=hessian_extremes(loss_function(model, LOGISTIC, x, y), theta),
        size=float(in_float64(largest_head, theta)),
    )


@dataclass(frozen=True)
class Segment:
    """L on a grid of the segment from theta_1 (first entry) to theta_2 (last entry)."""

    loss: Float[Array, "points"]
    length: float
    size: float
    """max of |theta|_{2,inf} over both ends, which is that over the segment."""

    @property
    def bulge(self) -> float:
        """max over the segment / max over its ends; Proposition 4 bounds it by 4/3."""
        return float(np.max(self.loss) / max(self.loss[0], self.loss[-1]))

    def condition(self, model: Heads, R: float, tier: str = "v2") -> float:
        """2 beta_3 |theta_1 - theta_2|^2/sqrt(H): (18) holds where this is at most one."""
        constant = beta_3(self.size, R, model.T, model.d, tier, model.readout)
        return float(2 * constant * self.length**2 / math.sqrt(model.H))


def segment(
    model: Heads,
    first: MultiHeadParams,
    second: MultiHeadParams,
    x: Float[Array, "n T d"],
    y: Float[Array, "n"],
    *,
    points: int = 33,
) -> Segment:
    """The loss along a segment, for (15), Proposition 4 and tau_k."""
    check_count("points", points, least=2)
    shift = in_float64(optax.tree.sub, second, first)
    losses = in_float64(_losses_along(model), first, shift, np.linspace(0, 1, points), x, y)
    sizes = [float(in_float64(largest_head, end)) for end in (first, second)]
    return Segment(losses, float(_length(model, shift)), max(sizes))


def tau(model: Heads, along: Segment, R: float, tier: str = "v2") -> float:
    """tau_k = H^{-1/2} (beta_3(theta) v beta_3(theta_k)) max_segment L [deora2024, Lemma 8]."""
    constant = beta_3(along.size, R, model.T, model.d, tier, model.readout)
    return float(constant / math.sqrt(model.H) * np.max(along.loss))


def largest_descent_step(
    model: Heads,
    theta: MultiHeadParams,
    x: Float[Array, "n T d"],
    y: Float[Array, "n"],
    *,
    limit: float = 1e6,
) -> float:
    """The first eta at which L(theta - eta g) <= L - (eta/2) |g|^2 fails, or `limit`.

    Lemma 7 promises the inequality up to 1/rho_k. A geometric grid of 8 steps per octave finds the
    first failure, bisection its place to a relative 1e-6. Zero gradient: `limit`.
    """
    loss, gradient = in_float64(_loss_and_gradient(model), theta, x, y)
    square = float(_length(model, gradient)) ** 2
    if square == 0:
        return limit
    along = _losses_along(model)
    back = jax.tree.map(np.negative, gradient)

    def fails(etas: Float[Array, "points"]) -> Any:
        return in_float64(along, theta, back, etas, x, y) > loss - etas / 2 * square

    # Below this the decrease is lost in the rounding of L: nothing can be seen to fail there.
    least = max(1e-12 * limit, 1e3 * np.finfo(np.float64).eps * float(loss) / square)
    grid = np.geomspace(least, limit, 1 + math.ceil(8 * math.log2(limit / least)))
    failed = np.flatnonzero(fails(grid))
    if not failed.size:
        return limit
    low, high = grid[max(failed[0] - 1, 0)], grid[failed[0]]
    while high > low * (1 + 1e-6):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if fails(np.array([middle]))[0] else (middle, high)
    return float(low)


@lru_cache(maxsize=16)
def _loss_and_gradient(model: Heads) -> Callable[..., Any]:
    path = naive_path(model, LOGISTIC)
    return jax.jit(lambda theta, x, y: path.loss_and_gradient(theta, path.prepare(x, y)))


@lru_cache(maxsize=16)
def _losses_along(model: Heads) -> Callable[..., Any]:
    """L(theta + a shift) for every a of a list."""

    @jax.jit
    def along(theta: Any, shift: Any, parts: Array, x: Array, y: Array) -> Float[Array, "points"]:
        loss = loss_of(model, x, y)
        return jax.lax.map(
            lambda a: loss(jax.tree.map(lambda p, s: p + a * s, theta, shift)), parts
        )

    return along


def loss_of(model: Heads, x: Array, y: Array) -> Callable[[Any], Float[Array, ""]]:
    """theta -> L(theta)."""
    return lambda theta: jnp.mean(
        LOGISTIC.pointwise(jax.vmap(model, in_axes=(None, 0))(theta, x), y)
    )


def _length(model: Heads, tree: Any) -> Any:
    """The norm over all heads of something per head."""
    return in_float64(optax.tree.norm, over_heads(model, tree))
