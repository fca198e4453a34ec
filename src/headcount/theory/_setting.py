"""A setting: the numbers that a theorem's right side depends on, without any data."""

from __future__ import annotations

import functools
import math
import re
from dataclasses import dataclass

from ..core import (
    Activation,
    BadArgument,
    activations,
    check_count,
    check_even,
    check_fraction,
    check_nonnegative,
    check_positive,
)

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
    return activations[match["name"]].scaled(float(match["A"]), float(match["k"]))


@dataclass(frozen=True)
class Setting:
    """(n, T, d, m, sigma, rho, nu, delta, delta', tau, eta) of arda2026.

    `rho` and `nu` are (c, u, w) radii. `eta` defaults to tau^{-1/2}, the theorem's step size.
    `B_U`, where given, is a realised bound on max_i |U_i| over the feasible set; it replaces the a
    priori one of Remark 7, and the event E_U is then not needed.
    """

    d: int
    m: int
    n: int = 1
    T: int = 1
    activation: str = "tanh"
    rho: tuple[float, float, float] = (3.0, 3.0, 3.0)
    nu: tuple[float, float, float] = (3.0, 3.0, 3.0)
    delta: float = 0.05
    delta_prime: float = 0.05
    tau: int = 1
    eta: float | None = None
    B_U: float | None = None

    def __post_init__(self) -> None:
        for argument in ("d", "n", "T", "tau"):
            check_count(argument, getattr(self, argument))
        check_even("m", self.m)
        check_fraction("delta", self.delta)
        check_fraction("delta_prime", self.delta_prime)
        for argument in ("rho", "nu"):
            radii = getattr(self, argument)
            if len(radii) != 3:
                raise BadArgument(argument, radii, "needs three radii", fix="give (c, u, w)")
            for radius in radii:
                check_nonnegative(argument, radius)
        if self.eta is not None:
            check_positive("eta", self.eta)
        if self.B_U is not None:
            check_nonnegative("B_U", self.B_U)
        activation_named(self.activation)

    @property
    def sigma(self) -> Activation:
        """The activation with its bounds sigma0, sigma1, sigma2."""
        return activation_named(self.activation)

    @property
    def step(self) -> float:
        """eta, by default tau^{-1/2}."""
        return 1 / math.sqrt(self.tau) if self.eta is None else self.eta
