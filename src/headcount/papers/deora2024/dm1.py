"""DM1, the tokenised mixture of deora2024, Sec. 5."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import jax
import numpy as np
from jaxtyping import Bool, Float, Int

from ...core import (
    Array,
    BadArgument,
    check_choice,
    check_count,
    check_nonnegative,
    check_positive,
    check_samples,
    integers,
    normal,
    rademacher,
    stream,
    uniform,
)
from ...data import Dataset, Measurement, data_models
from ...data._base import largest_token_norm

NOISES = ("gaussian", "bounded")
POSITIONS = ("random", "fixed")


@dataclass(frozen=True)
class DM1:
    """x_t = mu_y on zeta T relevant tokens, x_t = nu_j + z_t elsewhere [deora2024, Sec. 5].

    mu_+, mu_-, nu_1..nu_M are S times the first M + 2 unit vectors, or the rows of `patterns`,
    which must be orthogonal and of norm S; y = +-1 is fair and j uniform.

    noise "gaussian": z ~ N(0, noise_sd^2 I), the paper's experiments, which no constant of
    Assumption 3 bounds. noise "bounded": uniform with |<z, mu_+->| <= Z_mu, |<z, nu_l>| <= Z_nu/M
    and a part of norm at most Z_orth orthogonal to all patterns: Assumption 3 holds surely.
    relevant "random": a new set of positions for each sample; "fixed": the first zeta T tokens.
    """

    T: int = 10
    d: int = 4
    M: int = 2
    S: float = 2.0
    zeta: float = 0.1
    noise: str = "gaussian"
    noise_sd: float = 0.1
    Z_mu: float = 0.1
    Z_nu: float = 0.1
    Z_orth: float = 0.0
    relevant: str = "random"
    patterns: tuple[tuple[float, ...], ...] | None = None
    name: ClassVar[str] = "dm1"
    assumption: ClassVar[str] = (
        "deora2024, Assumption 3: orthogonal patterns of norm S, zeta T noiseless relevant tokens, "
        'noise with sure bounds Z_mu, Z_nu, Z (only noise="bounded" has them)'
    )

    def __post_init__(self) -> None:
        check_count("T", self.T)
        check_count("M", self.M)
        check_count("d", self.d)
        if self.d < self.M + 2:
            raise BadArgument(
                "d",
                self.d,
                "is below the M + 2 orthogonal patterns of Assumption 3",
                fix=f"use d={self.M + 2} or more",
            )
        check_positive("S", self.S)
        self._check_zeta()
        check_choice("noise", self.noise, NOISES)
        check_choice("relevant", self.relevant, POSITIONS)
        for argument in ("noise_sd", "Z_mu", "Z_nu", "Z_orth"):
            check_nonnegative(argument, getattr(self, argument))
        if self.patterns is not None:
            self._check_patterns(self.patterns)

    def _check_patterns(self, patterns: tuple[tuple[float, ...], ...]) -> None:
        """Rows mu_+, mu_-, nu_1..nu_M, orthogonal and of norm S up to rounding."""
        problem = "has rows of different lengths, or entries that are no numbers"
        try:
            rows = np.asarray(patterns, dtype=float)
        except (TypeError, ValueError) as error:
            raise BadArgument("patterns", patterns, problem, fix="give numbers") from error
        wanted = (self.M + 2, self.d)
        if rows.shape != wanted:
            problem = f"has shape {rows.shape}, Assumption 3 has M + 2 patterns of d features"
            raise BadArgument("patterns", rows.tolist(), problem, fix=f"give shape {wanted}")
        object.__setattr__(self, "patterns", tuple(map(tuple, rows.tolist())))
        gram = rows @ rows.T
        worst = np.max(np.abs(gram - self.S**2 * np.eye(len(rows))))
        if not worst <= 1e-9 * self.S**2:
            problem = (
                "breaks Assumption 3: patterns must be orthogonal and of norm S; an inner product "
                f"is off by {worst:.3g}"
            )
            raise BadArgument(
                "patterns", rows.tolist(), problem, fix="orthogonalise them, or set S"
            )

    def _check_zeta(self) -> None:
        check_positive("zeta", self.zeta)
        tokens = self.zeta * self.T
        whole = round(tokens)
        if not (1 <= whole <= self.T and abs(tokens - whole) <= 1e-9 * self.T):
            near = min(max(whole, 1), self.T)
            raise BadArgument(
                "zeta",
                self.zeta,
                f"zeta*T = {tokens:g} must be a whole number in 1..{self.T} (Assumption 3)",
                fix=f"use zeta={near / self.T:g}",
            )

    @property
    def relevant_tokens(self) -> int:
        """zeta T."""
        return round(self.zeta * self.T)

    @property
    def _patterns(self) -> Float[Array, "patterns d"]:
        if self.patterns is None:
            return self.S * np.eye(self.d)[: self.M + 2]
        return np.array(self.patterns)

    @property
    def mu_plus(self) -> Float[Array, "d"]:
        """The pattern of y = +1."""
        return self._patterns[0]

    @property
    def mu_minus(self) -> Float[Array, "d"]:
        """The pattern of y = -1."""
        return self._patterns[1]

    @property
    def nu(self) -> Float[Array, "M d"]:
        """The M patterns of irrelevant tokens."""
        return self._patterns[2:]

    @property
    def u_star(self) -> Float[Array, "d"]:
        """u_* = mu_+ - mu_-, of norm sqrt(2) S."""
        return self.mu_plus - self.mu_minus

    @property
    def U_star(self) -> Float[Array, "T d"]:
        """U_* = 1_T u_*^T, of norm S sqrt(2T)."""
        return np.tile(self.u_star, (self.T, 1))

    @property
    def W_star(self) -> Float[Array, "d d"]:
        """mu_+ mu_+^T + mu_- mu_-^T + sum_l nu_l (mu_+ + mu_-)^T, of norm S^2 sqrt(2(M+1))."""
        plus, minus = self.mu_plus, self.mu_minus
        own = np.outer(plus, plus) + np.outer(minus, minus)
        return own + np.outer(self.nu.sum(axis=0), plus + minus)

    @property
    def Z(self) -> float:
        """The sure bound on |z|; infinite for Gaussian noise."""
        if self.noise == "gaussian":
            return math.inf if self.noise_sd > 0 else 0.0
        along = 2 * (self.Z_mu / self.S) ** 2 + (self.Z_nu / self.S) ** 2 / self.M
        return math.sqrt(along + self.Z_orth**2)

    @property
    def R(self) -> float:
        """sqrt(S^2 + Z^2 + 2 Z_nu/M), the sure bound on token norms [deora2024, Sec. 5]."""
        Z_nu = self.Z_nu if self.noise == "bounded" else 0.0
        return math.sqrt(self.S**2 + self.Z**2 + 2 * Z_nu / self.M)

    def gamma_lin(self, Z_mu: float) -> float:
        """S sqrt(T/2) (zeta - 2 (1 - zeta) Z_mu/S^2), the linear model's margin [App. F, (132)]."""
        slack = 2 * (1 - self.zeta) * Z_mu / self.S**2
        return self.S * math.sqrt(self.T / 2) * (self.zeta - slack)

    def sample(self, n: int, seed: int) -> Dataset:
        """n samples with labels +-1."""
        return self._draw(n, seed, "train")

    def sample_split(self, n: int, n_val: int, seed: int) -> tuple[Dataset, Dataset]:
        """Independent training and validation samples."""
        check_count("n_val", n_val)
        return self.sample(n, seed), self._draw(n_val, seed, "validation")

    def relevant_mask(self, dataset: Dataset) -> Bool[Array, "n T"]:
        """Which tokens are relevant: those that equal mu_y exactly."""
        return np.all(dataset.x == self._mu(dataset.y)[:, None, :], axis=-1)

    def noise_of(self, dataset: Dataset) -> Float[Array, "k d"]:
        """z of every irrelevant token: its difference to the nearest nu."""
        tokens = dataset.x[~self.relevant_mask(dataset)]
        nearest = np.argmax(tokens @ self.nu.T, axis=1)
        return tokens - self.nu[nearest]

    def measure(self, dataset: Dataset) -> dict[str, Measurement]:
        """Realised R, Z_mu, Z_nu, Z, relevant tokens and linear margin."""
        check_samples(*dataset)
        z = self.noise_of(dataset)
        mu = np.stack([self.mu_plus, self.mu_minus])
        bounded = self.noise == "bounded"

        def against(value: float, bound: float, meaning: str) -> Measurement:
            if bounded:
                return Measurement.at_most(value, bound, meaning)
            return Measurement.observed(value, meaning)

        counts = np.sum(self.relevant_mask(dataset), axis=1)
        Z_mu = _largest(np.abs(z @ mu.T))
        margins = dataset.y * np.einsum("ntd,d->n", dataset.x, self.u_star)
        wrong = int(np.sum(counts != self.relevant_tokens))
        return {
            "R": against(largest_token_norm(dataset.x), self.R, "largest token norm"),
            "Z_mu": against(Z_mu, self.Z_mu, "largest |<z, mu_+->|"),
            "Z_nu": against(
                self.M * _largest(np.abs(z @ self.nu.T)), self.Z_nu, "M max |<z, nu_l>|"
            ),
            "Z": against(_largest(np.linalg.norm(z, axis=1)), self.Z, "largest |z|"),
            "noise_bounded": Measurement(
                self.Z if bounded else self.noise_sd,
                None,
                bounded or self.noise_sd == 0,
                "bound on |z|" if bounded else "deviation of Gaussian noise: no sure bound",
            ),
            "relevant_tokens": Measurement.at_most(wrong, 0, "samples without zeta T tokens mu_y"),
            "gamma_lin": Measurement.at_least(
                np.min(margins) / (self.S * math.sqrt(2 * self.T)),
                self.gamma_lin(Z_mu),
                "margin of U_*/|U_*|, against (132) with the realised Z_mu",
            ),
        }

    def _draw(self, n: int, seed: int, part: str) -> Dataset:
        check_count("n", n)
        y = rademacher(stream(seed, "dm1", part, "y"), (n,))
        j = integers(stream(seed, "dm1", part, "j"), (n, self.T), self.M)
        x = self.nu[j] + self._noise(n, seed, part)
        rows = np.arange(n)[:, None]
        x[rows, self._positions(n, seed, part)] = self._mu(y)[:, None, :]
        return Dataset(x, y)

    def _mu(self, y: Float[Array, "n"]) -> Float[Array, "n d"]:
        return np.stack([self.mu_minus, self.mu_plus])[(np.asarray(y) > 0).astype(int)]

    def _positions(self, n: int, seed: int, part: str) -> Int[Array, "n k"]:
        k = self.relevant_tokens
        if self.relevant == "fixed":
            return np.broadcast_to(np.arange(k), (n, k))
        order = uniform(stream(seed, "dm1", part, "positions"), (n, self.T))
        return np.argsort(order, axis=1)[:, :k]

    def _noise(self, n: int, seed: int, part: str) -> Float[Array, "n T d"]:
        key = stream(seed, "dm1", part, "noise")
        if self.noise == "gaussian":
            return self.noise_sd * normal(key, (n, self.T, self.d))
        along_key, direction_key, radius_key = jax.random.split(key, 3)
        k = self.M + 2
        limits = np.array([self.Z_mu] * 2 + [self.Z_nu / self.M] * self.M) / self.S
        z = np.zeros((n, self.T, self.d))
        z[..., :k] = uniform(along_key, (n, self.T, k), -1.0, 1.0) * limits
        if self.d > k:
            direction = normal(direction_key, (n, self.T, self.d - k))
            direction = direction / np.linalg.norm(direction, axis=-1, keepdims=True)
            radius = uniform(radius_key, (n, self.T, 1)) ** (1 / (self.d - k))
            z[..., k:] = self.Z_orth * radius * direction
        return z if self.patterns is None else z @ _completed(self._patterns / self.S)


def _completed(rows: Float[Array, "k d"]) -> Float[Array, "d d"]:
    """An orthonormal basis that begins with these orthonormal rows."""
    others = np.linalg.svd(rows)[2][len(rows) :]
    return np.concatenate([rows, others])


def _largest(values: Float[Array, "..."]) -> float:
    return float(np.max(values, initial=0.0))


data_models.register("dm1", DM1)
