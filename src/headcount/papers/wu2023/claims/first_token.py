"""Lemma 16 and Eq. (48) of wu2023: the features of the first token, by frequency."""

from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

from ....theory import Sides, false
from ....theory.domain import case_problem
from ....theory.slow import dot, flat, norm
from ....theory.slow_spectrum import outer_gram, smallest_eigenvalue
from ..constants import state
from ..records import FirstToken
from ..twins import Theta, attention, mixed, sample
from .relu_kernels import NOTHING, lowest, lowest_of_relu, slow_lowest_of_relu


def tokens_of(case):
    """Data fixed before the start: entry k is sin(7 (1 + k)), every token a unit vector."""
    shape = (case["N"], case["T"], case["d"])
    X = np.sin(7.0 * (1 + np.arange(math.prod(shape)))).reshape(shape)
    return X / np.linalg.norm(X, axis=-1, keepdims=True)


def draw(case, rng, count):
    """NTK weights; tau0 = 1/d_m; tau1 = d_m^{-1/2} ("ntk") or 1 ("one")."""
    X, d_m = tokens_of(case), case["d_m"]
    W_Q, W_K, W_V = rng.normal(size=(3, count, d_m, case["d"]))
    tau = np.array([1 / d_m, d_m**-0.5 if case["tau1"] == "ntk" else 1.0])
    return FirstToken(
        X=np.broadcast_to(X, (count, *X.shape)),
        W_Q=W_Q,
        W_K=W_K,
        W_V=W_V,
        tau=np.broadcast_to(tau, (count, 2)),
        delta=np.full(count, float(case["delta"])),
    )


first_token_problem = functools.partial(
    case_problem,
    whole={"N": 50, "T": 20, "d": 50, "d_m": 5000},
    choices={"tau1": ("ntk", "one")},
)
on_first_tokens = functools.partial(
    state.probability, on=FirstToken, draw=draw, problem=first_token_problem
)
SMALL = {"N": 2, "T": 2, "d": 3, "d_m": 40, "tau1": "ntk", "delta": 0.05}
BEYOND = {**SMALL, "d_m": 400}
"""N/lambda_0 is about 28 here."""


def slow_Phi(num, point):
    """What the first token attends to."""
    theta = Theta(point["W_Q"], point["W_K"], point["W_V"], [])
    return [mixed(attention(num, X, theta, point["tau"][0])[0], X) for X in point["X"]]


@on_first_tokens(
    "eq-48",
    "The first token's features by matrix Chernoff",
    lower=True,
    where="(48), (49), (54), (60)",
    proved="App. C.3 and C.4",
    says=r"\lambda_{\min}(\hat F_{\rm pre}\hat F_{\rm pre}^\top)\ge d_m\lambda_0/4",
    forms={
        "printed": ("for tau1 = 1, where App. C.3 has it; elsewhere times tau1^2", "E15"),
        "reused": false("App. C.4 takes it for the NTK initialisation, tau1^2 = 1/d_m", "E15"),
    },
    no_rival=NOTHING,
    cases=(BEYOND, {**SMALL, "N": 3, "d_m": 200, "tau1": "one"}),
)
def eq_48(Phi, W_V, tau, form):
    """lambda_min(F^ F^^T) >= tau1^2 d_m lambda_0/4 with probability at least 1 - delta once d_m is
    of order N/lambda_0 up to logarithms, F^ = tau1 relu(Phi W_V^T). Tested with d_m beyond
    N/lambda_0."""
    F = tau[1] * jax.nn.relu(Phi @ W_V.T)
    scale = 1.0 if form == "reused" else tau[1] ** 2
    return scale * W_V.shape[0] * lowest_of_relu(Phi) / 4, jnp.linalg.eigvalsh(F @ F.T)[0]


@eq_48.twin
def _(num, point, W_V, tau, form):
    Phi = slow_Phi(num, point)
    F = [[tau[1] * num.positive_part(dot(row, w)) for w in W_V] for row in Phi]
    scale = num.number(1) if form == "reused" else tau[1] ** 2
    bound = scale * len(W_V) * slow_lowest_of_relu(num, Phi) / 4
    return bound, smallest_eigenvalue(num, outer_gram(F))


@on_first_tokens(
    "theorem-2-step",
    "alpha^2 at the NTK initialisation",
    lower=True,
    where="Theorem 2, (60), (61)",
    proved="App. C.4",
    says=r"\alpha^2\ge d_m\lambda_0/4",
    forms={
        "printed": false("alpha^2 of order d_m: tau1^2 = 1/d_m is forgotten", "E15"),
        "corrected": ("alpha^2 >= lambda_0/4, which does not grow with the width", "E15"),
    },
    no_rival=NOTHING,
    notes=("E2", "E16"),
    cases=(BEYOND,),
)
def theorem_2_step(Phi, F_pre, form):
    """alpha^2 = lambda_min(F_pre F_pre^T) >= d_m lambda_0/4 at the NTK initialisation, through
    which (57) and (58) become (60) and (61), once d_m is of order N/lambda_0 up to logarithms."""
    width = F_pre.shape[1] if form == "printed" else 1
    return width * lowest_of_relu(Phi) / 4, jnp.linalg.eigvalsh(F_pre @ F_pre.T)[0]


@theorem_2_step.twin
def _(num, point, X, W_V, tau, form):
    theta = Theta(point["W_Q"], point["W_K"], W_V, [num.number(0)] * len(W_V))
    F = [sample(num, one, theta, tau).f_pre for one in X]
    width = len(W_V) if form == "printed" else 1
    bound = width * slow_lowest_of_relu(num, slow_Phi(num, point)) / 4
    return bound, smallest_eigenvalue(num, outer_gram(F))


@on_first_tokens(
    "lemma-16",
    "Attention is nearly uniform for tau0 = 1/d_m",
    where="Lemma 16, (65)-(68)",
    proved="App. D.2",
    says=r"\|\Phi\Phi^\top-\Phi^*\Phi^{*\top}\|_F\le8N\tau_0\eta_{QK}C_x^4d_sd"
    r"\sqrt{d_m\log(2d^2N^2/\delta)}",
    forms={
        "printed": ("with d_s, as printed; not refuted, it is far from tight", "E24"),
        "corrected": ("with d_s^2, as the chain gives it", "E24"),
    },
    cases=(SMALL, {**SMALL, "N": 3, "T": 3, "d": 2}),
)
def lemma_16(X, Phi, W_Q, tau, delta, form):
    """||Phi Phi^T - Phi* Phi*^T||_F <= 8 N tau0 eta_QK C_x^4 d_s d sqrt(d_m log(2 d^2 N^2/delta))
    with probability at least 1 - delta, for d_m >= 2 log(2 d^2 N^2/delta); the chain gives
    d_s^2."""
    (N, T, d), mean = X.shape, jnp.mean(X, axis=1)
    C_x2 = jnp.max(jnp.sum(X**2, axis=(1, 2))) / T
    log = jnp.log(2 * d**2 * N**2 / delta)
    tokens = T if form == "printed" else T**2
    rhs = 8 * N * tau[0] * C_x2**2 * tokens * d * jnp.sqrt(W_Q.shape[0] * log)
    here, limit = Phi @ Phi.T, mean @ mean.T
    apart, *sizes = (jnp.linalg.norm(jnp.ravel(A)) for A in (here - limit, here, limit))
    return Sides(apart, rhs, trivial=sum(sizes))


@lemma_16.twin
def _(num, point, X, W_Q, tau, delta, form):
    N, T, d = len(X), len(X[0]), len(X[0][0])
    uniform = [num.number(1) / T] * T
    rows = slow_Phi(num, point), [mixed(uniform, one) for one in X]
    here, there = (flat(outer_gram(Phi)) for Phi in rows)
    gap = norm(num, [a - b for a, b in zip(here, there, strict=True)])
    C_x2 = num.largest([num.total([x**2 for x in flat(one)]) for one in X]) / T
    log = num.log(2 * d * d * N * N / delta)
    tokens = T if form == "printed" else T * T
    return gap, 8 * N * tau[0] * C_x2**2 * tokens * d * num.sqrt(len(W_Q) * log)


def wide_enough(case):
    """Why a case is not the lemma's: N <= d, and d_m at least what it asks for."""
    reason = first_token_problem(case)
    if reason is not None:
        return reason
    mean = np.mean(tokens_of(case), axis=1)
    smallest = float(np.linalg.eigvalsh(mean @ mean.T)[0])
    log = math.log(2 * case["d"] ** 2 * case["N"] ** 2 / case["delta"])
    needed = case["N"] ** 2 * math.sqrt(log) / smallest**2 if smallest > 1e-9 else math.inf
    return None if case["d_m"] >= needed else f"d_m is below {needed:.3g}"


@on_first_tokens(
    "lemma-16-eigenvalue",
    "The attended tokens keep three quarters of the limit's smallest eigenvalue",
    lower=True,
    where="Lemma 16",
    proved="App. D.2",
    says=r"\lambda_{\min}(\Phi\Phi^\top)\ge\tfrac34\lambda_*",
    forms={"printed": ("the constant that Omega hides is taken as 1", "E24")},
    no_rival=NOTHING,
    cases=({**SMALL, "d": 8, "d_m": 60},),
    problem=wide_enough,
)
def lemma_16_eigenvalue(X, Phi):
    """lambda_min(Phi Phi^T) >= (3/4) lambda_* with probability at least 1 - delta, once
    d_m >= N^2 sqrt(log(2 d^2 N^2/delta))/lambda_*^2, lambda_* = lambda_min(Phi* Phi*^T)."""
    mean = jnp.mean(X, axis=1)
    return 0.75 * lowest(mean @ mean.T), lowest(Phi @ Phi.T)


@lemma_16_eigenvalue.twin
def _(num, point, X):
    uniform = [num.number(1) / len(X[0])] * len(X[0])
    star = smallest_eigenvalue(num, outer_gram([mixed(uniform, one) for one in X]))
    return star * 3 / 4, smallest_eigenvalue(num, outer_gram(slow_Phi(num, point)))
