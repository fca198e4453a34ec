"""Eq. (23) of arda2026: the psi_2 norm of one head's term in Lemma 5.

Its proof adds three norms, of which two are too small as printed (see `lemma_5_steps`); the sum is
large enough all the same. At a fixed attention matrix and in one feature the norm is an integral
over U; a bound there is one for every law of W.
"""

import jax.numpy as jnp
import numpy as np

from ....core import pooled_attention
from ....theory.slow import norm, quadrature
from ..constants import state
from ..twins_integrals import normal_density, over_interval
from .lemma_6 import Attention, fixed_attention

LONGEST = 16.0
"""The integrand decays like exp(-u^2/8): what lies beyond is below 1e-14."""
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(80)
_U = LONGEST / 2 * (1 + _NODES)
_DENSITY = LONGEST * _WEIGHTS * np.exp(-(_U**2) / 2) / np.sqrt(2 * np.pi)


class OneFeature(Attention):
    """One sample in one feature, a fixed attention weight and the class radii; U is averaged."""

    ranges = (("d", 1, 1),)
    shapes = ({"T": 3, "d": 1}, {"T": 2, "d": 1, "activation": "erf"})


def at_rest():
    """Tokens +-1 of weight 1/2 and the W-block alone: the term is sigma_1 nu_w |U|."""
    one, nu = np.ones((1, 1)), np.array([1e-3, 1e-3, 20.0])
    tokens = np.array([[1.0], [-1.0]])
    return (OneFeature(X=tokens, q=one[0], W=0 * one, nu=nu, activation="tanh"),)


@state.claim(
    "eq-23",
    "The psi_2 norm of one head's term",
    where="Eq. (23)",
    proved="App. A.6",
    on=OneFeature,
    asks=("X", "q"),
    says=r"\|g_i(X)\|_{\psi_2}\le K:=2(\sigma_0\bar\nu_c+\sigma_1\bar\nu_u+\sigma_1\bar\nu_w)",
    forms={
        "printed": "with the factor 2",
        "sharp": ("with sqrt(8/3) in place of 2, attained by the W-block alone", "E4"),
    },
    no_rival="a step about any map of the class",
    tight=at_rest,
)
def eq_23(i, form):
    """E exp(g^2/K^2) <= 2 for the term g of one head and the worst map of V_nu. Tested in one
    feature, at each attention matrix, with U integrated out."""
    alpha = pooled_attention(i.X, i.W, i.q)
    a = (alpha @ i.X)[0]
    M = alpha @ (i.X[:, 0] - a) ** 2
    slope = i.sigma.derivative(a * _U)
    on_theta = i.nu[1] * jnp.abs(a) + i.nu[2] * jnp.abs(i.q[0]) * M * _U
    g = i.nu[0] * jnp.abs(i.sigma(a * _U)) + slope * on_theta
    squared = 8 / 3 if form == "sharp" else 4.0
    K = i.nu[0] * i.sigma.sigma0 + i.sigma.sigma1 * (i.nu[1] + i.nu[2])
    return jnp.exp(g**2 / (squared * K**2)) @ _DENSITY, 2.0


@eq_23.twin
def _(num, i, k, form):
    (sigma, unit), nu, (s0, s1, _) = fixed_attention(num, i), i["nu"], k.bounds
    a, M, q = norm(num, unit.a), unit.M[0][0], norm(num, i["q"])
    K = s0 * nu[0] + s1 * nu[1] + s1 * nu[2]
    squared = num.number(8) / 3 if form == "sharp" else num.number(4)

    def integrand(u):
        g = nu[0] * sigma.value(a * u) + sigma.slope(a * u) * (nu[1] * a + nu[2] * q * M * u)
        return num.exp(g * g / (squared * K * K)) * normal_density(num, u)

    return quadrature(num, 2 * over_interval(num, integrand, num.number(16))), num.number(2)
