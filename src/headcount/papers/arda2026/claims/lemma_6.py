"""The second half of Lemma 6 and Remark 8 of arda2026: averages over U of one head's features.

At a fixed attention matrix the averages are integrals that are known to twelve digits: a = a(X; W)
and M are fixed, U ~ N(0, I_d), and sigma' is even and positive.
"""

from __future__ import annotations

import math
from typing import ClassVar

import jax.numpy as jnp
import numpy as np

from ....core import pooled_attention
from ....theory import Ball, Choice, Positive, Reals, Record, Tokens
from ....theory._record import Shape
from ....theory.families import safe_norm
from ....theory.slow import activation, dot, flat, norm, quadrature, times
from .. import twins
from ..constants import state
from ..records import QUERY, TOKENS, with_structure
from ..twins_integrals import normal_density, over_interval, over_line


class Attention(Record):
    """One sample, a fixed attention matrix and the class radii; U is integrated out.

    The activations are odd, increasing, with sigma'(s) >= exp(-s^2) and no pole of sigma' within 1
    of the reals; the rules are made for one or two features.
    """

    X = Tokens("T", "d", says=TOKENS)
    q = Ball("d", says=QUERY)
    W = Reals("d", "d")
    nu = Positive(3, low=1e-3, high=20.0)
    activation = Choice("tanh", "erf", "arctan")

    ranges = (("d", 1, 2),)
    shapes: ClassVar[tuple[Shape, ...]] = (
        {"T": 3, "d": 2},
        {"T": 2, "d": 1},
        {"T": 4, "d": 2, "activation": "erf"},
    )

    @classmethod
    def structured(cls, rng, drawn):
        """As for heads."""
        changed = with_structure(rng, {**drawn, "U": rng.normal(size=drawn["q"].shape)}, "U", "W")
        return {name: changed[name] for name in drawn}

    @property
    def d(self) -> int:
        """Features."""
        return int(self.q.shape[-1])


_Z = 0.25 * np.arange(-34, 35)
_Z_WEIGHTS = 0.25 * np.exp(-(_Z**2) / 2) / math.sqrt(2 * math.pi)
_LEGENDRE, _LEGENDRE_WEIGHTS = np.polynomial.legendre.leggauss(64)
_HALF_LINE = 4.5 * (1 + _LEGENDRE)
_HALF_WEIGHTS = 9 * _LEGENDRE_WEIGHTS * np.exp(-(_HALF_LINE**2) / 2) / math.sqrt(2 * math.pi)
_LOG_T = np.arange(-60.0, 36.0, 0.7)


def moments(i):
    """a and M, padded with zeros to two features."""
    alpha = pooled_attention(i.X, i.W, i.q)
    a = alpha @ i.X
    tokens = i.X - a[None]
    room = 2 - a.shape[0]
    M = (alpha[:, None] * tokens).T @ tokens
    return jnp.pad(a, (0, room)), jnp.pad(M, ((0, room), (0, room)))


def mean_length(sigma, a, M):
    """E[sigma'(U.a) |M U|], with |y| = pi^(-1/2) int t^(-1/2) y^2 exp(-t y^2) dt.

    Under the weight exp(-t |M U|^2) the law of U is again Gaussian, with covariance
    S = (I + 2 t M^2)^(-1), so that only an integral over z = U.a / sqrt(v), v = a^T S a, is left.
    Two by two matrices are inverted by hand: nothing cancels where M is nearly singular.
    """
    size = jnp.trace(M)
    M = M / jnp.where(size > 0, size, 1.0)
    t = jnp.exp(jnp.asarray(_LOG_T))
    trace, det = jnp.sum(M**2), M[0, 0] * M[1, 1] - M[0, 1] ** 2
    whole = 1 + 2 * t * trace + 4 * t**2 * det**2
    turned = M @ jnp.stack([-a[1], a[0]])
    v = (a @ a + 2 * t * jnp.sum(turned**2)) / whole
    adjugate = jnp.stack([M[1, 1] * a[0] - M[0, 1] * a[1], M[0, 0] * a[1] - M[0, 1] * a[0]])
    image = (M @ a)[:, None] + (2 * t * det)[None] * adjugate[:, None]
    safe = jnp.where(v > 0, v, 1.0)
    along = jnp.where(v > 0, jnp.sum(image**2, axis=0) / whole**2 / safe, 0.0)
    total = (trace + 4 * t * det**2) / whole
    root = jnp.where(v > 0, jnp.sqrt(safe), 0.0)
    slopes = sigma.derivative(root[:, None] * _Z[None])
    inner = total * (slopes @ _Z_WEIGHTS) + along * (slopes @ (_Z_WEIGHTS * (_Z**2 - 1)))
    step = _LOG_T[1] - _LOG_T[0]
    return size * step / math.sqrt(math.pi) * jnp.sum(jnp.sqrt(t / whole) * inner)


@state.claim(
    "lemma-6b",
    "Envelope of the targets",
    where="Lemma 6",
    proved="App. A.7",
    on=Attention,
    asks=("X", "q"),
    says=r"\sup_X|\tilde f|\le y^{\max}=\sigma_0\nu_c+\sigma_1\nu_u+\sigma_1\sqrt d\,\nu_w",
    forms={
        "printed": ("with sqrt(d)", "E19"),
        "sharp": ("without sqrt(d): E|MU| <= sqrt(tr M^2) <= 1", "E19"),
    },
    right=lambda k: k.y_max,
    no_rival="the radii of the class are all that bounds a target",
)
def lemma_6b(i):
    """Every f~ in F_nu has |f~(X)| <= y_max on every input. Tested for the worst transport map at
    each attention matrix, with U integrated out (d at most 2)."""
    # E_U of |s(U.a)| nu_c + |s'| |a| nu_u + |s'| |MU| |q| nu_w.
    a, M = moments(i)
    length = safe_norm(a)
    on_c = jnp.abs(i.sigma(length * _HALF_LINE)) @ _HALF_WEIGHTS
    on_u = length * (i.sigma.derivative(length * _Z) @ _Z_WEIGHTS)
    on_w = safe_norm(i.q) * mean_length(i.sigma, a, M)
    return i.nu[0] * on_c + i.nu[1] * on_u + i.nu[2] * on_w


def mean_length_slowly(num, slope, a, M):
    """The same in polar coordinates, the half-circle starting where |M e| is smallest."""
    if len(a) == 1:
        weighted = over_interval(
            num, lambda r: r * slope(r * a[0]) * normal_density(num, r), num.number(10)
        )
        return 2 * abs(M[0][0]) * weighted
    rough = [[num.roughly(entry) for entry in row] for row in M]
    axis = math.atan2(2 * rough[0][1], rough[0][0] - rough[1][1]) / 2 + math.pi / 2

    def ray(angle):
        e = [num.cos(num.number(axis) + angle), num.sin(num.number(axis) + angle)]
        along = dot(a, e)
        radial = over_line(num, lambda r: r * r * slope(r * along) * num.exp(-r * r / 2)) / 2
        return norm(num, times(M, e)) * radial

    return over_interval(num, ray, num.pi) / num.pi


def fixed_attention(num, i):
    """The activation, and the head at U = 0."""
    sigma = activation(num, i["activation"])
    return sigma, twins.head(num, sigma, i["X"], i["q"], [num.number(0)] * len(i["q"]), i["W"])


@lemma_6b.twin
def _(num, i):
    (sigma, unit), nu = fixed_attention(num, i), i["nu"]
    length = norm(num, unit.a)
    on_c = 2 * over_interval(
        num, lambda z: sigma.value(length * z) * normal_density(num, z), num.number(10)
    )
    on_u = length * over_line(num, lambda z: sigma.slope(length * z) * normal_density(num, z))
    on_w = norm(num, i["q"]) * mean_length_slowly(num, sigma.slope, unit.a, unit.M)
    return quadrature(num, nu[0] * on_c + nu[1] * on_u + nu[2] * on_w)


@state.claim(
    "remark-8",
    "The attention part of the kernel does not vanish",
    lower=True,
    where="Remark 8, Lemma 4",
    proved="Sec. 5.3",
    on=Attention,
    asks=(),
    no_rival="a lower bound, beside the 0 that every kernel has",
    says=r"K_w(X,X)\ge\|q_X\|^2\,\mathbb E_W\frac{\operatorname{tr}M^2}{(1+4\|a\|^2)^{3/2}}>0",
    forms={"explicit": "the paper says only that K_w is not zero; tight as a vanishes"},
)
def remark_8(i):
    """K_w(X, X) > 0 unless the query is zero or all attended tokens agree. In numbers, at every
    attention matrix: K_w >= |q|^2 (1 + 4|a|^2)^(-1/2) (tr M^2 - 4 |Ma|^2/(1 + 4|a|^2)) for an
    activation with sigma'(s) >= exp(-s^2), and the right side is at least
    |q|^2 (1 + 4|a|^2)^(-3/2) tr M^2."""
    a, M = moments(i)
    square, length = jnp.sum(i.q**2), safe_norm(a)
    trace, image = jnp.sum(M**2), jnp.sum((M @ a) ** 2)
    spread_a = 1 + 4 * length**2
    lower = (trace - 4 * image / spread_a) / jnp.sqrt(spread_a)
    along = jnp.where(length > 0, image / jnp.where(length > 0, length, 1.0) ** 2, 0.0)
    slopes = i.sigma.derivative(length * _Z) ** 2
    kernel = trace * (slopes @ _Z_WEIGHTS) + along * (slopes @ (_Z_WEIGHTS * (_Z**2 - 1)))
    return square * lower, square * kernel


@remark_8.twin
def _(num, i):
    (sigma, unit), q = fixed_attention(num, i), i["q"]
    length, Ma = norm(num, unit.a), times(unit.M, unit.a)
    trace, image, one = dot(flat(unit.M), flat(unit.M)), dot(Ma, Ma), num.number(1)
    rest = trace - image / (length * length) if length > 0 else trace
    scale = one + 4 * length * length

    def integrand(z):
        moment = rest + (trace - rest) * z * z
        return sigma.slope(length * z) ** 2 * moment * normal_density(num, z)

    lower = (trace - 4 * image / scale) / num.sqrt(scale)
    kernel = 2 * over_interval(num, integrand, num.number(10))
    return dot(q, q) * lower, dot(q, q) * quadrature(num, kernel)
