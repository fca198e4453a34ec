"""The second half of Lemma 6 and Remark 8 of arda2026: averages over U of one head's features.

At a fixed attention matrix the averages are integrals that are known to twelve digits: a = a(X; W)
and M are fixed, U ~ N(0, I_d), and sigma' is even and positive.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ...core import Activation, Array, pooled_attention
from ...theory import Bound, Sides, instance_class
from ...theory.domain import Domain
from ...theory.families import into_ball, log_uniform, safe_norm, shaped
from ...theory.slow import Arithmetic, activation, dot, flat, norm, quadrature, times
from . import constants, naive
from .declare import claim
from .hypotheses import SAMPLE
from .instances import structured
from .naive import Data
from .naive_rules import normal_density, over_interval, over_line
from .setting import Setting

STEEP = ("tanh", "erf", "arctan")
"""Odd increasing activations with sigma'(s) >= exp(-s^2) and no pole of sigma' within 1 of R."""


@instance_class
@dataclass(frozen=True)
class AttentionInstance(Domain):
    """One sample, a fixed attention matrix and the class radii; U is integrated out."""

    X: Float[Array, "T d"]
    q: Float[Array, "d"]
    W: Float[Array, "d d"]
    nu: Float[Array, "3"]
    activation: str = "tanh"

    positive = ("nu",)
    ranges = (("d", 1, 2),)

    def outside(self) -> str | None:
        """The rules are made for one or two features and for these activations."""
        return None if self.activation in STEEP else f"activation is not one of {STEEP}"


def _draw(
    rng: np.random.Generator, count: int, *, d: int, T: int, activation: str
) -> AttentionInstance:
    X, q, _, W = structured(
        rng,
        rng.normal(size=(count, T, d)) * log_uniform(rng, 0.1, 5.0, count, T, 1),
        2 * rng.normal(size=(count, d)),
        rng.normal(size=(count, d)),
        rng.normal(size=(count, d, d)) * log_uniform(rng, 0.01, 8.0, count, 1, 1),
    )
    return AttentionInstance(X, q, W, log_uniform(rng, 1e-2, 10.0, count, 3), activation)


def _project(i: AttentionInstance) -> AttentionInstance:
    return replace(i, X=into_ball(i.X), q=into_ball(i.q), nu=jnp.clip(i.nu, 1e-3, 20.0))


FAMILIES = tuple(
    shaped("attention", _draw, _project, d=d, T=T, activation=name)
    for d, T, name in ((2, 3, "tanh"), (1, 2, "tanh"), (2, 4, "erf"))
)

_Z = 0.25 * np.arange(-34, 35)
_Z_WEIGHTS = 0.25 * np.exp(-(_Z**2) / 2) / math.sqrt(2 * math.pi)
_LEGENDRE, _LEGENDRE_WEIGHTS = np.polynomial.legendre.leggauss(64)
_HALF_LINE = 4.5 * (1 + _LEGENDRE)
_HALF_WEIGHTS = 9 * _LEGENDRE_WEIGHTS * np.exp(-(_HALF_LINE**2) / 2) / math.sqrt(2 * math.pi)
_LOG_T = np.arange(-60.0, 36.0, 0.7)


def _moments(i: AttentionInstance) -> tuple[Any, Any]:
    """a and M, padded with zeros to two features."""
    alpha = pooled_attention(i.X, i.W, i.q)
    a = alpha @ i.X
    tokens = i.X - a[None]
    room = 2 - a.shape[0]
    M = (alpha[:, None] * tokens).T @ tokens
    return jnp.pad(a, (0, room)), jnp.pad(M, ((0, room), (0, room)))


def _mean_length(sigma: Activation, a: Any, M: Any) -> Any:
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


def _labels(i: AttentionInstance, variant: str) -> Sides:
    """The worst target at X: E_U of |s(U.a)| nu_c + |s'| |a| nu_u + |s'| |MU| |q| nu_w."""
    a, M = _moments(i)
    length = safe_norm(a)
    on_c = jnp.abs(i.sigma(length * _HALF_LINE)) @ _HALF_WEIGHTS
    on_u = length * (i.sigma.derivative(length * _Z) @ _Z_WEIGHTS)
    on_w = safe_norm(i.q) * _mean_length(i.sigma, a, M)
    y_max = constants.label_envelope(i.sigma, i.nu, i.q.shape[0], variant)
    return Sides(i.nu[0] * on_c + i.nu[1] * on_u + i.nu[2] * on_w, y_max, {"y_max": y_max})


def _mean_length_naively(num: Arithmetic, slope: Any, a: Any, M: Any) -> Any:
    """The same in polar coordinates, the half-circle starting where |M e| is smallest."""
    if len(a) == 1:
        weighted = over_interval(
            num, lambda r: r * slope(r * a[0]) * normal_density(num, r), num.number(10)
        )
        return 2 * abs(M[0][0]) * weighted
    rough = [[num.roughly(entry) for entry in row] for row in M]
    axis = math.atan2(2 * rough[0][1], rough[0][0] - rough[1][1]) / 2 + math.pi / 2

    def ray(angle: Any) -> Any:
        e = [num.cos(num.number(axis) + angle), num.sin(num.number(axis) + angle)]
        along = dot(a, e)
        radial = over_line(num, lambda r: r * r * slope(r * along) * num.exp(-r * r / 2)) / 2
        return norm(num, times(M, e)) * radial

    return over_interval(num, ray, num.pi) / num.pi


def _labels_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    sigma, q, nu = activation(num, data["activation"]), data["q"], data["nu"]
    unit = naive.head(num, sigma, data["X"], q, [num.number(0)] * len(q), data["W"])
    length = norm(num, unit.a)
    on_c = 2 * over_interval(
        num, lambda z: sigma.value(length * z) * normal_density(num, z), num.number(10)
    )
    on_u = length * over_line(num, lambda z: sigma.slope(length * z) * normal_density(num, z))
    on_w = norm(num, q) * _mean_length_naively(num, sigma.slope, unit.a, unit.M)
    s0, s1, _ = sigma.bounds
    root = num.number(1) if variant == "sharp" else num.sqrt(num.number(len(q)))
    bound = s0 * nu[0] + s1 * nu[1] + s1 * root * nu[2]
    return quadrature(num, nu[0] * on_c + nu[1] * on_u + nu[2] * on_w), bound


def _label_bound(setting: Setting, variant: str) -> Bound:
    y_max = constants.label_envelope(setting.sigma, setting.nu, setting.d, variant)
    return Bound(y_max, {"y_max": y_max})


claim(
    "lemma-6b",
    "Envelope of the targets",
    "Lemma 6",
    "Every f~ in F_nu has |f~(X)| <= y_max on every input. Tested for the worst transport map at "
    "each attention matrix, with U integrated out (d at most 2).",
    r"\sup_X|\tilde f|\le y^{\max}=\sigma_0\nu_c+\sigma_1\nu_u+\sigma_1\sqrt d\,\nu_w",
    sides=_labels,
    naive=_labels_naive,
    families=FAMILIES,
    forms={
        "printed": ("with sqrt(d)", "E19"),
        "sharp": ("without sqrt(d): E|MU| <= sqrt(tr M^2) <= 1", "E19"),
    },
    hypotheses=SAMPLE,
    bound=_label_bound,
    where="App. A.7",
)


def _attention_kernel(i: AttentionInstance, variant: str) -> Sides:
    """The lower bound and K_w(X, X), both at the instance's W."""
    a, M = _moments(i)
    square, length = jnp.sum(i.q**2), safe_norm(a)
    trace, image = jnp.sum(M**2), jnp.sum((M @ a) ** 2)
    spread_a = 1 + 4 * length**2
    lower = (trace - 4 * image / spread_a) / jnp.sqrt(spread_a)
    along = jnp.where(length > 0, image / jnp.where(length > 0, length, 1.0) ** 2, 0.0)
    slopes = i.sigma.derivative(length * _Z) ** 2
    kernel = trace * (slopes @ _Z_WEIGHTS) + along * (slopes @ (_Z_WEIGHTS * (_Z**2 - 1)))
    return Sides(square * lower, square * kernel, {"tr M^2": trace})


def _attention_kernel_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    sigma, q = activation(num, data["activation"]), data["q"]
    unit = naive.head(num, sigma, data["X"], q, [num.number(0)] * len(q), data["W"])
    length, Ma = norm(num, unit.a), times(unit.M, unit.a)
    trace, image, one = dot(flat(unit.M), flat(unit.M)), dot(Ma, Ma), num.number(1)
    rest = trace - image / (length * length) if length > 0 else trace
    scale = one + 4 * length * length

    def integrand(z: Any) -> Any:
        moment = rest + (trace - rest) * z * z
        return sigma.slope(length * z) ** 2 * moment * normal_density(num, z)

    lower = (trace - 4 * image / scale) / num.sqrt(scale)
    kernel = 2 * over_interval(num, integrand, num.number(10))
    return dot(q, q) * lower, dot(q, q) * quadrature(num, kernel)


claim(
    "remark-8",
    "The attention part of the kernel does not vanish",
    "Remark 8, Lemma 4",
    "K_w(X, X) > 0 unless the query is zero or all attended tokens agree. In numbers, at every "
    "attention matrix: K_w >= |q|^2 (1 + 4|a|^2)^(-1/2) (tr M^2 - 4 |Ma|^2/(1 + 4|a|^2)) for an "
    "activation with sigma'(s) >= exp(-s^2), and the right side is at least "
    "|q|^2 (1 + 4|a|^2)^(-3/2) tr M^2.",
    r"K_w(X,X)\ge\|q_X\|^2\,\mathbb E_W\frac{\operatorname{tr}M^2}{(1+4\|a\|^2)^{3/2}}>0",
    sides=_attention_kernel,
    naive=_attention_kernel_naive,
    families=FAMILIES,
    forms={"explicit": "the paper says only that K_w is not zero; tight as a vanishes"},
    where="Sec. 5.3",
)
