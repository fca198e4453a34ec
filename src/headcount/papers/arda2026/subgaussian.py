"""Two steps of the proof of Lemma 5 of arda2026 that are false as written (and harmless)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln, logsumexp
from jaxtyping import Float

from ...core import Array
from ...theory import Claim, Family, Hypothesis, Kind, Sides, Variant, claims, instance_class
from ...theory.slow import Arithmetic, dot, softmax
from .naive import Data

REFERENCE = ("arda2026, App. A.6",)
_LARGEST = 400


@instance_class
@dataclass(frozen=True)
class AtomsInstance:
    """A variable with finitely many values z in [-1, 1] and probabilities softmax(logits)."""

    z: Float[Array, "k"]
    logits: Float[Array, "k"]


def _draw_atoms(rng: np.random.Generator, count: int) -> AtomsInstance:
    return AtomsInstance(rng.uniform(-1.5, 1.5, (count, 3)), rng.normal(size=(count, 3)))


def _project_atoms(i: AtomsInstance) -> AtomsInstance:
    return replace(i, z=jnp.clip(i.z, -1.0, 1.0))


def _orlicz(i: AtomsInstance, variant: str) -> Sides:
    rate = 1.0 if variant == "printed" else math.log(2)
    return Sides(jax.nn.softmax(i.logits) @ jnp.exp(rate * i.z**2), 2.0)


def _orlicz_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    rate = num.number(1) if variant == "printed" else num.log(num.number(2))
    p = softmax(num, data["logits"])
    return dot(p, [num.exp(rate * z * z) for z in data["z"]]), num.number(2)


psi_2 = claims.add(
    Claim(
        id="arda2026/psi-2",
        title="Orlicz norm of a bounded variable",
        kind=Kind.DETERMINISTIC,
        equations="App. A.6 (i), (ii)",
        statement="|Z| <= K implies a psi_2 norm of at most K (printed) or K/sqrt(ln 2) "
        "(corrected), that is E exp(Z^2/t^2) <= 2 at this t; here K = 1.",
        latex=r"|Z|\le K\Rightarrow\|Z\|_{\psi_2}\le K",
        sides=_orlicz,
        naive=_orlicz_naive,
        families=(Family("three atoms", _draw_atoms, _project_atoms),),
        targets=lambda: (AtomsInstance(np.array([1.0, -1.0]), np.zeros(2)),),
        variants={
            "printed": Variant("t = K", "E4", fails=True),
            "corrected": Variant("t = K/sqrt(ln 2) = 1.2011 K, attained by fair signs", "E4"),
        },
        default="corrected",
        hypotheses=(
            Hypothesis(
                "values in [-1, 1]",
                lambda i: jnp.max(jnp.abs(i.z)),
                lambda num, data: num.largest(abs(z) for z in data["z"]),
            ),
        ),
        errata=("E4",),
        references=REFERENCE,
    )
)


@instance_class
@dataclass(frozen=True)
class SignsInstance:
    """N fair signs and a level: the event |sum| >= level, that is |mean| >= t = level/N."""

    N: Float[Array, ""]
    level: Float[Array, ""]


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
    N, level = round(data["N"]), round(data["level"])
    ways = sum(math.comb(N, k) for k in range(N + 1) if abs(2 * k - N) >= level)
    rate = num.log(num.number(2)) if variant == "printed" else num.number("0.5")
    bound = 2 * num.exp(-rate * level * level / N)
    return num.number(ways) / num.number(2**N), bound


subgaussian_tail = claims.add(
    Claim(
        id="arda2026/subgaussian-tail",
        title="Tail of a mean with the psi_2 norm as its scale",
        kind=Kind.DETERMINISTIC,
        equations="App. A.6, the tail after Eq. (23)",
        statement="P(|mean of N| >= t) <= 2 exp(-N t^2/K^2) with K the psi_2 norm (printed), for "
        "fair signs: K^2 = 1/ln 2. Corrected: Hoeffding's 2 exp(-N t^2/2).",
        latex=r"\mathbb{P}(|\tfrac1N\sum_iZ_i|\ge t)\le2e^{-Nt^2/K^2}",
        sides=_signs,
        naive=_signs_naive,
        families=(Family("fair signs", _draw_signs, _project_signs, differentiable=False),),
        targets=lambda: tuple(
            SignsInstance(np.array(float(N)), np.array(float(level)))
            for N, level in ((16, 12), (64, 48), (400, 300))
        ),
        variants={
            "printed": Variant("scale K = psi_2 norm", "E5", fails=True),
            "corrected": Variant("Hoeffding's scale", "E5"),
        },
        default="corrected",
        hypotheses=(
            Hypothesis(
                "N and level whole",
                lambda i: jnp.abs(i.N - jnp.round(i.N)) + jnp.abs(i.level - jnp.round(i.level)),
                lambda num, data: (
                    abs(data["N"] - round(data["N"])) + abs(data["level"] - round(data["level"]))
                ),
                threshold=0.0,
            ),
        ),
        errata=("E5",),
        references=REFERENCE,
    )
)
