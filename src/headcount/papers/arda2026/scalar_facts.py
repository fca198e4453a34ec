"""Facts about one to three numbers behind arda2026, proved on their whole domain by `verify`.

They are written in variables in which the two sides meet at a number that halving an interval
reaches, so that nothing is left to a tolerance.
"""

from typing import Any

import jax.numpy as jnp

from ...theory import Box, facts, lemma


@facts.named("arda2026/sigma-1-tanh")
@lemma(y=Box(low=-1, high=1))
def slope_of_tanh(y: Any) -> tuple[Any, Any]:
    """tanh' = 1 - y^2 <= 1 = sigma_1 for y = tanh(x); |y| <= 1 = sigma_0 is the domain."""
    return 1 - y**2, 1.0


@facts.named("arda2026/sigma-2-tanh")
@lemma(u=Box(low=0, high=4))
def curvature_of_tanh(u: Any) -> tuple[Any, Any]:
    """|tanh''| = 2|y|(1 - y^2) <= 4/(3 sqrt 3) = sigma_2: squared, with u = 3 y^2."""
    return u * (3 - u) ** 2, 4.0


@facts.named("arda2026/sigma-1-logistic")
@lemma(p=Box(low=0, high=1))
def slope_of_logistic(p: Any) -> tuple[Any, Any]:
    """The slope p (1 - p) of the logistic function is at most 1/4 = sigma_1."""
    return p * (1 - p), 0.25


@facts.named("arda2026/sigma-2-logistic")
@lemma(u=Box(low=0, high=4))
def curvature_of_logistic(u: Any) -> tuple[Any, Any]:
    """|p (1 - p)(1 - 2p)| <= 1/(6 sqrt 3) = sigma_2: squared, with u = 3 (1 - 2p)^2."""
    return u * (3 - u) ** 2, 4.0


@facts.named("arda2026/sigma-2-erf")
@lemma(s=Box(low=0, high=128))
def curvature_of_erf(s: Any) -> tuple[Any, Any]:
    """|erf''| = 4|x| exp(-x^2)/sqrt(pi) <= sqrt(8/(pi e)) = sigma_2: squared, s = 2 x^2 <= 128."""
    return s * jnp.exp(1 - s), 1.0


@facts.named("arda2026/sigma-2-arctan")
@lemma(u=Box(low=0, high=1024))
def curvature_of_arctan(u: Any) -> tuple[Any, Any]:
    """2|x|/(1 + x^2)^2 <= 3 sqrt(3)/8 = sigma_2: squared, with u = 3 x^2 <= 1024."""
    return 256 * u / (3 + u) ** 4, 1.0


@facts.named("arda2026/third-moment-32-27")
@lemma(s=Box(low=-4, high=4))
def third_moment_of_any_tokens(s: Any) -> tuple[Any, Any]:
    """(1 - mu^2)(1 + |mu|) <= 32/27 for |mu| <= 1, the constant of erratum E9: mu = s/3, times 27.

    Variance times the largest deviation bounds the third central moment of tokens in [-1, 1].
    """
    return (9 - s**2) * (3 + jnp.abs(s)), 32.0


@facts.named("arda2026/third-moment-two-tokens")
@lemma(p=Box(low=0, high=1), a=Box(low=-1, high=1), b=Box(low=-1, high=1))
def third_moment_of_two_tokens(p: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """|p (1 - p)(1 - 2p)(b - a)^3| <= 4/(3 sqrt 3), the supremum found for erratum E9."""
    return jnp.abs(p * (1 - p) * (1 - 2 * p) * (b - a) ** 3), 4 / (3 * jnp.sqrt(3.0))
