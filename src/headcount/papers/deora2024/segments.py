"""The loss of deora2024 along a segment: on a grid, and bounded above in every cell of it.

On a segment scores s, read-outs v = X u and their products with weights move so: s and v are
linear in alpha, f = sum_t p_t v_t with p = softmax(s), and for any c

    f'' = 2 Cov(s', v') + E[(s' - E s')^2 (v - E v)],
    |f''| <= 2 E|s' - c| range(v') + E(s' - c)^2 range(v).

Within a cell p_t is least at an end, since 1/p_t is a sum of exponentials, and it is bounded above
by how far s' - c, c = E s' in the middle, can tilt the weights of the middle. So margins y f are
bounded below, once through p and once through f'', and the loss is bounded above.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from jaxtyping import Float

from ...core import Array
from . import constants
from . import quantities as model

if TYPE_CHECKING:
    from .records import Model

CELLS = 16
"""Cells of the grid on a segment."""
STEP = 1 / CELLS
SEEN = slice(None, None, 4)
"""Points of the grid at which eigenvalues are taken."""


class Segment:
    """What the claims measure between two points: length, widths and losses, betas of the ends."""

    def __init__(self, i: Model, start: Any, move: Any, weights: Any = None) -> None:
        share = jnp.full(len(i.y), 1 / len(i.y)) if weights is None else weights
        self.length = model.length(i, move)
        self.points = start[None] + _grid() * move[None]
        margins = jax.vmap(lambda rows: i.y * model.outputs(i, rows))(self.points)
        self.losses = model.logistic(margins) @ share
        low, bend = margin_bounds(i, start, move, _least(margins))
        steepest = model.slope(low) * bend * STEP**2 / 8
        curved = -_least(-self.losses) - steepest @ share
        self.tops = jnp.minimum(curved, model.logistic(low) @ share)
        """Upper bounds of the loss, cell by cell."""
        # N is convex, so that on a segment or a cell it is largest at an end.
        widths = jax.vmap(model.widest)(self.points)
        self.N, self.widths = jnp.maximum(widths[0], widths[-1]), -_least(-widths)
        self.R, self.H, self.T, self.d, self.readout = i.R, i.H, i.T, i.d, i.readout

    def beta_3(self, tier: str) -> Any:
        """The larger of the two ends'."""
        return constants.beta_3(self.N, self.R, self.T, self.d, tier, self.readout)

    def highest(self) -> Any:
        """An upper bound of the loss on the segment."""
        return jnp.max(self.tops)

    def expansion(self, eta: Any, tier: str) -> Any:
        """max_alpha {(1 + eta beta_3 L/sqrt(H)) v eta beta_2}, from above [(19)]."""
        slopes = constants.beta_3(self.widths, self.R, self.T, self.d, tier, self.readout)
        grown = 1 + eta / jnp.sqrt(self.H) * jnp.max(slopes * self.tops)
        smooth = constants.beta_2(self.N, self.R, self.H, self.T, self.d, tier, self.readout)
        return jnp.maximum(grown, eta * smooth)


def _grid() -> Float[Array, "points 1 1"]:
    return jnp.linspace(0.0, 1.0, CELLS + 1)[:, None, None]


def _least(values: Float[Array, "points ..."]) -> Float[Array, "cells ..."]:
    """The smaller of the values at the two ends of every cell."""
    return jnp.minimum(values[1:], values[:-1])


def margin_bounds(
    i: Model, start: Any, move: Any, ends: Float[Array, "cells n"]
) -> tuple[Float[Array, "cells n"], Float[Array, "cells n"]]:
    """(the least margin, the largest |second derivative|) of every sample in every cell."""
    of_group = jax.vmap(_head_bounds, in_axes=(0, 0, None, None, None))
    of_sample = jax.vmap(of_group, in_axes=(None, None, 0, 0, None))
    shares = i.k / jnp.sqrt(i.H)
    low, bend = (
        jnp.einsum("ngc,g->cn", part, shares)
        for part in of_sample(start, move, i.X, i.y, i.readout)
    )
    return jnp.maximum(low, ends - bend * STEP**2 / 8), bend


def _head_bounds(row: Any, move: Any, X: Any, y: Any, readout: str) -> tuple[Any, Any]:
    """(the least y f, the largest |f''|) of one head on one sample, cell by cell."""
    (s, v), (ds, dv) = _scores(row, X, readout), _scores(move, X, readout)
    grid = _grid()
    read = v + grid * dv
    weights = _least(jax.nn.softmax(s + grid * ds))
    lowest = _least(y * read)
    rest = (1 - jnp.sum(weights, axis=-1)) * jnp.min(lowest, axis=-1)
    low = jnp.sum(weights * lowest, axis=-1) + rest
    middle = jax.nn.log_softmax(s + (grid[1:] + grid[:-1]) / 2 * ds)
    off = jnp.abs(ds - jnp.sum(jnp.exp(middle) * ds, axis=-1, keepdims=True))
    tilt = off * STEP / 2
    whole = jax.nn.logsumexp(middle - tilt, axis=-1, keepdims=True)
    most = jnp.exp(jnp.minimum(middle + tilt - whole, 0.0))
    first, second = (jnp.sum(most * off**power, axis=-1) for power in (1, 2))
    bend = 2 * first * jnp.ptp(dv, axis=-1) - second * _least(-jnp.ptp(read, axis=-1))
    return jnp.sum(low, axis=-1), jnp.sum(bend, axis=-1)


def _scores(row: Any, X: Any, readout: str) -> tuple[Any, Any]:
    """(scores, X u) of the queries that are read out, for one point: linear in the head."""
    U, W = model.split(row, X.shape[1], readout)
    scores = X @ W @ X.T
    read = jnp.broadcast_to(jnp.atleast_2d(U @ X.T), scores.shape)
    kept = slice(-1, None) if readout == "last" else slice(None)
    return scores[None, kept], read[None, kept]
