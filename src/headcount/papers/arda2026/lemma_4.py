"""Lemma 4 and Remark 9 of arda2026: the tangent kernel and the norm of its function class."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ...core import Array, activation_named, head_features
from ...theory import Claim, Experiment, Kind, Sides, Variant, claims, instance_class
from ...theory.slow import FLOATS, Arithmetic, activation, dot, flat, norm
from . import constants, model, naive
from .hypotheses import PAIRED, TRANSPORT
from .instances import ModelInstance, model_family
from .naive import Data

PAIRS = (model_family(n=2, d=2, T=3, m=4), model_family(n=2, d=1, T=2, m=2, activation="sin"))


def features(i: ModelInstance) -> Float[Array, "n m p"]:
    """(phi_c, phi_u, vec phi_w) of every sample and head at phi0, as one vector each."""
    sigma = activation_named(i.activation)

    def one(X: Any, q: Any, U: Any, W: Any) -> Any:
        part = head_features(X, q, U, W, sigma)
        rows = jnp.ravel(jnp.outer(part.w_left, q))
        return jnp.concatenate([part.phi_c[None], part.phi_u, rows])

    per_head = jax.vmap(one, in_axes=(None, None, 0, 0))
    return jax.vmap(lambda X, q: per_head(X, q, i.U0, i.W0))(i.X, i.q)


def features_naively(num: Arithmetic, data: Data, j: int) -> list[list[Any]]:
    """The same in slow arithmetic, for sample j."""
    return [[unit.h, *unit.gradient] for unit in naive.heads(num, data, j, naive.initial(data))]


def _decomposition(i: ModelInstance, variant: str) -> Sides:
    g = model.gradients(i, i.initial)
    flat_g = jnp.concatenate([jnp.reshape(leaf, (leaf.shape[0], -1)) for leaf in g], axis=-1)
    phi = features(i)[:, : i.m // 2]
    blocks = 2 / i.m * jnp.einsum("jip,lip->jl", phi, phi)
    return Sides(flat_g @ flat_g.T, blocks / i.m if variant == "printed" else blocks)


def _decomposition_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    m, start = len(data["c0"]), naive.initial(data)
    left, right = [], []
    for j in naive.samples(data):
        for l in naive.samples(data):
            pairs = zip(
                naive.gradients(num, data, j, start),
                naive.gradients(num, data, l, start),
                strict=True,
            )
            left.append(num.total([dot(x, y) for x, y in pairs]))
            phi, other = features_naively(num, data, j), features_naively(num, data, l)
            half = num.total([dot(phi[i], other[i]) for i in range(m // 2)]) * 2 / m
            right.append(half / m if variant == "printed" else half)
    return left, right


lemma_4 = claims.add(
    Claim(
        id="arda2026/lemma-4",
        title="Blocks of the empirical tangent kernel",
        kind=Kind.IDENTITY,
        equations="Lemma 4, App. A.5",
        statement="At a paired start K_m(X, X') is 2/m times the sum over m/2 heads of "
        "phi_c phi_c' + <phi_u, phi_u'> + <phi_w, phi_w'>.",
        latex=r"K_m(X,X')=\tfrac2m\sum_{i\le m/2}\langle\phi(X),\phi(X')\rangle",
        sides=_decomposition,
        naive=_decomposition_naive,
        families=PAIRS,
        variants={
            "printed": Variant(
                "with a second factor 1/m in front of gradients that already carry m^(-1/2)",
                "E12",
                fails=True,
            ),
            "corrected": Variant("one factor 1/m", "E12"),
        },
        default="corrected",
        hypotheses=(PAIRED,),
        errata=("E12",),
        references=("arda2026, App. A.5",),
    )
)


@instance_class
@dataclass(frozen=True)
class KernelInstance:
    """Half a start in d = 1, two samples, the limit K, one head's standard deviation, delta."""

    X: Float[Array, "2 T"]
    U: Float[Array, "half"]
    W: Float[Array, "half"]
    K: Float[Array, ""]
    sd: Float[Array, ""]
    delta: Float[Array, ""]


_SAMPLES = np.array([[1.0, -0.7, 0.4], [-0.3, 0.9, -0.6]])


def _limit(X: Float[Array, "2 T"]) -> tuple[float, float]:
    """K(X, X') and the standard deviation of one head's term, by quadrature over (U, W)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()
    U, W = np.meshgrid(nodes, nodes, indexing="ij")
    weight = np.outer(weights, weights)
    product = np.zeros((3, *U.shape))
    per_sample = []
    for x in X:
        logits = W[..., None] * x * x[-1]
        alpha = np.exp(logits - logits.max(axis=-1, keepdims=True))
        alpha /= alpha.sum(axis=-1, keepdims=True)
        a = alpha @ x
        M = alpha @ x**2 - a**2
        per_sample.append((np.sin(U * a), np.cos(U * a) * a, np.cos(U * a) * M * U * x[-1]))
    product = sum(first * second for first, second in zip(*per_sample, strict=True))
    K = float(np.sum(weight * product))
    return K, math.sqrt(float(np.sum(weight * product**2)) - K**2)


def _draw(case: Mapping[str, Any], rng: np.random.Generator, count: int) -> KernelInstance:
    K, sd = _limit(_SAMPLES)
    half = int(case["m"]) // 2
    return KernelInstance(
        X=np.broadcast_to(_SAMPLES, (count, *_SAMPLES.shape)),
        U=rng.normal(size=(count, half)),
        W=rng.normal(size=(count, half)),
        K=np.full(count, K),
        sd=np.full(count, sd),
        delta=np.full(count, case["delta"]),
    )


def _chebyshev(i: KernelInstance, variant: str) -> Sides:
    sigma = activation_named("sin")

    def term(U: Any, W: Any) -> Any:
        pair = [
            head_features(x[:, None], x[-1:], U[None], W[None, None], sigma)
            for x in (i.X[0], i.X[1])
        ]
        vectors = [
            jnp.concatenate([p.phi_c[None], p.phi_u, p.w_left * x[-1]])
            for p, x in zip(pair, (i.X[0], i.X[1]), strict=True)
        ]
        return vectors[0] @ vectors[1]

    K_m = jnp.mean(jax.vmap(term)(i.U, i.W))
    bound = i.sd / jnp.sqrt(i.U.shape[0] * i.delta)
    return Sides(jnp.abs(K_m - i.K), bound, {"K": i.K, "sd_head": i.sd, "K_m": K_m})


def _chebyshev_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    sigma = activation(num, "sin")
    terms = []
    for U, W in zip(data["U"], data["W"], strict=True):
        units = [
            naive.head(num, sigma, [[x] for x in row], [row[-1]], [U], [[W]]) for row in data["X"]
        ]
        terms.append(dot(*([unit.h, *unit.gradient] for unit in units)))
    half = len(terms)
    bound = data["sd"] / num.sqrt(half * data["delta"])
    return abs(num.total(terms) / half - data["K"]), bound


def _count(case: Mapping[str, Any], variant: str, seed: int, repetitions: int) -> int:
    rng = np.random.default_rng(seed)
    K, sd = _limit(_SAMPLES)
    half, exceeded = int(case["m"]) // 2, 0
    for _ in range(repetitions):
        data = {
            "X": _SAMPLES.tolist(),
            "U": rng.normal(size=half).tolist(),
            "W": rng.normal(size=half).tolist(),
            "K": K,
            "sd": sd,
            "delta": float(case["delta"]),
        }
        lhs, rhs = _chebyshev_naive(FLOATS, data, variant)
        exceeded += lhs > rhs
    return exceeded


lemma_4_limit = claims.add(
    Claim(
        id="arda2026/lemma-4-limit",
        title="The empirical kernel tends to K_c + K_u + K_w",
        kind=Kind.HIGH_PROBABILITY,
        equations="Lemma 4",
        statement="K_m is the mean of m/2 independent head terms with mean K = K_c + K_u + K_w and "
        "standard deviation sd, so |K_m - K| <= sd sqrt(2/(m delta)) with probability 1 - delta. "
        "Tested in d = 1 with sin, where K and sd are integrals.",
        latex=r"\mathbb{P}(|K_m-K|\ge{\rm sd}\sqrt{2/(m\delta)})\le\delta",
        sides=_chebyshev,
        naive=_chebyshev_naive,
        families=(),
        variants={"printed": Variant("almost sure limit, with Chebyshev's rate")},
        default="printed",
        experiment=Experiment(
            cases=({"m": 2, "delta": 0.2}, {"m": 32, "delta": 0.05}),
            draw=_draw,
            sides=_chebyshev,
            delta=lambda case: float(case["delta"]),
            exceeds_naively=_count,
        ),
        references=("arda2026, App. A.5",),
    )
)


def _norm(i: ModelInstance, variant: str) -> Sides:
    phi = features(i)
    rows = jnp.reshape(i.vw, (i.m, -1))
    v = jnp.concatenate([i.nu[0] * i.vc[:, None], i.nu[1] * i.vu, i.nu[2] * rows], axis=-1)
    y = jnp.einsum("jip,ip->j", phi, v) / i.m
    combined = jnp.einsum("j,jip->ip", i.labels, phi)
    kernel_norm = jnp.sqrt(jnp.sum(combined**2) / i.m + 1e-300)
    return Sides(jnp.abs(i.labels @ y), constants.length(i.nu) * kernel_norm)


def _norm_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    m, nu, w = len(data["c0"]), data["nu"], data["labels"]
    all_phi = [features_naively(num, data, j) for j in naive.samples(data)]
    value, square = num.number(0), num.number(0)
    for i in range(m):
        mixed = [
            num.total([w[j] * all_phi[j][i][k] for j in range(len(w))])
            for k in range(len(all_phi[0][i]))
        ]
        v = [
            nu[0] * data["vc"][i],
            *(nu[1] * x for x in data["vu"][i]),
            *(nu[2] * x for x in flat(data["vw"][i])),
        ]
        value, square = value + dot(mixed, v), square + dot(mixed, mixed)
    return abs(value) / m, norm(num, nu) * num.sqrt(square / m)


remark_9 = claims.add(
    Claim(
        id="arda2026/remark-9",
        title="Norm of a target in the kernel's space",
        kind=Kind.DETERMINISTIC,
        equations="Eq. (9), Remark 9",
        statement="A target of the class F_nu has RKHS norm at most |nu|_2. Tested by duality: "
        "|sum_j w_j f~(X_j)| <= |nu| sqrt(w^T K w) for all weights w, with the law of a head "
        "replaced by any finite sample of heads (the argument holds for every law).",
        latex=r"|\textstyle\sum_jw_j\tilde f(X_j)|\le\|\nu\|_2\sqrt{w^\top Kw}",
        sides=_norm,
        naive=_norm_naive,
        families=PAIRS,
        variants={"printed": Variant("norm as an infimum over transport maps", "E13")},
        default="printed",
        hypotheses=(TRANSPORT,),
        errata=("E13",),
        references=("arda2026, Sec. 5.4",),
    )
)
