"""One sample of DM1 as a record, with everything Assumption 3 bounds in units of its bound.

mu_+, mu_-, nu_1..nu_M are S times the first unit vectors; the first L tokens are relevant, the
others use any of nu_1..nu_M. Order does not matter to the model, nor does a rotation.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ...core import Array
from ...data import Dataset
from ...theory import Batch, Box, Fraction, Positive, Record, Static
from ...theory._record import Shape
from ...theory.families import log_uniform, safe_norm
from . import mixture_constants
from .dm1 import DM1
from .spaces import Entries, Labels, Whole


def share(form: str) -> int:
    """The start's centre is zeta u_* over this: 2 in (102), 4 where the first phase ends."""
    return 2 if form in ("printed", "uniform") else 4


class Levels(Positive):
    """Numbers that are not negative; a fifth of the draws is zero."""

    positive = False

    def _random(self, rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> Array:
        drawn = log_uniform(rng, self.low, self.high, count, *shape)
        return drawn * (rng.random(drawn.shape) < 0.8)

    def kept(self, x: Any) -> Any:
        return jnp.abs(x)


class Shares(Box):
    """Noise in units of its bound."""

    asks = ""
    free = True


class OneHot(Shares):
    """Rows with a single 1 among zeros."""

    def value(self, x: Any) -> Any:
        return jax.nn.one_hot(jnp.argmax(x, axis=-1), x.shape[-1], dtype=x.dtype)

    def kept(self, x: Any) -> Any:
        return x


class Mixture(Record):
    """A sample (X, y) of DM1 and the vector p of the two-phase start.

    `on_mu` and `on_nu` are <z_t, mu_+->/Z_mu and <z_t, nu_l> M/Z_nu of the irrelevant tokens, and
    each row of `kind` is the unit vector that picks their nu.
    """

    S = Positive(low=0.5, high=5.0)
    Z_mu = Levels(high=2.0)
    Z_nu = Levels(high=2.0)
    y = Labels()
    on_mu = Shares("I", 2)
    on_nu = Shares("I", "M")
    kind = OneHot("I", "M")
    p = Entries("d", low=1e-4, high=1.0, largest=3.0)
    eps = Fraction(low=1e-6, high=0.999)
    L = Static(1)

    shapes: ClassVar[tuple[Shape, ...]] = (
        {"I": 2, "M": 2, "d": 4, "L": 1},
        {"I": 2, "M": 1, "d": 3, "L": 2},
    )

    def within(self) -> Self:
        """Noise bounds of up to 2 S^2."""
        return bounded(self, 2.0)

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

    def row(self, form: str) -> Float[Array, "d"]:
        """The row of a start: (zeta/4) u_* + p of the first phase, (zeta/2) u_* + p of (102)."""
        return self.zeta / share(form) * self.u_star + self.p

    @property
    def P(self) -> Float[Array, ""]:
        """|p|."""
        return safe_norm(self.p)

    def outside(self) -> str | None:
        """One p entry per pattern, noise inside its bounds, bounds that are not negative."""
        if (problem := super().outside()) is not None:
            return problem
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


class Signed(Mixture):
    """A sample, the probability delta, n samples in all, and H fair signs alpha_h."""

    delta = Fraction(low=1e-6, high=1 - 1e-6)
    n = Whole(high=1e9)
    H = Static(3)

    shapes = tuple({**one, "H": H} for one, H in zip(Mixture.shapes, (3, 16), strict=True))
    slopes = False


class ManyHeads(Mixture):
    """A sample, delta, n samples in all, and any number of heads H."""

    delta = Fraction(low=1e-6, high=1 - 1e-6)
    n = Whole(high=1e9)
    H = Whole(high=1e30)


class SureMixture(Mixture):
    """A sample whose noise has sure bounds: they belong to the data model, not to what it drew."""


def surely(i: Mixture) -> SureMixture:
    """The same sample or samples, with bounds that are sure."""
    return SureMixture(**i.fields())


def bounded(i: Any, ratio: float, equal: bool = False) -> Any:
    """The sample with noise bounds of at most `ratio` S^2."""
    Z_mu, Z_nu = (jnp.minimum(level, ratio * i.S**2) for level in (i.Z_mu, i.Z_nu))
    return i.changed(Z_mu=Z_mu, Z_nu=Z_mu if equal else Z_nu)


_EIGHTH = functools.partial(bounded, ratio=0.124, equal=True)
QUIET = (
    {"I": 2, "M": 2, "d": 4, "L": 1, "within": _EIGHTH},
    {"I": 1, "M": 1, "d": 3, "L": 3, "within": _EIGHTH},
)
"""Z_mu = Z_nu <= S^2/8."""


def quiet(T: int = 4, M: int = 2, L: int = 1, S: float = 2.0, eps: float = 0.1) -> Mixture:
    """No noise and p = 0: where gamma_* and gamma_lin are attained."""
    zero = np.zeros(())
    return Mixture(
        S=np.asarray(S), Z_mu=zero, Z_nu=zero, y=np.ones(()), on_mu=np.zeros((T - L, 2)),
        on_nu=np.zeros((T - L, M)), kind=np.eye(M)[np.arange(T - L) % M], p=np.zeros(M + 2),
        eps=np.asarray(eps), L=L,
    )  # fmt: skip


EPS = 0.01
"""The leak of Proposition 3 at which it is asked."""


def first_phase_row(dataset: Dataset) -> Float[Array, "d"]:
    """(1/2) mean_i y_i xbar_i, a row of U after a first phase on these samples [Lemma 16]."""
    return np.mean(dataset.y[:, None] * np.mean(dataset.x, axis=1), axis=0) / 2


Offers = dict[type, Sequence[Any]]


def offered_mixtures(data: DM1, dataset: Dataset, most: int) -> tuple[Offers, str]:
    """Up to `most` samples as instances, each with its own and with equal noise bounds; and a note.

    p is that of a first phase on all the samples. Bounds are those of the data model where its
    noise has sure ones, else the largest that these samples show. Nothing where the claims do not
    speak about the samples: no irrelevant tokens, or noise that leaves the patterns' span.
    """
    L, T, k = data.relevant_tokens, data.T, data.M + 2
    if L == T:
        return {}, "claims about DM1 are not asked: every token is relevant"
    if data.d > k:
        return {}, f"claims about DM1 are not asked: they are stated for d = M + 2 = {k}"
    basis = np.stack([data.mu_plus, data.mu_minus, *data.nu]) / data.S
    some = np.unique(np.linspace(0, len(dataset.y) - 1, min(len(dataset.y), most)).astype(int))
    chosen = Dataset(dataset.x[some], dataset.y[some])
    tokens = chosen.x[~data.relevant_mask(chosen)].reshape(len(some), T - L, data.d) @ basis.T
    kind = np.eye(data.M)[np.argmax(tokens[..., 2:], axis=-1)]
    z = data.S * np.concatenate([tokens[..., :2], tokens[..., 2:] - data.S * kind], axis=-1)
    bounded = data.noise == "bounded"
    shown = data.measure(dataset)
    Z_mu, Z_nu = (data.Z_mu, data.Z_nu) if bounded else (shown["Z_mu"].value, shown["Z_nu"].value)
    p = basis @ first_phase_row(dataset) - data.zeta / 4 * (basis @ data.u_star)
    parts = [
        _instances(data, chosen.y, z, kind, p, bounds)
        for bounds in ((Z_mu, Z_nu), (max(Z_mu, Z_nu),) * 2)
    ]
    both = jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)
    note = (
        "Assumption 3 fails, Gaussian noise is unbounded: claims about DM1 take the largest noise "
        "of these samples for its bounds"
    )
    if bounded or data.noise_sd == 0:
        return {Mixture: Batch(both), SureMixture: Batch(surely(both))}, ""
    return {Mixture: Batch(both)}, note


def _instances(
    data: DM1, y: Any, z: Any, kind: Any, p: Any, bounds: tuple[float, float]
) -> Mixture:
    """A batch; z holds the noise's inner products with the patterns."""
    n, (Z_mu, Z_nu) = len(y), bounds
    tiny = 1e-300  # without noise every ratio is zero

    def everywhere(value: Any) -> Any:
        return np.broadcast_to(np.asarray(value, float), (n, *np.shape(value))).copy()

    return Mixture(
        S=everywhere(data.S),
        Z_mu=everywhere(Z_mu),
        Z_nu=everywhere(Z_nu),
        y=np.asarray(y, float),
        on_mu=np.clip(z[..., :2] / max(Z_mu, tiny), -1.0, 1.0),
        on_nu=np.clip(z[..., 2:] * data.M / max(Z_nu, tiny), -1.0, 1.0),
        kind=kind,
        p=everywhere(p),
        eps=everywhere(EPS),
        L=data.relevant_tokens,
    )
