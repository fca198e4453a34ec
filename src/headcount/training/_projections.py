"""Projections onto feasible sets around the initialisation. Not to project is an object too."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import jax
import jax.numpy as jnp

from ..core import Array, BadArgument, check_positive, own_precision
from ..core._tree import blocks, with_blocks


class Projection(Protocol):
    """Maps parameters to the nearest point of a convex set that contains `initial`."""

    def __call__(self, params: Any, initial: Any, model: Any = None) -> Any:
        """The projected parameters; `model` tells how many equal heads an entry stands for."""
        ...

    def check(self, params: Any) -> None:
        """Raise when these parameters cannot be projected."""
        ...


@dataclass(frozen=True)
class NoProjection:
    """The whole space: plain gradient descent."""

    def __call__(self, params: Any, initial: Any, model: Any = None) -> Any:
        """The parameters themselves."""
        return params

    def check(self, params: Any) -> None:
        """Nothing to check."""


@dataclass(frozen=True)
class HeadBalls:
    """Omega_rho: every head's block stays within rho_block/sqrt(m) of its start.

    {|c_i - c_i0| <= rho_c/sqrt m, |U_i - U_i0| <= rho_u/sqrt m, ||W_i - W_i0||_F <= rho_w/sqrt m}
    A product of balls, so the
    Euclidean projection shrinks each displacement radially.
    """

    radii: tuple[tuple[str, float], ...]

    def __post_init__(self) -> None:
        for block, rho in self.radii:
            try:
                check_positive(f"rho_{block}", rho)
            except BadArgument as error:
                shown = tuple(radius for _, radius in self.radii)
                problem = f"has rho_{block} = {rho}, which {error.problem}"
                raise BadArgument("rho", shown, problem, fix="for example rho=3,3,3") from None

    def check(self, params: Any) -> None:
        """Every block needs a radius, and every radius a block."""
        have, want = set(blocks(params)), set(dict(self.radii))
        if have != want:
            raise BadArgument(
                "radii",
                sorted(want),
                "does not name every block",
                fix=f"give one for each of {sorted(have)}",
            )

    @own_precision
    def __call__(self, params: Any, initial: Any, model: Any = None) -> Any:
        """x0 + (x - x0) min(1, r/|x - x0|), per head and per block; inside, x itself."""
        origin, moved = blocks(initial), blocks(params)
        counts = getattr(model, "multiplicities", None)
        projected = {}
        for block, rho in self.radii:
            radius = rho / math.sqrt(sum(counts) if counts else moved[block].shape[0])
            projected[block] = jax.vmap(nearest_in_ball, (0, 0, None))(
                moved[block], origin[block], radius
            )
        return with_blocks(params, projected)


def nearest_in_ball(x: Array, centre: Array, radius: Any) -> Array:
    """The nearest point to x of the Euclidean ball around `centre`; the radius may be traced."""
    # In units of the largest entry or of the radius no square overflows, and no unit is zero: a
    # point that is far away is not lost, and one at the centre divides by nothing. The reciprocal
    # of the largest numbers is denormal, which is zero to XLA: those are scaled first.
    away = x - centre
    near = jnp.where(jnp.max(jnp.abs(away), initial=0) > 2.0**64, 2.0**-64, 1.0)
    away, limit = away * near, radius * near
    unit = jnp.maximum(jnp.max(jnp.abs(away), initial=0), limit)
    direction = away / unit
    length = jnp.sqrt(jnp.sum(direction**2))
    outside = unit * length > limit
    return jnp.where(outside, centre + direction * (radius / jnp.where(outside, length, 1)), x)
