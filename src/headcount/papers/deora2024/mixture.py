"""One sample of DM1 as an instance, with everything Assumption 3 bounds in units of its bound.

mu_+, mu_-, nu_1..nu_M are S times the first unit vectors; the first L tokens are relevant, the
others use any of nu_1..nu_M. Order does not matter to the model, nor does a rotation.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, fields, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ...core import Array
from ...theory import Family, instance_class
from ...theory.domain import Domain
from ...theory.families import log_uniform, safe_norm
from ...theory.slow import Arithmetic, dot
from . import mixture_constants
from .instances import signs
from .naive import Data


@instance_class
@dataclass(frozen=True)
class MixtureInstance(Domain):
    """A sample (X, y) of DM1 and the vector p of the two-phase start.

    `on_mu` and `on_nu` are <z_t, mu_+->/Z_mu and <z_t, nu_l> M/Z_nu of the irrelevant tokens, and
    each row of `kind` is the unit vector that picks their nu.
    """

    S: Float[Array, ""]
    Z_mu: Float[Array, ""]
    Z_nu: Float[Array, ""]
    y: Float[Array, ""]
    on_mu: Float[Array, "I 2"]
    on_nu: Float[Array, "I M"]
    kind: Float[Array, "I M"]
    p: Float[Array, "d"]
    eps: Float[Array, ""]
    L: int = 1

    positive = ("S",)
    fractions = ("eps",)

    @property
    def M(self) -> int:
        """Patterns of irrelevant tokens."""
        return int(self.on_nu.shape[-1])

    @property
    def T(self) -> int:
        """Tokens."""
        return self.L + int(self.on_mu.shape[-2])

    @property
    def zeta(self) -> float:
        """The share of relevant tokens."""
        return self.L / self.T

    @property
    def noise(self) -> Float[Array, "I d"]:
        """z_t."""
        return (
            jnp.concatenate([self.Z_mu * self.on_mu, self.Z_nu / self.M * self.on_nu], 1) / self.S
        )

    @property
    def X(self) -> Float[Array, "T d"]:
        """The tokens."""
        d = self.M + 2
        basis = self.S * jnp.eye(d)
        mu = jnp.where(self.y > 0, basis[0], basis[1])
        relevant = jnp.broadcast_to(mu, (self.L, d))
        nu = self.S * jnp.concatenate([jnp.zeros_like(self.on_mu), self.kind], 1)
        return jnp.concatenate([relevant, nu + self.noise])

    @property
    def u_star(self) -> Float[Array, "d"]:
        """mu_+ - mu_-."""
        return self.S * jnp.eye(self.M + 2)[0] - self.S * jnp.eye(self.M + 2)[1]

    @property
    def W_star(self) -> Float[Array, "d d"]:
        """mu_+ mu_+^T + mu_- mu_-^T + sum_l nu_l (mu_+ + mu_-)^T."""
        table = np.zeros((self.M + 2, self.M + 2))
        table[0, 0] = table[1, 1] = 1.0
        table[2:, :2] = 1.0
        return self.S**2 * jnp.asarray(table)

    @property
    def Z(self) -> Float[Array, ""]:
        """The bound on |z| that the two others leave."""
        return jnp.sqrt(2 * self.Z_mu**2 + self.Z_nu**2 / self.M) / self.S

    @property
    def R(self) -> Float[Array, ""]:
        """sqrt(S^2 + Z^2 + 2 Z_nu/M), at least 1."""
        return jnp.maximum(1.0, mixture_constants.token_bound(self.S, self.Z, self.Z_nu, self.M))

    @property
    def P(self) -> Float[Array, ""]:
        """|p|."""
        return safe_norm(self.p)

    def outside(self) -> str | None:
        """One p entry per pattern, noise inside its bounds, bounds that are not negative."""
        if self.p.shape[-1] != self.M + 2:
            return f"p has {self.p.shape[-1]} entries, M + 2 patterns have {self.M + 2}"
        if abs(float(self.y)) != 1:
            return "the label must be -1 or 1"
        if min(float(self.Z_mu), float(self.Z_nu)) < 0:
            return "noise bounds must not be negative"
        if max(np.max(np.abs(self.on_mu)), np.max(np.abs(self.on_nu))) > 1:
            return "the noise exceeds its bound [deora2024, Assumption 3]"
        if not np.all((self.kind == 0) | (self.kind == 1)) or np.any(np.sum(self.kind, 1) != 1):
            return "each row of kind must pick one pattern: a single 1 among zeros"
        return None


@instance_class
@dataclass(frozen=True)
class SureMixture(MixtureInstance):
    """A sample whose noise has sure bounds: they belong to the data model, not to what it drew."""


def surely(i: MixtureInstance) -> SureMixture:
    """The same sample or samples, with bounds that are sure."""
    return SureMixture(**{field.name: getattr(i, field.name) for field in fields(i)})


def project_mixture(i: MixtureInstance, ratio: float = 2.0, equal: bool = False) -> Any:
    """Assumption 3, with noise bounds up to S^2 times `ratio`."""
    S = jnp.clip(jnp.abs(i.S), 0.5, 5.0)
    Z_mu = jnp.clip(jnp.abs(i.Z_mu), 0.0, ratio * S**2)
    return replace(
        i,
        S=S,
        Z_mu=Z_mu,
        Z_nu=Z_mu if equal else jnp.clip(jnp.abs(i.Z_nu), 0.0, ratio * S**2),
        y=signs(i.y),
        on_mu=jnp.clip(i.on_mu, -1.0, 1.0),
        on_nu=jnp.clip(i.on_nu, -1.0, 1.0),
        kind=jax.nn.one_hot(jnp.argmax(i.kind, axis=1), i.M, dtype=i.kind.dtype),
        p=jnp.clip(i.p, -3.0, 3.0),
        eps=jnp.clip(i.eps, 1e-6, 0.999),
    )


def draw_mixtures(
    rng: np.random.Generator, count: int, *, T: int, M: int, L: int
) -> MixtureInstance:
    """Random samples; half of the noise sits at its bounds."""

    def noise(*shape: int) -> Array:
        inside = rng.uniform(-1, 1, (count, *shape))
        corner = rng.random((count, *[1] * len(shape))) < 0.5
        return np.where(corner, np.sign(inside), inside)

    return MixtureInstance(
        S=log_uniform(rng, 0.5, 5.0, count),
        Z_mu=log_uniform(rng, 1e-3, 2.0, count) * (rng.random(count) < 0.8),
        Z_nu=log_uniform(rng, 1e-3, 2.0, count) * (rng.random(count) < 0.8),
        y=rng.choice([-1.0, 1.0], count),
        on_mu=noise(T - L, 2),
        on_nu=noise(T - L, M),
        kind=np.eye(M)[rng.integers(M, size=(count, T - L))],
        p=rng.normal(size=(count, M + 2)) * log_uniform(rng, 1e-4, 1.0, count, 1),
        eps=rng.uniform(1e-3, 0.9, count),
        L=L,
    )


def mixture_family(
    T: int = 3, M: int = 2, L: int = 1, *, ratio: float = 2.0, equal: bool = False
) -> Family:
    """Samples of one shape."""
    draw = functools.partial(draw_mixtures, T=T, M=M, L=L)
    project = functools.partial(project_mixture, ratio=ratio, equal=equal)
    return Family(f"mixture T={T} M={M} L={L} ratio={ratio:g}", draw, project)


MIXTURES = (mixture_family(), mixture_family(4, 1, 2))


def _with_sure_bounds(family: Family) -> Family:
    return replace(family, draw=lambda rng, count: surely(family.draw(rng, count)))


SURE_MIXTURES = tuple(map(_with_sure_bounds, MIXTURES))


def quiet(T: int = 4, M: int = 2, L: int = 1, S: float = 2.0, eps: float = 0.1) -> MixtureInstance:
    """No noise and p = 0: where gamma_* and gamma_lin are attained."""
    shapes = ((T - L, 2), (T - L, M), (M + 2,))
    on_mu, on_nu, p = (np.zeros(shape) for shape in shapes)
    zero = np.zeros(())
    kind = np.eye(M)[np.arange(T - L) % M]
    return MixtureInstance(
        np.asarray(S), zero, zero, np.ones(()), on_mu, on_nu, kind, p, np.asarray(eps), L
    )


class NaiveMixture:
    """The twin of `MixtureInstance`'s properties, as lists."""

    def __init__(self, num: Arithmetic, data: Data) -> None:
        self.num = num
        self.S, self.Z_mu, self.Z_nu = data["S"], data["Z_mu"], data["Z_nu"]
        self.y, self.p, self.eps, self.L = data["y"], data["p"], data["eps"], int(data["L"])
        self.kind = data["kind"]
        self.M, self.T = len(data["on_nu"][0]), self.L + len(data["on_mu"])
        self.d = self.M + 2
        self.zeta = num.number(self.L) / self.T
        self.on_mu = [[self.Z_mu * e for e in row] for row in data["on_mu"]]
        self.on_nu = [[self.Z_nu / self.M * e for e in row] for row in data["on_nu"]]
        pairs = zip(self.on_mu, self.on_nu, strict=True)
        self.noise = [[e / self.S for e in (*a, *b)] for a, b in pairs]
        self.Z = num.sqrt(2 * self.Z_mu**2 + self.Z_nu**2 / self.M) / self.S
        inside = self.S**2 + self.Z**2 + 2 * self.Z_nu / self.M
        self.R = num.largest([num.number(1), num.sqrt(inside)])
        self.P = num.root(dot(self.p, self.p))
        self.X = self._tokens()
        self.u_star = self._pattern(0, 1)
        self.u_star[1] = -self.S

    def _pattern(self, *entries: int) -> list[Any]:
        return [self.S if k in entries else self.num.number(0) for k in range(self.d)]

    def _tokens(self) -> list[list[Any]]:
        own = 0 if self.num.roughly(self.y) > 0 else 1
        tokens = [self._pattern(own) for _ in range(self.L)]
        zero = self.num.number(0)
        for kind, z in zip(self.kind, self.noise, strict=True):
            nu = [zero, zero, *(self.S * e for e in kind)]
            tokens.append([a + b for a, b in zip(nu, z, strict=True)])
        return tokens

    def scores(self) -> list[list[Any]]:
        """r_t = X W_*^T x_t, from the inner products with the patterns [(108), (110)]."""
        plus, minus = ([x[k] * self.S for x in self.X] for k in (0, 1))
        others = [self.num.total(x[2:]) * self.S for x in self.X]
        return [
            [p * q + m * n + o * (q + n) for q, n in zip(plus, minus, strict=True)]
            for p, m, o in zip(plus, minus, others, strict=True)
        ]
