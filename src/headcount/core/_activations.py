"""Activations with the bounds that theorems ask for.

Each has |sigma| <= sigma0, |sigma'| <= sigma1, |sigma''| <= sigma2 on the whole real line.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Float

from ._checks import check_positive
from ._errors import BadArgument
from ._named import Call, Named
from ._registry import Registry
from ._types import Array

Scalar = Float[Array, "*shape"]


@dataclass(frozen=True)
class _Scaled:
    """s -> factor function(k s): equal ones are equal, which two closures never are."""

    factor: float
    k: float
    function: Callable[[Scalar], Scalar]

    def __call__(self, s: Scalar | float) -> Scalar:
        return self.factor * self.function(self.k * s)


@dataclass(frozen=True, repr=False)
class Activation(Named):
    """A smooth bounded activation: value, first two derivatives, and their sup norms."""

    name: str
    function: Callable[[Scalar], Scalar]
    derivative: Callable[[Scalar], Scalar]
    second_derivative: Callable[[Scalar], Scalar]
    sigma0: float
    sigma1: float
    sigma2: float
    scaled_from: tuple[Activation, float, float] | None = None
    """(activation, A, k) of one that `scaled` made."""

    def __repr__(self) -> str:
        return f"Activation({self.name!r})"

    def __call__(self, s: Scalar | float) -> Scalar:
        """sigma(s)."""
        return self.function(s)

    def scaled(self, A: float, k: float) -> Activation:
        """s -> A sigma(k s), with bounds (A sigma0, A k sigma1, A k^2 sigma2); A, k > 0."""
        check_positive("A", A)
        check_positive("k", k)
        return Activation(
            name=f"{A:g}*{self.name}({k:g}*x)",
            function=_Scaled(A, k, self.function),
            derivative=_Scaled(A * k, k, self.derivative),
            second_derivative=_Scaled(A * k * k, k, self.second_derivative),
            sigma0=A * self.sigma0,
            sigma1=A * k * self.sigma1,
            sigma2=A * k * k * self.sigma2,
            scaled_from=(self, A, k),
        )

    def found_by(self) -> Call | None:
        """By its name if it is registered, by its factors if it was scaled."""
        if self.name in activations and activations[self.name] is self:
            return activation_named, (self.name,)
        if self.scaled_from is not None and Activation.scaled(*self.scaled_from) == self:
            return Activation.scaled, self.scaled_from
        return None


activations: Registry[Activation] = Registry("activation")
"""Activations by name, each with the bounds of its derivatives."""

_SCALED = re.compile(r"^(?P<A>[^*]+)\*(?P<name>[a-z-]+)\((?P<k>[^*]+)\*x\)$")


@functools.lru_cache(maxsize=64)
def activation_named(name: str) -> Activation:
    """The activation of a name such as "tanh" or "50*tanh(0.02*x)", as `Activation.name` prints.

    >>> activation_named("50*tanh(0.02*x)").sigma1
    1.0
    """
    match = _SCALED.match(name)
    if match is None:
        return activations[name]
    try:
        A, k = float(match["A"]), float(match["k"])
    except ValueError:
        fix = "for example 50*tanh(0.02*x)"
        raise BadArgument("activation", name, "has a factor that is no number", fix=fix) from None
    return activations[match["name"]].scaled(A, k)


def activation_of(given: Activation | str) -> Activation:
    """An activation, or the one of this name."""
    if isinstance(given, str):
        return activation_named(given)
    if not isinstance(given, Activation):
        fix = f"give a name: {', '.join(activations)}"
        raise BadArgument("activation", given, "is no activation with known bounds", fix=fix)
    return given


def _register(
    name: str,
    function: Callable[[Scalar], Scalar],
    derivative: Callable[[Scalar], Scalar],
    second_derivative: Callable[[Scalar], Scalar],
    bounds: tuple[float, float, float],
) -> None:
    activations.register(name, Activation(name, function, derivative, second_derivative, *bounds))


def _logistic_slope(s: Scalar | float) -> Scalar:
    return jax.nn.sigmoid(s) * jax.nn.sigmoid(-s)


_TWO_OVER_SQRT_PI = 2 / math.sqrt(math.pi)
_SQRT_TWO_OVER_PI = math.sqrt(2 / math.pi)

_register(
    "tanh",
    jnp.tanh,
    lambda s: 1 - jnp.tanh(s) ** 2,
    lambda s: -2 * jnp.tanh(s) * (1 - jnp.tanh(s) ** 2),
    (1.0, 1.0, 4 / (3 * math.sqrt(3))),
)
_register(
    "erf",
    jax.scipy.special.erf,
    lambda s: _TWO_OVER_SQRT_PI * jnp.exp(-s * s),
    lambda s: -2 * _TWO_OVER_SQRT_PI * s * jnp.exp(-s * s),
    (1.0, _TWO_OVER_SQRT_PI, math.sqrt(8 / (math.pi * math.e))),
)
_register(
    "erf-normal",
    lambda s: jax.scipy.special.erf(s / math.sqrt(2)),
    lambda s: _SQRT_TWO_OVER_PI * jnp.exp(-s * s / 2),
    lambda s: -_SQRT_TWO_OVER_PI * s * jnp.exp(-s * s / 2),
    (1.0, _SQRT_TWO_OVER_PI, math.sqrt(2 / (math.pi * math.e))),
)
_register(
    "logistic",
    jax.nn.sigmoid,
    _logistic_slope,
    lambda s: _logistic_slope(s) * (1 - 2 * jax.nn.sigmoid(s)),
    (1.0, 1 / 4, 1 / (6 * math.sqrt(3))),
)
_register(
    "centred-logistic",
    lambda s: jnp.tanh(s / 2),
    lambda s: 2 * _logistic_slope(s),
    lambda s: 2 * _logistic_slope(s) * (1 - 2 * jax.nn.sigmoid(s)),
    (1.0, 1 / 2, 1 / (3 * math.sqrt(3))),
)
_register("sin", jnp.sin, jnp.cos, lambda s: -jnp.sin(s), (1.0, 1.0, 1.0))
_register("cos", jnp.cos, lambda s: -jnp.sin(s), lambda s: -jnp.cos(s), (1.0, 1.0, 1.0))
_register(
    "gaussian",
    lambda s: jnp.exp(-s * s / 2),
    lambda s: -s * jnp.exp(-s * s / 2),
    lambda s: (s * s - 1) * jnp.exp(-s * s / 2),
    (1.0, math.exp(-0.5), 1.0),
)
_register(
    "gaussian-narrow",
    lambda s: jnp.exp(-s * s),
    lambda s: -2 * s * jnp.exp(-s * s),
    lambda s: (4 * s * s - 2) * jnp.exp(-s * s),
    (1.0, math.sqrt(2 / math.e), 2.0),
)
_register(
    "arctan",
    jnp.arctan,
    lambda s: 1 / (1 + s * s),
    lambda s: -2 * s / (1 + s * s) ** 2,
    (math.pi / 2, 1.0, 3 * math.sqrt(3) / 8),
)
_register(
    "algebraic",
    lambda s: s * jax.lax.rsqrt(1 + s * s),
    lambda s: jax.lax.rsqrt(1 + s * s) ** 3,
    lambda s: -3 * s * jax.lax.rsqrt(1 + s * s) ** 5,
    (1.0, 1.0, 1.5 / 1.25**2.5),
)
