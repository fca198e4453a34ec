"""Steps of the proof of Lemma 5 of arda2026 that are false as written (and harmless)."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln, logsumexp
from jaxtyping import Float

from ...core import Array
from ...theory import Family, Sides, instance_class
from ...theory.domain import Domain
from ...theory.slow import Arithmetic, dot, softmax
from .declare import claim, false
from .hypotheses import in_cube
from .naive import Data

step = functools.partial(claim, where="App. A.6")
_LARGEST = 400


@instance_class
@dataclass(frozen=True)
class AtomsInstance(Domain):
    """A variable with finitely many values z in [-1, 1] and probabilities softmax(logits)."""

    z: Float[Array, "k"]
    logits: Float[Array, "k"]


def _draw_atoms(rng: np.random.Generator, count: int) -> AtomsInstance:
    return AtomsInstance(rng.uniform(-1.5, 1.5, (count, 3)), rng.normal(size=(count, 3)))


def _orlicz(i: AtomsInstance, variant: str) -> Sides:
    rate = 1.0 if variant == "printed" else math.log(2)
    return Sides(jax.nn.softmax(i.logits) @ jnp.exp(rate * i.z**2), 2.0)


def _orlicz_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    rate = num.number(1) if variant == "printed" else num.log(num.number(2))
    p = softmax(num, data["logits"])
    return dot(p, [num.exp(rate * z * z) for z in data["z"]]), num.number(2)


step(
    "psi-2",
    "Orlicz norm of a bounded variable",
    "App. A.6 (i), (ii)",
    "|Z| <= K implies a psi_2 norm of at most K (printed) or K/sqrt(ln 2) (corrected), that is "
    "E exp(Z^2/t^2) <= 2 at this t; here K = 1.",
    r"|Z|\le K\Rightarrow\|Z\|_{\psi_2}\le K",
    sides=_orlicz,
    naive=_orlicz_naive,
    families=(
        Family("three atoms", _draw_atoms, lambda i: replace(i, z=jnp.clip(i.z, -1.0, 1.0))),
    ),
    targets=lambda: (AtomsInstance(np.array([1.0, -1.0]), np.zeros(2)),),
    forms={
        "printed": false("t = K", "E4"),
        "corrected": ("t = K/sqrt(ln 2) = 1.2011 K, attained by fair signs", "E4"),
    },
    hypotheses=(in_cube("values in [-1, 1]", "z"),),
)


@instance_class
@dataclass(frozen=True)
class SignsInstance(Domain):
    """N fair signs and a level: the event |sum| >= level, that is |mean| >= t = level/N."""

    N: Float[Array, ""]
    level: Float[Array, ""]

    positive = ("N", "level")

    def outside(self) -> str | None:
        """Both are whole, level <= N <= 400."""
        if self.N % 1 or self.level % 1 or self.N > _LARGEST or self.level > self.N:
            return f"N = {self.N}, level = {self.level} are not whole, or not level <= N <= 400"
        return None


def _draw_signs(rng: np.random.Generator, count: int) -> SignsInstance:
    N = np.exp(rng.uniform(0, math.log(_LARGEST), count))
    return SignsInstance(N, N * rng.uniform(0, 1, count))


def _project_signs(i: SignsInstance) -> SignsInstance:
    N = jnp.clip(jnp.round(i.N), 1, _LARGEST)
    return SignsInstance(N, jnp.clip(jnp.round(i.level), 1, N))


def _signs(i: SignsInstance, variant: str) -> Sides:
    k = jnp.arange(_LARGEST + 1, dtype=i.N.dtype)
    inside = k <= i.N
    safe = jnp.where(inside, i.N - k, 0.0)
    log_pmf = gammaln(i.N + 1) - gammaln(k + 1) - gammaln(safe + 1) - i.N * math.log(2)
    counted = inside & (jnp.abs(2 * k - i.N) >= i.level)
    log_tail = logsumexp(jnp.where(counted, log_pmf, -jnp.inf))
    rate = math.log(2) if variant == "printed" else 0.5
    log_bound = math.log(2) - rate * i.level**2 / i.N
    return Sides(jnp.exp(log_tail), jnp.exp(log_bound), {"t": i.level / i.N})


def _signs_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    N, level = num.whole(data["N"]), num.whole(data["level"])
    ways = sum(math.comb(N, k) for k in range(N + 1) if abs(2 * k - N) >= level)
    rate = num.log(num.number(2)) if variant == "printed" else num.number("0.5")
    bound = 2 * num.exp(-rate * level * level / N)
    return num.number(ways) / num.number(2**N), bound


step(
    "subgaussian-tail",
    "Tail of a mean with the psi_2 norm as its scale",
    "App. A.6, the tail after Eq. (23)",
    "P(|mean of N| >= t) <= 2 exp(-N t^2/K^2) with K the psi_2 norm (printed), for fair signs: "
    "K^2 = 1/ln 2. Corrected: Hoeffding's 2 exp(-N t^2/2).",
    r"\mathbb{P}(|\tfrac1N\sum_iZ_i|\ge t)\le2e^{-Nt^2/K^2}",
    sides=_signs,
    naive=_signs_naive,
    families=(Family("fair signs", _draw_signs, _project_signs, differentiable=False),),
    targets=lambda: tuple(
        SignsInstance(np.array(float(N)), np.array(float(level)))
        for N, level in ((16, 12), (64, 48), (400, 300))
    ),
    forms={
        "printed": false("scale K = psi_2 norm", "E5"),
        "corrected": ("Hoeffding's scale", "E5"),
    },
)


@instance_class
@dataclass(frozen=True)
class TwoPointInstance(Domain):
    """Z = a or Z = -b, with the probabilities for which E exp(Z^2) = 2: a psi_2 norm of 1."""

    a: Float[Array, ""]
    b: Float[Array, ""]

    positive = ("a", "b")

    def outside(self) -> str | None:
        """a^2 < ln 2 < b^2, so that the probabilities exist; exp(b^2) is a float."""
        if self.a**2 < math.log(2) < self.b**2 and self.b <= 10:
            return None
        return f"a = {self.a}, b = {self.b} are not a < sqrt(ln 2) < b <= 10"


def _draw_points(rng: np.random.Generator, count: int) -> TwoPointInstance:
    return TwoPointInstance(rng.uniform(0, 0.83, count), rng.uniform(0.84, 6.0, count))


def _project_points(i: TwoPointInstance) -> TwoPointInstance:
    return TwoPointInstance(jnp.clip(i.a, 0.01, 0.83), jnp.clip(i.b, 0.84, 6.0))


def _centring(i: TwoPointInstance, variant: str) -> Sides:
    p = (2 - jnp.exp(i.a**2)) / (jnp.exp(i.b**2) - jnp.exp(i.a**2))
    values, weights = jnp.stack([i.a, -i.b]), jnp.stack([1 - p, p])
    scale = 1.0 if variant == "printed" else 4.0
    return Sides(weights @ jnp.exp((values - weights @ values) ** 2 / scale), 2.0, {"p": p})


def _centring_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    a, b = data["a"], data["b"]
    low, high = num.exp(a * a), num.exp(b * b)
    rare = (2 - low) / (high - low)
    mean = a - rare * (a + b)
    scale = num.number(1 if variant == "printed" else 4)
    terms = [num.exp((z - mean) ** 2 / scale) for z in (a, -b)]
    return terms[0] + rare * (terms[1] - terms[0]), num.number(2)


step(
    "lemma-5-centring",
    "Centring and the psi_2 norm",
    "App. A.6, after Eq. (23)",
    "|Z|_psi2 <= K implies |Z - EZ|_psi2 <= K (printed: the tail uses the same K after centring) "
    "or <= 2 K (corrected: |EZ|_psi2 <= K by Jensen, then the triangle inequality); here K = 1.",
    r"\|Z\|_{\psi_2}\le K\Rightarrow\|Z-\mathbb EZ\|_{\psi_2}\le K",
    sides=_centring,
    naive=_centring_naive,
    families=(Family("two points", _draw_points, _project_points),),
    targets=lambda: (TwoPointInstance(np.array(0.75), np.array(2.0)),),
    forms={
        "printed": false("the same K", "E5"),
        "corrected": ("2 K", "E5"),
    },
)


@instance_class
@dataclass(frozen=True)
class StretchInstance(Domain):
    """D = diag(l) with entries in [0, 1], and w(U) = D^2 U/|DU|: |w| <= 1 and <U, w> = |DU|."""

    l: Float[Array, "k"]

    def outside(self) -> str | None:
        """0 <= l <= 1."""
        return None if np.all((self.l >= 0) & (self.l <= 1)) else "l has entries outside [0, 1]"


def _dependence(i: StretchInstance, variant: str) -> Sides:
    mean = jnp.exp(-0.5 * jnp.sum(jnp.log1p(-0.75 * i.l**2)))
    return Sides(mean, 2.0 if variant == "printed" else 2.0 ** jnp.sum(i.l))


def _dependence_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    product = num.number(1)
    for l in data["l"]:
        product = product * (4 - 3 * l * l) / 4
    two = num.number(2)
    bound = two if variant == "printed" else num.exp(num.log(two) * num.total(data["l"]))
    return 1 / num.sqrt(product), bound


def _draw_stretches(rng: np.random.Generator, count: int) -> StretchInstance:
    return StretchInstance(rng.uniform(-0.2, 1.2, (count, 3)))


step(
    "lemma-5-independence",
    "A vector that depends on U",
    "App. A.6 (iii)",
    "For U ~ N(0, I) and |w| <= 1 almost surely, <U, w> has psi_2 norm at most sqrt(8/3), that is "
    "E exp(3 <U, w>^2/8) <= 2 (printed; true if w does not depend on U). Corrected, for "
    "w = D^2 U/|DU|: at most 2^(tr D); with D = M and tr M <= 1 the proof's bound is right.",
    r"\|w\|_2\le1\Rightarrow\|\langle U,w\rangle\|_{\psi_2}\le\sqrt{8/3}",
    sides=_dependence,
    naive=_dependence_naive,
    families=(
        Family(
            "three directions", _draw_stretches, lambda i: StretchInstance(jnp.clip(i.l, 0.0, 1.0))
        ),
    ),
    targets=lambda: (StretchInstance(np.ones(2)), StretchInstance(np.array([1.0, 0.0]))),
    forms={
        "printed": false("as if w did not depend on U", "E6"),
        "corrected": ("2^(tr D), by convexity in each entry; attained by entries 0 and 1", "E6"),
    },
)
