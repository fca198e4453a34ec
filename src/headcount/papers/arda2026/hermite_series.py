"""Gaussian moments of any smooth activation by Mehler's series, each with a bound on its error.

he_k are the orthonormal Hermite polynomials. For unit vectors a/r, a'/r' with correlation rho,
z = U.a/r, z' = U.a'/r', and functions g, h of one variable,
    E[g(z) h(z')] = sum_k rho^k alpha_k beta_k,   alpha_k = E[g(z) he_k(z)].
No matrix is inverted, so a and a' may be parallel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ...core import Activation, Array, float64
from .gaussian_moments import Entries, Moments, Pair

ORDERS = (8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072)
STRIDES = (8, 6, 5, 4, 3, 2, 1)
_FINEST = 0.05
_REACH = 13.0
"""The density times he_k is of order exp(-z^2/4): below 1e-18 here, for every k."""
_LONGEST_TABLE = 2**24
_ROUNDING = 64 * float(np.finfo(np.float64).eps)

VALUE, SLOPE, ARM, BEND, ARM_SLOPE = range(5)
"""The functions of z that are expanded: sigma(r z); g = sigma'(r z); z g; g'; (z g)'."""
_PRODUCTS = (
    (VALUE, VALUE),
    (SLOPE, SLOPE),
    (ARM, ARM),
    (BEND, BEND),
    (ARM_SLOPE, SLOPE),
    (SLOPE, ARM_SLOPE),
)


def _profiles(activation: Activation, r: Entries, z: Entries) -> Float[Array, "5 ..."]:
    """The five functions at z, for |a| = r."""
    s = r * z
    slope, second = activation.derivative(s), activation.second_derivative(s)
    return jnp.stack([activation(s), slope, z * slope, r * second, slope + s * second])


def _sizes(squares: Any) -> Any:
    """What errors are measured against: E[g^2] of each function.

    g' and (z g)' vanish with r, but enter beside g itself: they count at least as much as g.
    """
    own, derived = squares[:BEND], squares[BEND:]
    return jnp.concatenate([own, jnp.maximum(derived, squares[SLOPE][None])])


class HermiteRule(NamedTuple):
    """Nodes z and the table (weight of z) he_k(z): E[g(z) he_k(z)] = g(z) @ table.

    `slip` bounds the error of the coefficients relative to E[g^2]^(1/2), and of E[g^2] by the rule
    relative to itself; `error` that of E[g(z) h(z')] relative to (E[g^2] E[h^2])^(1/2), for every
    |a|, |a'| up to the radius asked for. `series_moments` bounds each entry by its own a and a'.
    """

    nodes: Float[Array, "nodes"]
    table: Float[Array, "nodes order"]
    slip: float
    error: float


def hermite_rule(activation: Activation, radius: float, tolerance: float) -> HermiteRule:
    """The shortest series whose error is below `tolerance` for every |a| <= radius.

    By Cauchy-Schwarz the terms left out are at most the geometric mean of the two tails
    E[g^2] - sum_{k<K} alpha_k^2. They are measured on a grid of radii by Gauss-Legendre panels;
    the rule itself is trapezoidal (it converges exponentially for functions that are analytic in a
    strip), with nodes thinned as far as its coefficients agree with those of the panels. Both
    resolve g, whose features are of size 1/r. If no series of `ORDERS` (or of a bearable table)
    suffices, the longest is returned with its error.
    """
    scale = max(1.0, radius)
    radii = np.linspace(0.0, radius, 9)[1:, None]
    panels, weights = _panels(max(2.0, scale))  # half a unit wide: he_k may oscillate faster than g
    reference = _evaluated(activation, radii, panels)
    squares = reference**2 @ weights
    with float64():
        size = np.asarray(_sizes(jnp.asarray(squares)))
    size = np.where(size > 0, size, 1.0)
    most = max(512, _LONGEST_TABLE // round(2 * _REACH * scale / _FINEST))
    exact = np.empty((*squares.shape, 0))
    coefficients = _coefficients(reference, panels, weights)
    for order in (k for k in ORDERS if k <= most):
        more = [next(coefficients) for _ in range(order - exact.shape[-1])]
        exact = np.concatenate([exact, np.stack(more, axis=-1)], axis=-1)
        truncation = float(np.max(np.abs(squares - np.sum(exact**2, axis=-1)) / size))
        if truncation <= tolerance / 2:
            break
    nodes, table, slip = _thinned(activation, radii, scale, tolerance, exact, squares, size)
    return HermiteRule(nodes, table, slip, truncation + 5 * slip)


def _thinned(
    activation: Activation,
    radii: Float[Array, "radii 1"],
    scale: float,
    tolerance: float,
    exact: Float[Array, "5 radii order"],
    squares: Float[Array, "5 radii"],
    size: Float[Array, "5 radii"],
) -> tuple[Float[Array, "nodes"], Float[Array, "nodes order"], float]:
    """The trapezoidal rule of fewest nodes that slips by at most tolerance / 10, and its slip."""
    reach = 2 * math.sqrt(-math.log(1e-3 * min(tolerance, 1e-3)))
    last = math.floor(min(reach, _REACH) * scale / _FINEST)
    steps = np.arange(-last, last + 1)
    finest = _evaluated(activation, radii, _FINEST / scale * steps)
    for stride in STRIDES:
        kept = steps % stride == 0
        nodes, values = _FINEST / scale * steps[kept], finest[..., kept]
        weights = _density(nodes) * (stride * _FINEST / scale)
        table = _hermite_table(nodes, weights, exact.shape[-1])
        slips = np.linalg.norm(values @ table - exact, axis=-1) / np.sqrt(size)
        of_squares = np.abs(values**2 @ weights - squares) / size
        slip = 2 * float(max(np.max(slips), np.max(of_squares)))
        if slip <= tolerance / 10:
            break
    return nodes, table, slip


def _evaluated(
    activation: Activation, radii: Float[Array, "radii 1"], z: Float[Array, "nodes"]
) -> Float[Array, "5 radii nodes"]:
    with float64():
        return np.asarray(_profiles(activation, jnp.asarray(radii), jnp.asarray(z)[None]))


def _density(z: Float[Array, "nodes"]) -> Float[Array, "nodes"]:
    return np.exp(-z * z / 2) / math.sqrt(2 * math.pi)


def _panels(scale: float) -> tuple[Float[Array, "nodes"], Float[Array, "nodes"]]:
    """Nodes and weights of N(0, 1): 20 Gauss-Legendre points on panels about 1/scale wide."""
    points, weights = np.polynomial.legendre.leggauss(20)
    half = _REACH / math.ceil(_REACH * scale) / 2
    centres = half * np.arange(1 - round(_REACH / half), round(_REACH / half), 2)
    nodes = (centres[:, None] + half * points).ravel()
    return nodes, np.tile(half * weights, len(centres)) * _density(nodes)


def _polynomials(nodes: Float[Array, "nodes"]) -> Iterator[Float[Array, "nodes"]]:
    """he_0, he_1, ... at the nodes, without end."""
    before, now, k = np.zeros_like(nodes), np.ones_like(nodes), 0
    while True:
        yield now
        before, now = now, (nodes * now - math.sqrt(k) * before) / math.sqrt(k + 1)
        k += 1


def _coefficients(
    values: Float[Array, "*g nodes"], nodes: Float[Array, "nodes"], weights: Float[Array, "nodes"]
) -> Iterator[Float[Array, "*g"]]:
    """alpha_0, alpha_1, ... of each function."""
    for polynomial in _polynomials(nodes):
        yield values @ (weights * polynomial)


def _hermite_table(
    nodes: Float[Array, "nodes"], weights: Float[Array, "nodes"], order: int
) -> Float[Array, "nodes order"]:
    """Weights times he_0, he_1, ... at the nodes."""
    rows = zip(range(order), _polynomials(nodes), strict=False)
    return np.stack([weights * polynomial for _, polynomial in rows], axis=1)


class _Side(NamedTuple):
    """r; coefficients of the functions and parities in use, two orders a step; size, tail bound."""

    r: Entries
    coefficients: Float[Array, "half_order used ..."]
    size: Float[Array, "5 ..."]
    tail: Float[Array, "5 ..."]


def series_moments(
    activation: Activation,
    nodes: Float[Array, "nodes"],
    table: Float[Array, "nodes order"],
    slip: float | Float[Array, ""],
) -> Callable[[Pair], tuple[Moments, Moments]]:
    """Moments for any smooth activation, and bounds on their errors."""
    parity = _parity(activation)
    used = [
        (f, q)
        for f in range(5)
        for q in (0, 1)
        if parity is None or q == (parity + (f in (SLOPE, ARM_SLOPE))) % 2
    ]
    if parity is not None:  # then z and -z tell the same
        middle = len(nodes) // 2
        fold = jnp.full((len(nodes) - middle, 1), 2.0).at[0].set(1.0)
        nodes, table = nodes[middle:], fold * table[middle:]

    def side(s: Entries) -> _Side:
        r = jnp.sqrt(s)
        values = _profiles(activation, r[..., None], jnp.reshape(nodes, (1,) * r.ndim + (-1,)))
        alpha = [values[f] @ table[:, q::2] for f, q in used]
        squares = values**2 @ table[:, 0]
        kept = jnp.zeros_like(squares)
        for c, (f, _) in _both(alpha, used):
            kept = kept.at[f].add(jnp.sum(c**2, axis=-1))
        size = _sizes(squares)
        tail = jnp.abs(squares - kept) + (3 * slip + _ROUNDING) * size
        return _Side(r, jnp.moveaxis(jnp.stack(alpha), -1, 0), jnp.sqrt(size), jnp.sqrt(tail))

    def moments(v: Pair) -> tuple[Moments, Moments]:
        left, right = side(v.s11), side(v.s22)
        scale = left.r * right.r
        rho = jnp.clip(_ratio(v.s12, scale), -1.0, 1.0)
        expected, last = _mehler(rho, left.coefficients, right.coefficients, used)
        rounding = _ROUNDING * (1 + scale)  # rho itself is rounded
        sizes = [left.size[g] * right.size[h] for g, h in _PRODUCTS]
        missed = [
            last * left.tail[g] * right.tail[h] + (2 * slip + slip**2 + rounding) * size
            for (g, h), size in zip(_PRODUCTS, sizes, strict=True)
        ]
        weights, rough = _curved_weights(v, rho, scale)
        curved = sum(w * e for w, e in zip(weights, expected[1:], strict=True))
        error = sum(
            jnp.abs(w) * m + rough * size
            for w, m, size in zip(weights, missed[1:], sizes[1:], strict=True)
        )
        return Moments(expected[0], expected[1], curved), Moments(missed[0], missed[1], error)

    return moments


def _both(one: list[Any], two: list[Any]) -> Iterator[tuple[Any, Any]]:
    return zip(one, two, strict=True)


def _ratio(of: Entries, to: Entries) -> Entries:
    """of / to; zero where `to` is: a vector of length zero has no direction, and needs none."""
    return jnp.where(to > 0, of / jnp.where(to > 0, to, 1.0), 0.0)


def _curved_weights(v: Pair, rho: Entries, scale: Entries) -> tuple[list[Entries], Entries]:
    """What multiplies E[g h], E[zg z'h], E[g' h'], E[(zg)' h], E[g (z'h)'] in the curved moment.

    With e = a/r, e' = a'/r' and P symmetric, split U = z e + (its part normal to e) on the left of
    P and U = z' e' + (its part normal to e') on the right; the normal parts are integrated by
    parts. Near e = e' the weights of the large E[g' h'] and E[(zg)' h] vanish with the angle, and
    what is left is small of itself. (Without the split, terms r^2 E[sigma''' sigma'] and others
    cancel to a part 1/r^4 of them.) Also: how far rounding moves each weight.
    """
    one, two, half = _ratio(v.p11, v.s11), _ratio(v.p22, v.s22), _ratio(v.cross, 2 * scale)
    weights = [
        v.p - one - two + rho * half,
        half,
        half * (1 + rho * rho) - rho * (one + two),
        one - rho * half,
        two - rho * half,
    ]
    return weights, _ROUNDING * (jnp.abs(v.p) + jnp.abs(one) + jnp.abs(two) + jnp.abs(half))


def _mehler(
    rho: Entries, alpha: Entries, beta: Entries, used: list[tuple[int, int]]
) -> tuple[list[Entries], Entries]:
    """sum_{k<K} rho^k alpha_k beta_k of each product, and |rho|^K."""
    place = {key: i for i, key in enumerate(used)}
    terms = [(g, h, q) for g, h in _PRODUCTS for q in (0, 1) if (g, q) in place]
    square = rho * rho

    def step(carry: Any, k: Any) -> tuple[Any, None]:
        power, sums = carry
        left, right = k
        sums = [
            total + power * (left[place[g, q]] * right[place[h, q]])
            for total, (g, h, q) in _both(sums, terms)
        ]
        return (power * square, sums), None

    start = (jnp.ones_like(rho), [jnp.zeros_like(rho) for _ in terms])
    (last, sums), _ = jax.lax.scan(step, start, (alpha, beta), unroll=4)
    expected = dict.fromkeys(_PRODUCTS, jnp.zeros_like(rho))
    for total, (g, h, q) in _both(sums, terms):
        expected[g, h] = expected[g, h] + (rho * total if q else total)
    return [expected[product] for product in _PRODUCTS], last


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
