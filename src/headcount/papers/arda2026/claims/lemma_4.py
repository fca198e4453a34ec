"""Lemma 4, Remarks 8-9 and Sec. 5.4 of arda2026: the tangent kernel and its function class."""

from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ....core import Array, float64
from ....theory import Fraction, Reals, Record, Sides, false
from ....theory.domain import case_problem
from ....theory.slow import FLOATS, activation, dot, flat, norm, quadrature
from .. import quantities, twins
from ..constants import length, state
from ..records import Near
from .lemma_3 import START

PAIRS = (
    {"n": 2, "d": 2, "T": 3, "m": 4},
    {"n": 2, "d": 1, "T": 2, "m": 2, "activation": "sin"},
    {"n": 3, "d": 3, "T": 4, "m": 2, "activation": "erf"},
)


def features(i):
    """phi of every sample and head at the start."""
    return quantities.features(i, i.U0, i.W0)


def features_slowly(num, data, j):
    """(phi_c, phi_u, vec phi_w) of every head at phi0, for sample j."""
    return [[unit.h, *unit.gradient] for unit in twins.heads(num, data, j, twins.initial(data))]


def transport_slowly(data):
    """(v_c, v_u, vec v_w) of every head."""
    nu = data["nu"]
    return [
        [nu[0] * vc, *(nu[1] * x for x in vu), *(nu[2] * x for x in flat(vw))]
        for vc, vu, vw in zip(data["vc"], data["vu"], data["vw"], strict=True)
    ]


in_class = functools.partial(state.identity, on=Near, shapes=PAIRS, asks=START, proved="Sec. 5.4")


@in_class(
    "lemma-4",
    "Blocks of the empirical tangent kernel",
    where="App. A.5, proof of Lemma 4",
    proved="App. A.5",
    says=r"K_m(X,X')=\tfrac2m\sum_{i\le m/2}\langle\phi(X),\phi(X')\rangle",
    forms={
        "display": false(
            "the first display: a second 1/m before gradients that already carry m^(-1/2)", "E12"
        ),
        "printed": ("the lines that follow it: one factor 1/m", "E12"),
    },
)
def lemma_4(i, form):
    """At a paired start K_m(X, X') is 2/m times the sum over m/2 heads of phi_c phi_c' +
    <phi_u, phi_u'> + <phi_w, phi_w'>."""
    g = jnp.reshape(quantities.flat_blocks(quantities.gradients(i, i.initial)), (i.n, -1))
    phi = features(i)[:, : i.m // 2]
    blocks = 2 / i.m * jnp.einsum("jip,lip->jl", phi, phi)
    return g @ g.T, blocks / i.m if form == "display" else blocks


@lemma_4.twin
def _(num, data, form):
    m, start = len(data["c0"]), twins.initial(data)
    slopes = [flat(twins.gradients(num, data, j, start)) for j in twins.samples(data)]
    halves = [flat(features_slowly(num, data, j)[: m // 2]) for j in twins.samples(data)]
    factor = num.number(2) / m / (m if form == "display" else 1)
    right = [factor * dot(phi, other) for phi in halves for other in halves]
    return [dot(g, other) for g in slopes for other in slopes], right


SAMPLES = ((1.0, -0.7, 0.4), (-0.3, 0.9, -0.6))
"""Two inputs with d = 1 and T = 3, the last token being the query."""


class Kernel(Record):
    """Half a start in one feature, and delta; two inputs of three tokens, sigma = sin."""

    U = Reals("half")
    W = Reals("half")
    delta = Fraction()

    activation = "sin"

    @property
    def X(self) -> Float[Array, "2 T 1"]:
        """The two inputs."""
        return jnp.asarray(SAMPLES)[..., None]

    @property
    def q(self) -> Float[Array, "2 1"]:
        """Their last tokens."""
        return self.X[:, -1]


def terms(i, U, W):
    """Every head's term <phi(X), phi(X')>."""
    first, second = quantities.features(i, U[:, None], W[:, None, None])
    return jnp.sum(first * second, axis=-1)


@functools.cache
def limit():
    """K(X, X') and the standard deviation of one head's term, by Gauss-Hermite rules in (U, W)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weight = np.outer(weights, weights).ravel() / np.sum(weights) ** 2
    U, W = (grid.ravel() for grid in np.meshgrid(nodes, nodes, indexing="ij"))
    some = Kernel(U=U[:1], W=W[:1], delta=np.array(0.5))
    with float64(), jax.ensure_compile_time_eval():  # numbers, also while a caller is traced
        values = np.asarray(terms(some, jnp.asarray(U), jnp.asarray(W)))
    K = float(weight @ values)
    return K, math.sqrt(float(weight @ values**2) - K**2)


def term_slowly(num, U, W):
    """The same term of one head."""
    sigma = activation(num, "sin")
    vectors = []
    for row in SAMPLES:
        x = [num.number(str(entry)) for entry in row]
        unit = twins.head(num, sigma, [[entry] for entry in x], [x[-1]], [U], [[W]])
        vectors.append([unit.h, *unit.gradient])
    return dot(*vectors)


@functools.cache
def limit_slowly():
    """The same two numbers by the trapezoidal rule on [-9, 9]^2, which converges as fast."""
    step = 0.2
    mean = square = mass = 0.0
    for k in range(-45, 46):
        for l in range(-45, 46):
            U, W = k * step, l * step
            weight = math.exp(-(U * U + W * W) / 2)
            term = term_slowly(FLOATS, U, W)
            mean, square, mass = mean + weight * term, square + weight * term**2, mass + weight
    K = mean / mass
    return K, math.sqrt(square / mass - K * K)


def draw_heads(case, rng, count):
    """Half starts."""
    U, W = (rng.normal(size=(count, case["m"] // 2)) for _ in range(2))
    return Kernel(U=U, W=W, delta=np.full(count, float(case["delta"])))


def vary(rng):
    """Another case: Chebyshev's inequality is nearest to equality for few heads."""
    delta = float(np.exp(rng.uniform(np.log(1e-3), np.log(0.5))))
    return {"m": int(2 * rng.choice([1, 1, 2, 4, 16])), "delta": delta}


@state.probability(
    "lemma-4-limit",
    "The empirical kernel tends to K_c + K_u + K_w",
    where="Lemma 4, Remark 8",
    proved="App. A.5",
    on=Kernel,
    says=r"\mathbb{P}(|K_m-K|\ge{\rm sd}\sqrt{2/(m\delta)})\le\delta",
    forms="the limit as printed; its rate, Chebyshev's, is ours",
    no_rival="a mean of unbounded terms",
    cases=({"m": 2, "delta": 0.2}, {"m": 32, "delta": 0.05}),
    draw=draw_heads,
    problem=lambda case: case_problem(case, whole={"m": 10**5}),
    vary=vary,
)
def lemma_4_limit(i):
    """K_m is the mean of m/2 independent head terms with mean K = K_c + K_u + K_w and standard
    deviation sd, so |K_m - K| <= sd sqrt(2/(m delta)) with probability 1 - delta. Tested in d = 1
    with sin, where K and sd are integrals."""
    K, sd = limit()
    return jnp.abs(jnp.mean(terms(i, i.U, i.W)) - K), sd / jnp.sqrt(i.U.shape[0] * i.delta)


@lemma_4_limit.twin
def _(num, U, W, delta):
    K, sd = (quadrature(num, num.number(value)) for value in limit_slowly())
    values = [term_slowly(num, u, w) for u, w in zip(U, W, strict=True)]
    return abs(num.total(values) / len(values) - K), sd / num.sqrt(len(values) * delta)


@in_class(
    "kernel-sections",
    "K(., X') is a target",
    where="Sec. 5.4, after Eq. (9)",
    says=r"\tilde f(X;\phi(X'))=K(X,X')",
)
def kernel_sections(i):
    """The transport map v' = phi(X') gives f~(X; v') = K(X, X') = K_c + K_u + K_w, with the law of
    a head replaced by any finite sample of heads with |c| = 1."""
    phi, g = features(i), quantities.gradients(i, i.initial)
    blocks = (
        jnp.einsum("ji,li->jl", g.c, g.c)
        + jnp.einsum("jik,lik->jl", g.U, g.U)
        + jnp.einsum("jikr,likr->jl", g.W, g.W)
    )
    return jnp.einsum("jip,lip->jl", phi, phi) / i.m, blocks


@in_class(
    "reproducing",
    "The reproducing property",
    where="Sec. 5.4, after Eq. (9)",
    says=r"\langle\tilde f(\cdot;v),K(\cdot,X')\rangle_{\mathcal F}=\tilde f(X';v)",
)
def reproducing(i):
    """<f~(.; v), K(., X')> = E<v, phi(X')> = f~(X'; v), with the law of a head replaced by any
    finite sample of paired heads."""
    # E<v, phi(X_j)> as one inner product, and f~(X_j; v) of Eq. (9) through f_lin at phi~.
    parts = features(i) * i.transport[None] / i.m
    size = jnp.max(jnp.sum(jnp.abs(parts), axis=(1, 2)))
    f = quantities.linear_outputs(i, i.transported)
    return Sides(jnp.sum(parts, axis=(1, 2)), f, scale=size)


@state.claim(
    "remark-9",
    "Norm of a target in the kernel's space",
    where="Eq. (9), Remark 9",
    proved="Sec. 5.4",
    on=Near,
    shapes=PAIRS,
    asks=("vc", "vu", "vw"),
    says=r"|\textstyle\sum_jw_j\tilde f(X_j)|\le\|\nu\|_2\sqrt{w^\top Kw}",
    no_rival="a duality of one norm with itself",
    forms={"printed": ("norm as an infimum over transport maps", "E13")},
)
def remark_9(i):
    """A target of the class F_nu has RKHS norm at most |nu|_2. Tested by duality:
    |sum_j w_j f~(X_j)| <= |nu| sqrt(w^T K w) for all weights w, with the law of a head replaced by
    any finite sample of heads (the argument holds for every law)."""
    phi = features(i)
    y = jnp.einsum("jip,ip->j", phi, i.transport) / i.m
    combined = jnp.einsum("j,jip->ip", i.labels, phi)
    kernel_norm = jnp.sqrt(jnp.sum(combined**2) / i.m + 1e-300)
    return jnp.abs(i.labels @ y), length(i.nu) * kernel_norm


@remark_9.twin
def _(num, data):
    m, w = len(data["c0"]), data["labels"]
    rows = [flat(features_slowly(num, data, j)) for j in twins.samples(data)]
    mixed = [dot(w, column) for column in zip(*rows, strict=True)]
    value = dot(mixed, flat(transport_slowly(data)))
    return abs(value) / m, norm(num, data["nu"]) * num.root(dot(mixed, mixed) / m)
