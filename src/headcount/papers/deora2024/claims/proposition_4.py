"""Claims of deora2024 about two points and the segment between them: GLQC, (14)-(16), (19).

The largest loss on a segment is seen on a grid. Where it stands on the left that is a lower bound
of it; where it stands on the right it is bounded above, cell by cell, as `segments` says.
"""

from __future__ import annotations

import functools
from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp

from ....theory import given
from ....theory.slow import dot
from .. import fits, quantities
from .. import twins as slow
from ..constants import HESSIAN_TIERS, state
from ..records import TwoPoints
from ..segments import SEEN
from ..twins_segments import SEEN as SLOWLY_SEEN
from ..twins_segments import SlowSegment

on_segments = functools.partial(
    state.claim,
    on=TwoPoints,
    forms=HESSIAN_TIERS,
    proved="Sec. 6, App. B",
    no_rival="two points of a loss: nothing is known between them without its curvature",
)


def _slow_segment(num: Any, points: Any) -> SlowSegment:
    return SlowSegment(num, points, slow.parameters(points), slow.move(points))


_FACTOR = {"sharp": Fraction(16, 15)}
"""The factor of GLQC: 4/3 as printed; 16/15 by an elementary argument (best: 1/cos(1/sqrt 8))."""


@on_segments(
    "proposition-4",
    "Generalised local quasi-convexity",
    where="Proposition 4 = Proposition 6, Eq. (18)",
    says=r"\max_{\theta\in[\theta_1,\theta_2]}\widehat L(\theta)"
    r"\le\tfrac43\,\widehat L(\theta_1)\vee\widehat L(\theta_2)",
    shapes=(
        fits.shape(fits.close, "v2", d=1),
        fits.shape(fits.close, "sharp", n=1),
    ),
    given=(
        given(
            "(18): |theta_1 - theta_2|^2 <= sqrt(H)/(2 beta_3)",
            lambda i: quantities.length(i, i.move) ** 2,
            lambda segment, H, form: jnp.sqrt(H) / (2 * segment.beta_3(form)),
        ),
    ),
    forms={**HESSIAN_TIERS, "sharp": ("sharp beta_3 in (18), and 16/15 for 4/3", "E9")},
)
def proposition_4(segment, form):
    """Between points with 2 beta_3 |theta_1 - theta_2|^2 <= sqrt(H) the loss is at most 4/3 of the
    larger end's."""
    factor = _FACTOR.get(form, Fraction(4, 3))
    ends = jnp.maximum(segment.losses[0], segment.losses[-1])
    return jnp.max(segment.losses), float(factor) * ends


@proposition_4.twin
def _(num, points, form):
    losses, factor = _slow_segment(num, points).losses, _FACTOR.get(form, Fraction(4, 3))
    ends = num.largest([losses[0], losses[-1]])
    return num.largest(losses), num.number(factor.numerator) / factor.denominator * ends


@on_segments(
    "eq-15",
    "Weak convexity along a segment",
    where="Eqs. (15), (67)",
    says=r"\min\lambda_{\min}(\nabla^2\widehat L)\ge-\frac{\beta_3(\theta_1)\vee\beta_3(\theta_2)}"
    r"{\sqrt H}\max\widehat L",
    notes=("E31",),
)
def eq_15(points, form):
    """On a segment no eigenvalue of Hess L is below -(beta_3/sqrt(H)) times the largest loss
    there."""
    segment = points.segment
    ends = jax.vmap(lambda rows: quantities.loss_hessian_ends(points, rows)[0])
    rhs = segment.beta_3(form) / jnp.sqrt(points.H) * jnp.max(segment.losses)
    return jnp.max(-ends(segment.points[SEEN])), rhs


@eq_15.twin
def _(num, points, form):
    segment = _slow_segment(num, points)
    low = [slow.loss_hessian_ends(num, points, at)[0] for at in segment.points[SLOWLY_SEEN]]
    rhs = segment.beta_3(form) / num.sqrt(segment.H) * num.largest(segment.losses)
    return num.largest([-value for value in low]), rhs


@on_segments(
    "eq-16",
    "The loss above its tangent, up to weak convexity",
    where="Eqs. (14), (16)",
    says=r"\widehat L(\theta)\ge\widehat L(\theta_k)+\langle\nabla\widehat L(\theta_k),"
    r"\theta-\theta_k\rangle-\tfrac12\tau_k\|\theta-\theta_k\|^2",
    notes=("E31",),
)
def eq_16(points, form):
    """L(theta_1) + <grad L(theta_1), theta - theta_1> <= L(theta) + (1/2)(beta_3/sqrt(H))
    max L |theta - theta_1|^2: Taylor's formula with the curvature of (15)."""
    segment = points.segment
    gradient = quantities.loss_gradient(points, points.rows)
    rise = jnp.vdot(points.k[:, None] * gradient, points.move)
    bend = segment.beta_3(form) / jnp.sqrt(points.H) * segment.highest() * segment.length**2 / 2
    return segment.losses[0] + rise, segment.losses[-1] + bend


@eq_16.twin
def _(num, points, form):
    segment, rows = _slow_segment(num, points), slow.parameters(points)
    gradient = slow.loss_gradient(num, points, slow.samples(num, points, rows))
    pairs = zip(points["k"], gradient, slow.move(points), strict=True)
    rise = num.total([k * dot(g, m) for k, g, m in pairs])
    bend = segment.beta_3(form) / num.sqrt(segment.H) * segment.highest() / 2
    return segment.losses[0] + rise, segment.losses[-1] + bend * segment.length**2


@on_segments(
    "eq-19",
    "How far one step can push two points apart",
    where="Eqs. (19), (85)",
    says=r"\|\mathrm{GD}(\theta)-\mathrm{GD}(\theta')\|"
    r"\le\max_\alpha\{(1+\eta\beta_3\widehat L/\sqrt H)"
    r"\vee\eta\beta_2\}\|\theta-\theta'\|",
)
def eq_19(points, form):
    """|GD(theta) - GD(theta')| <= max{1 + eta beta_3 L/sqrt(H), eta beta_2} |theta - theta'|."""
    segment, rows, move = points.segment, points.rows, points.move
    first, second = (quantities.loss_gradient(points, at) for at in (rows, rows + move))
    lhs = quantities.length(points, move - points.eta * (second - first))
    return lhs, segment.expansion(points.eta, form) * segment.length


@eq_19.twin
def _(num, points, form):
    segment, rows, move = _slow_segment(num, points), slow.parameters(points), slow.move(points)
    first, second = (
        slow.loss_gradient(num, points, slow.samples(num, points, at))
        for at in (rows, slow.combined(rows, move, 1))
    )
    stepped = slow.combined(move, slow.difference(second, first), -points["eta"])
    rhs = segment.expansion(points["eta"], form) * segment.length
    return slow.length(num, points, stepped), rhs
