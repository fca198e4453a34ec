"""Gaussian expectations over U of one arda2026 head: closed forms, and a Hermite series.

For fixed attention, with s = U.a, s' = U.a', U ~ N(0, I_d) and a matrix P, the three moments
    E[sigma(s) sigma(s')],   E[sigma'(s) sigma'(s')],   E[sigma'(s) sigma'(s') U^T P U]
depend on a, a', P only through the numbers of `Pair`. S = V^T V with V = [a, a'] may be singular.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ..core import Activation, Array, activations, float64

Entries = Float[Array, "..."]
ORDERS = (8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
STRIDES = (8, 6, 5, 4, 3, 2, 1)
_FINEST = 0.05
_REACH = 13.0
"""The density times he_k is of order exp(-z^2/4): below 1e-18 here, for every k."""


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


class HermiteRule(NamedTuple):
    """Nodes z and the table (weight of z) he_k(z): E[g(r z) he_k(z)] = g(r z) @ table.

    `error` bounds the relative error of the moments for |a|, |a'| up to the radius asked for.
    """

    nodes: Float[Array, "nodes"]
    table: Float[Array, "nodes order"]
    error: float


def hermite_rule(activation: Activation, radius: float, tolerance: float) -> HermiteRule:
    """The shortest series whose error is below `tolerance` for every |a| <= radius.

    The moments are sums over k of rho^k alpha_k beta_k, |rho| <= 1 (Mehler), so by Cauchy-Schwarz
    the terms left out are at most the geometric mean of the two tails E[g^2] - sum_{k<K} alpha_k^2.
    The tails of sigma and its derivatives are measured on a grid of radii, relative to the largest
    E[g^2], by Gauss-Legendre panels; the rule itself is trapezoidal (it converges exponentially for
    functions that are analytic in a strip), with nodes thinned as far as its coefficients agree
    with those of the panels. Both resolve g(r z), whose features are of size 1/r. If no series of
    `ORDERS` suffices, the longest is returned with its error.
    """
    scale = max(1.0, radius)
    steps = np.arange(-round(_REACH * scale / _FINEST), round(_REACH * scale / _FINEST) + 1)
    nodes, (panels, weights) = _FINEST / scale * steps, _panels(scale)
    radii = np.linspace(0.0, radius, 9)[:, None]
    with float64():
        values = np.asarray(_derivatives(activation, radii * np.concatenate([nodes, panels])))
    values, reference = np.split(values, [len(nodes)], axis=-1)
    exact = reference @ _hermite_table(panels, weights, ORDERS[-1])
    squares = reference**2 @ weights
    largest = np.max(squares, axis=1)
    size = np.where(largest > 0, largest, 1.0)
    for order in ORDERS:
        tail = np.max(np.abs(squares - np.sum(exact[..., :order] ** 2, axis=-1)), axis=1) / size
        truncation = float(max(*tail[:3], math.sqrt(tail[1] * tail[3])))
        if truncation <= tolerance / 2:
            break
    near = np.abs(nodes) <= 2 * math.sqrt(-math.log(1e-3 * min(tolerance, 1e-3)))
    for stride in STRIDES:
        kept = near & (steps % stride == 0)
        density = _density(nodes[kept]) * (stride * _FINEST / scale)
        table = _hermite_table(nodes[kept], density, order)
        slips = np.linalg.norm(values[..., kept] @ table - exact[..., :order], axis=-1)
        slip = 2 * float(np.max(slips / np.sqrt(size)[:, None]))
        if slip <= tolerance / 2:
            break
    return HermiteRule(nodes[kept], table, truncation + slip)


def _density(z: Float[Array, "nodes"]) -> Float[Array, "nodes"]:
    return np.exp(-z * z / 2) / math.sqrt(2 * math.pi)


def _panels(scale: float) -> tuple[Float[Array, "nodes"], Float[Array, "nodes"]]:
    """Nodes and weights of N(0, 1): 20 Gauss-Legendre points on panels about 1/scale wide."""
    points, weights = np.polynomial.legendre.leggauss(20)
    half = _REACH / math.ceil(_REACH * scale) / 2
    centres = half * np.arange(1 - round(_REACH / half), round(_REACH / half), 2)
    nodes = (centres[:, None] + half * points).ravel()
    return nodes, np.tile(half * weights, len(centres)) * _density(nodes)


def _hermite_table(
    nodes: Float[Array, "nodes"], weights: Float[Array, "nodes"], order: int
) -> Float[Array, "nodes order"]:
    """Weights times the orthonormal Hermite polynomials he_0, he_1, ... at the nodes."""
    table = np.empty((order, len(nodes)))
    before, now = np.zeros_like(nodes), np.ones_like(nodes)
    for k in range(order):
        table[k] = weights * now
        before, now = now, (nodes * now - math.sqrt(k) * before) / math.sqrt(k + 1)
    return table.T


def series_moments(
    activation: Activation, nodes: Float[Array, "nodes"], table: Float[Array, "nodes order"]
) -> Callable[[Pair], Moments]:
    """Moments for any smooth activation by Mehler's series, without inverting S.

    With r = |a|, rho = cos of the angle and alpha_k^g(r) = E[g(r z) he_k(z)], he_k orthonormal,
    E[g(s) h(s')] = sum_k rho^k alpha_k^g(r) alpha_k^h(r'). The curved moment follows from Gaussian
    integration by parts: with F = sigma'(s) sigma'(s'),
    E[F U^T P U] = tr P E[F] + a^T P a E[sigma''' sigma'] + (cross) E[sigma'' sigma''] + ...
    """

    terms = [
        (g, h, parity)
        for g, h in _PRODUCTS
        for parity in (0, 1)
        if _parity(activation) in (None, (parity + g) % 2)
    ]

    def moments(v: Pair) -> Moments:
        r1, r2 = jnp.sqrt(v.s11), jnp.sqrt(v.s22)
        at = jnp.reshape(nodes, (1,) * r1.ndim + (-1,))
        alpha = jnp.moveaxis(_derivatives(activation, r1[..., None] * at) @ table, -1, 0)
        beta = jnp.moveaxis(_derivatives(activation, r2[..., None] * at) @ table, -1, 0)
        scale = r1 * r2
        rho = jnp.where(scale > 0, v.s12 / jnp.where(scale > 0, scale, 1.0), 0.0)
        rho = jnp.clip(rho, -1.0, 1.0)
        square = rho * rho

        def step(carry: Any, k: Any) -> tuple[Any, None]:
            power, sums = carry
            left, right = k
            sums = [
                total + power * (left[parity, g] * right[parity, h])
                for total, (g, h, parity) in zip(sums, terms, strict=True)
            ]
            return (power * square, sums), None

        start = (jnp.ones_like(rho), [jnp.zeros_like(rho) for _ in terms])
        by_twos = [c.reshape(-1, 2, *c.shape[1:]) for c in (alpha, beta)]
        (_, sums), _ = jax.lax.scan(step, start, tuple(by_twos), unroll=4)
        expected = dict.fromkeys(_PRODUCTS, jnp.zeros_like(rho))
        for total, (g, h, parity) in zip(sums, terms, strict=True):
            expected[g, h] = expected[g, h] + (rho * total if parity else total)
        value, slope, bend, left, right = (expected[product] for product in _PRODUCTS)
        curved = v.p * slope + v.p11 * left + v.cross * bend + v.p22 * right
        return Moments(value, slope, curved)

    return moments


_PRODUCTS = ((0, 0), (1, 1), (2, 2), (3, 1), (1, 3))
"""The products sigma^(g)(s) sigma^(h)(s') whose expectations the moments need."""


def _parity(activation: Activation) -> int | None:
    """0 if sigma is even, 1 if it is odd, else None: every second coefficient may vanish."""
    s = np.linspace(0.1, 4.0, 40)
    with jax.ensure_compile_time_eval(), float64():
        there, back = (
            np.asarray(activation(jnp.asarray(s))),
            np.asarray(activation(jnp.asarray(-s))),
        )
    for parity, sign in ((0, 1.0), (1, -1.0)):
        if np.allclose(back, sign * there, rtol=1e-13, atol=1e-14):
            return parity
    return None


def _derivatives(activation: Activation, s: Entries) -> Float[Array, "4 ..."]:
    """sigma, sigma', sigma'', sigma''' at s, the last by automatic differentiation."""
    s = jnp.asarray(s)
    second, third = jax.jvp(activation.second_derivative, (s,), (jnp.ones_like(s),))
    return jnp.stack([activation(s), activation.derivative(s), second, third])
