"""Lemma 4, Remarks 8-9 and Sec. 5.4 of arda2026: the tangent kernel and its function class."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ...core import Array, float64
from ...theory import Experiment, Kind, Sides, instance_class
from ...theory.domain import Domain, case_problem
from ...theory.slow import FLOATS, Arithmetic, activation, dot, flat, norm, quadrature, times
from . import constants, naive
from . import quantities as model
from .declare import claim, false, identity
from .hypotheses import PAIRED, TRANSPORT
from .instances import ModelInstance, model_family
from .naive import Data

APPENDIX = "App. A.5"
PAIRS = (
    model_family(n=2, d=2, T=3, m=4),
    model_family(n=2, d=1, T=2, m=2, activation="sin"),
    model_family(n=3, d=3, T=4, m=2, activation="erf"),
)


def _features(i: ModelInstance) -> Float[Array, "n m p"]:
    return model.features(i, i.U0, i.W0)


def _features_naively(num: Arithmetic, data: Data, j: int) -> list[list[Any]]:
    """(phi_c, phi_u, vec phi_w) of every head at phi0, for sample j."""
    return [[unit.h, *unit.gradient] for unit in naive.heads(num, data, j, naive.initial(data))]


def _transport_naively(data: Data) -> list[list[Any]]:
    """(v_c, v_u, vec v_w) of every head."""
    nu = data["nu"]
    return [
        [nu[0] * vc, *(nu[1] * x for x in vu), *(nu[2] * x for x in flat(vw))]
        for vc, vu, vw in zip(data["vc"], data["vu"], data["vw"], strict=True)
    ]


def _decomposition(i: ModelInstance, variant: str) -> Sides:
    g = jnp.reshape(model.flat_blocks(model.gradients(i, i.initial)), (i.n, -1))
    phi = _features(i)[:, : i.m // 2]
    blocks = 2 / i.m * jnp.einsum("jip,lip->jl", phi, phi)
    return Sides(g @ g.T, blocks / i.m if variant == "printed" else blocks)


def _decomposition_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    m, start = len(data["c0"]), naive.initial(data)
    slopes = [flat(naive.gradients(num, data, j, start)) for j in naive.samples(data)]
    halves = [flat(_features_naively(num, data, j)[: m // 2]) for j in naive.samples(data)]
    factor = num.number(2) / m / (m if variant == "printed" else 1)
    right = [factor * dot(phi, other) for phi in halves for other in halves]
    return [dot(g, other) for g in slopes for other in slopes], right


identity(
    "lemma-4",
    "Blocks of the empirical tangent kernel",
    "Lemma 4, App. A.5",
    "At a paired start K_m(X, X') is 2/m times the sum over m/2 heads of phi_c phi_c' + "
    "<phi_u, phi_u'> + <phi_w, phi_w'>.",
    r"K_m(X,X')=\tfrac2m\sum_{i\le m/2}\langle\phi(X),\phi(X')\rangle",
    sides=_decomposition,
    naive=_decomposition_naive,
    families=PAIRS,
    forms={
        "printed": false(
            "with a second factor 1/m in front of gradients that already carry m^(-1/2)", "E12"
        ),
        "corrected": ("one factor 1/m", "E12"),
    },
    hypotheses=(PAIRED,),
    where=APPENDIX,
)

in_class = functools.partial(identity, families=PAIRS, hypotheses=(PAIRED,), where="Sec. 5.4")

SAMPLES = ((1.0, -0.7, 0.4), (-0.3, 0.9, -0.6))
"""Two inputs with d = 1 and T = 3, the last token being the query."""


@instance_class
@dataclass(frozen=True)
class KernelInstance(Domain):
    """Half a start in d = 1 and delta; the two inputs are `SAMPLES`, the activation is sin."""

    U: Float[Array, "half"]
    W: Float[Array, "half"]
    delta: Float[Array, ""]

    fractions = ("delta",)
    activation = "sin"

    @property
    def X(self) -> Float[Array, "2 T 1"]:
        """The two inputs."""
        return jnp.asarray(SAMPLES)[..., None]

    @property
    def q(self) -> Float[Array, "2 1"]:
        """Their last tokens."""
        return self.X[:, -1]


def _terms(i: Any, U: Any, W: Any) -> Any:
    """Every head's term <phi(X), phi(X')>."""
    first, second = model.features(i, U[:, None], W[:, None, None])
    return jnp.sum(first * second, axis=-1)


@functools.cache
def _limit() -> tuple[float, float]:
    """K(X, X') and the standard deviation of one head's term, by Gauss-Hermite rules in (U, W)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weight = np.outer(weights, weights).ravel() / np.sum(weights) ** 2
    U, W = (grid.ravel() for grid in np.meshgrid(nodes, nodes, indexing="ij"))
    some = KernelInstance(U[:1], W[:1], np.array(0.5))
    with float64(), jax.ensure_compile_time_eval():  # numbers, also while a caller is traced
        terms = np.asarray(_terms(some, jnp.asarray(U), jnp.asarray(W)))
    K = float(weight @ terms)
    return K, math.sqrt(float(weight @ terms**2) - K**2)


def _draw(case: Mapping[str, Any], rng: np.random.Generator, count: int) -> KernelInstance:
    U, W = (rng.normal(size=(count, case["m"] // 2)) for _ in range(2))
    return KernelInstance(U, W, np.full(count, float(case["delta"])))


def _vary(rng: np.random.Generator) -> dict[str, Any]:
    """Another case: Chebyshev's inequality is nearest to equality for few heads."""
    delta = float(np.exp(rng.uniform(np.log(1e-3), np.log(0.5))))
    return {"m": int(2 * rng.choice([1, 1, 2, 4, 16])), "delta": delta}


def _chebyshev(i: KernelInstance, variant: str) -> Sides:
    K, sd = _limit()
    K_m = jnp.mean(_terms(i, i.U, i.W))
    bound = sd / jnp.sqrt(i.U.shape[0] * i.delta)
    return Sides(jnp.abs(K_m - K), bound, {"K": K, "sd_head": sd, "K_m": K_m})


def _term_naively(num: Arithmetic, U: Any, W: Any) -> Any:
    sigma = activation(num, "sin")
    vectors = []
    for row in SAMPLES:
        x = [num.number(str(entry)) for entry in row]
        unit = naive.head(num, sigma, [[entry] for entry in x], [x[-1]], [U], [[W]])
        vectors.append([unit.h, *unit.gradient])
    return dot(*vectors)


@functools.cache
def _limit_naively() -> tuple[float, float]:
    """The same two numbers by the trapezoidal rule on [-9, 9]^2, which converges as fast."""
    step = 0.2
    mean = square = mass = 0.0
    for k in range(-45, 46):
        for l in range(-45, 46):
            U, W = k * step, l * step
            weight = math.exp(-(U * U + W * W) / 2)
            term = _term_naively(FLOATS, U, W)
            mean, square, mass = mean + weight * term, square + weight * term**2, mass + weight
    K = mean / mass
    return K, math.sqrt(square / mass - K * K)


def _chebyshev_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    K, sd = (quadrature(num, num.number(value)) for value in _limit_naively())
    terms = [_term_naively(num, U, W) for U, W in zip(data["U"], data["W"], strict=True)]
    bound = sd / num.sqrt(len(terms) * data["delta"])
    return abs(num.total(terms) / len(terms) - K), bound


def _count(case: Mapping[str, Any], variant: str, seed: int, repetitions: int) -> int:
    rng = np.random.default_rng(seed)
    exceeded = 0
    for _ in range(repetitions):
        heads = rng.standard_normal((2, case["m"] // 2)).tolist()
        data = {"U": heads[0], "W": heads[1], "delta": float(case["delta"])}
        lhs, rhs = _chebyshev_naive(FLOATS, data, variant)
        exceeded += lhs > rhs
    return exceeded


claim(
    "lemma-4-limit",
    "The empirical kernel tends to K_c + K_u + K_w",
    "Lemma 4, Remark 8",
    "K_m is the mean of m/2 independent head terms with mean K = K_c + K_u + K_w and standard "
    "deviation sd, so |K_m - K| <= sd sqrt(2/(m delta)) with probability 1 - delta. Tested in "
    "d = 1 with sin, where K and sd are integrals.",
    r"\mathbb{P}(|K_m-K|\ge{\rm sd}\sqrt{2/(m\delta)})\le\delta",
    kind=Kind.HIGH_PROBABILITY,
    sides=_chebyshev,
    naive=_chebyshev_naive,
    forms="almost sure limit, with Chebyshev's rate",
    experiment=Experiment(
        cases=({"m": 2, "delta": 0.2}, {"m": 32, "delta": 0.05}),
        draw=_draw,
        sides=_chebyshev,
        exceeds_naively=_count,
        case_problem=lambda case: case_problem(case, whole={"m": 10**5}),
        vary=_vary,
    ),
    where=APPENDIX,
)


def _blocks_naively(num: Arithmetic, data: Data, j: int, l: int) -> Any:
    """K_c + K_u + K_w of Lemma 4 as the mean over heads, with U^T M M' U written out."""
    start = naive.initial(data)
    units = (naive.heads(num, data, index, start) for index in (j, l))
    terms = []
    for U, one, two in zip(start.U, *units, strict=True):
        slopes = one.slope * two.slope
        across = dot(data["q"][j], data["q"][l]) * dot(times(one.M, U), times(two.M, U))
        terms.append(one.h * two.h + slopes * (dot(one.a, two.a) + across))
    return num.total(terms) / len(terms)


def _sections(i: ModelInstance, variant: str) -> Sides:
    """f~(X_j; phi(X_l)) against the blocks of K computed from gradients of f."""
    phi = _features(i)
    g = model.gradients(i, i.initial)
    blocks = (
        jnp.einsum("ji,li->jl", g.c, g.c)
        + jnp.einsum("jik,lik->jl", g.U, g.U)
        + jnp.einsum("jikr,likr->jl", g.W, g.W)
    )
    return Sides(jnp.einsum("jip,lip->jl", phi, phi) / i.m, blocks)


def _sections_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    m, indices = len(data["c0"]), naive.samples(data)
    flats = [flat(_features_naively(num, data, j)) for j in indices]
    right = [_blocks_naively(num, data, j, l) for j in indices for l in indices]
    return [dot(phi, other) / m for phi in flats for other in flats], right


in_class(
    "kernel-sections",
    "K(., X') is a target",
    "Sec. 5.4, after Eq. (9)",
    "The transport map v' = phi(X') gives f~(X; v') = K(X, X') = K_c + K_u + K_w, with the law of "
    "a head replaced by any finite sample of heads with |c| = 1.",
    r"\tilde f(X;\phi(X'))=K(X,X')",
    sides=_sections,
    naive=_sections_naive,
)


def _reproducing(i: ModelInstance, variant: str) -> Sides:
    """E<v, phi(X_j)> as one inner product, and f~(X_j; v) of Eq. (9) through f_lin at phi~."""
    terms = _features(i) * i.transport[None] / i.m
    size = jnp.max(jnp.sum(jnp.abs(terms), axis=(1, 2)))
    f = model.linear_outputs(i, i.transported)
    return Sides(jnp.sum(terms, axis=(1, 2)), f, scale=size)


def _reproducing_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    v, m, start = _transport_naively(data), len(data["c0"]), naive.initial(data)
    left, right = [], []
    for j in naive.samples(data):
        left.append(dot(flat(_features_naively(num, data, j)), flat(v)) / m)
        value = num.number(0)
        for i, unit in enumerate(naive.heads(num, data, j, start)):
            d = len(unit.a)
            MU_q = [x * y for x in times(unit.M, start.U[i]) for y in data["q"][j]]
            value = value + unit.h * v[i][0]
            value = value + unit.slope * (dot(unit.a, v[i][1 : d + 1]) + dot(MU_q, v[i][d + 1 :]))
        right.append(value / m)
    return left, right


in_class(
    "reproducing",
    "The reproducing property",
    "Sec. 5.4, after Eq. (9)",
    "<f~(.; v), K(., X')> = E<v, phi(X')> = f~(X'; v), with the law of a head replaced by any "
    "finite sample of paired heads.",
    r"\langle\tilde f(\cdot;v),K(\cdot,X')\rangle_{\mathcal F}=\tilde f(X';v)",
    sides=_reproducing,
    naive=_reproducing_naive,
)


def _norm(i: ModelInstance, variant: str) -> Sides:
    phi = _features(i)
    y = jnp.einsum("jip,ip->j", phi, i.transport) / i.m
    combined = jnp.einsum("j,jip->ip", i.labels, phi)
    kernel_norm = jnp.sqrt(jnp.sum(combined**2) / i.m + 1e-300)
    return Sides(jnp.abs(i.labels @ y), constants.length(i.nu) * kernel_norm)


def _norm_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    m, w = len(data["c0"]), data["labels"]
    rows = [flat(_features_naively(num, data, j)) for j in naive.samples(data)]
    mixed = [dot(w, column) for column in zip(*rows, strict=True)]
    value = dot(mixed, flat(_transport_naively(data)))
    return abs(value) / m, norm(num, data["nu"]) * num.root(dot(mixed, mixed) / m)


claim(
    "remark-9",
    "Norm of a target in the kernel's space",
    "Eq. (9), Remark 9",
    "A target of the class F_nu has RKHS norm at most |nu|_2. Tested by duality: "
    "|sum_j w_j f~(X_j)| <= |nu| sqrt(w^T K w) for all weights w, with the law of a head replaced "
    "by any finite sample of heads (the argument holds for every law).",
    r"|\textstyle\sum_jw_j\tilde f(X_j)|\le\|\nu\|_2\sqrt{w^\top Kw}",
    sides=_norm,
    naive=_norm_naive,
    families=PAIRS,
    forms={"printed": ("norm as an infimum over transport maps", "E13")},
    hypotheses=(TRANSPORT,),
    where="Sec. 5.4",
)
