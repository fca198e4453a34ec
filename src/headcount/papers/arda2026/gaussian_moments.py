"""Gaussian expectations over U of one arda2026 head, in closed form where one is known.

For fixed attention, with s = U.a, s' = U.a', U ~ N(0, I_d) and a matrix P, the three moments
    E[sigma(s) sigma(s')],   E[sigma'(s) sigma'(s')],   E[sigma'(s) sigma'(s') U^T P U]
depend on a, a', P only through the numbers of `Pair`. S = V^T V with V = [a, a'] may be singular.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Float

from ...core import Activation, Array, activations

Entries = Float[Array, "..."]


class Pair(NamedTuple):
    """a.a, a'.a', a.a'; tr P; a^T P a, a^T P a' + a'^T P a, a'^T P a'."""

    s11: Entries
    s22: Entries
    s12: Entries
    p: Entries
    p11: Entries
    cross: Entries
    p22: Entries


class Moments(NamedTuple):
    """E[sigma sigma'], E[slope slope'], E[slope slope' U^T P U]."""

    value: Entries
    slope: Entries
    curved: Entries


def _scaled(k: float, moments: Callable[[Pair], Moments]) -> Callable[[Pair], Moments]:
    """The moments of x -> sigma(k x) from those of sigma: V becomes k V, each slope gains k."""

    def of_scaled(v: Pair) -> Moments:
        forms = [k * k * form for form in (v.s11, v.s22, v.s12, v.p11, v.cross, v.p22)]
        plain = moments(Pair(forms[0], forms[1], forms[2], v.p, forms[3], forms[4], forms[5]))
        return Moments(plain.value, k * k * plain.slope, k * k * plain.curved)

    return of_scaled


def _erf(v: Pair) -> Moments:
    """sigma = erf: C = I + 2 S, E[slope slope'] = (4/pi) det(C)^{-1/2}."""
    c11, c22, c12 = 1 + 2 * v.s11, 1 + 2 * v.s22, 2 * v.s12
    det = c11 * c22 - c12 * c12
    slope = (4 / math.pi) / jnp.sqrt(det)
    traced = (c22 * v.p11 + c11 * v.p22 - c12 * v.cross) / det
    value = (2 / math.pi) * jnp.arcsin(c12 / jnp.sqrt(c11 * c22))
    return Moments(value, slope, slope * (v.p - 2 * traced))


def _waves(v: Pair) -> tuple[Entries, Entries, Entries, Entries]:
    """e_b = exp(-|b|^2/2)/2 for b = a - a' and a + a', and e_b (tr P - b^T P b)."""
    minus = jnp.exp(v.s12 - (v.s11 + v.s22) / 2) / 2
    plus = jnp.exp(-v.s12 - (v.s11 + v.s22) / 2) / 2
    own = v.p - v.p11 - v.p22
    return minus, plus, minus * (own + v.cross), plus * (own - v.cross)


def _sin(v: Pair) -> Moments:
    minus, plus, curved_minus, curved_plus = _waves(v)
    return Moments(minus - plus, minus + plus, curved_minus + curved_plus)


def _cos(v: Pair) -> Moments:
    minus, plus, curved_minus, curved_plus = _waves(v)
    return Moments(minus + plus, minus - plus, curved_minus - curved_plus)


def _gaussian(v: Pair) -> Moments:
    """sigma = exp(-x^2/2): the tilted law of U is N(0, (I + V V^T)^{-1})."""
    det = (1 + v.s11) * (1 + v.s22) - v.s12 * v.s12
    i11, i22, i12 = (1 + v.s22) / det, (1 + v.s11) / det, -v.s12 / det
    value = 1 / jnp.sqrt(det)
    t = v.s12 / det
    traced = v.p - (i11 * v.p11 + i12 * v.cross + i22 * v.p22)
    half = v.cross / 2
    sandwiched = i11 * (v.p11 * i12 + half * i22) + i12 * (half * i12 + v.p22 * i22)
    return Moments(value, value * t, value * (t * traced + 2 * sandwiched))


_CLOSED: dict[str, Callable[[Pair], Moments]] = {
    "erf": _erf,
    "erf-normal": _scaled(1 / math.sqrt(2), _erf),
    "sin": _sin,
    "cos": _cos,
    "gaussian": _gaussian,
    "gaussian-narrow": _scaled(math.sqrt(2), _gaussian),
}


def closed_moments(activation: Activation) -> Callable[[Pair], Moments] | None:
    """The closed form of this activation's moments, if one is known."""
    name = activation.name
    known = name in _CLOSED and name in activations and activations[name] == activation
    return _CLOSED[name] if known else None
