"""Lemmas 7, 9 and 10 and Eq. (36) of wu2023: how far attention, features and outputs move."""

from __future__ import annotations

import functools

import jax.numpy as jnp
import numpy as np

from ....theory import false
from ....theory.slow import flat, norm
from ....theory.slow_spectrum import operator_norm
from .. import quantities, twins
from ..constants import state
from ..records import Move

on_moves = functools.partial(state.claim, on=Move, proved="App. C.1")


def logit_drift(move, k):
    """The bound of Lemma 7."""
    return k.logit_drift(quantities.norms(move.step))


def slow_logit_drift(num, move, k):
    """The same in slow arithmetic."""
    return k.logit_drift(*(operator_norm(num, move[name]) for name in ("d_Q", "d_K")))


@on_moves(
    "lemma-7",
    "Drift of the attention weights",
    where="Lemma 7",
    says=r"\|\beta_i^{t'}-\beta_i^t\|_2\le2\tau_0C_x^2d_s(\bar\lambda_Q\|\Delta W_K\|_2"
    r"+\bar\lambda_K\|\Delta W_Q\|_2)",
    forms={
        "printed": "constant 2",
        "sharp": "constant 1/sqrt 2: |J u|_1 <= 1 and the entries of J u sum to zero, so that "
        "|J u|_2^2 <= |J u|_inf |J u|_1 <= 1/2 for |u|_inf <= 1",
    },
    trivial=lambda k: 2**0.5,
)
def lemma_7(move, form, k):
    """|beta_i' - beta_i| <= 2 tau0 S (lamQ ||dW_K|| + lamK ||dW_Q||), S = d_s C_x^2, where the
    lambda-bars bound the norms at both points."""
    # beta'_j - beta_j = sum_k (beta'_j beta_k + beta_j beta'_k) tanh((v_j - v_k)/2) for changes v
    # of the logits: as a difference it would be all rounding for small steps.
    new, old = (quantities.attention(move, theta) for theta in (move.after, move.theta))
    M = move.tau[0] * (move.d_Q.T @ move.after.W_K + move.W_Q.T @ move.d_K)
    v = move.X @ M @ jnp.swapaxes(move.X, -1, -2)
    slopes = jnp.tanh((v[..., :, None] - v[..., None, :]) / 2)
    both = new[..., :, None] * old[..., None, :] + old[..., :, None] * new[..., None, :]
    largest = jnp.max(jnp.linalg.norm(jnp.sum(both * slopes, axis=-1), axis=-1))
    return largest, (1.0 if form == "printed" else 8**-0.5) * logit_drift(move, k)


@lemma_7.twin
def _(num, move, form, k):
    before, (_, after) = twins.theta_of(move), twins.moved(move)
    gaps = []
    for X in move["X"]:
        rows = (twins.attention(num, X, theta, move["tau"][0]) for theta in (before, after))
        for old, new in zip(*rows, strict=True):
            gaps.append(norm(num, [a - b for a, b in zip(new, old, strict=True)]))
    rhs = slow_logit_drift(num, move, k)
    return num.largest(gaps), rhs if form == "printed" else rhs / num.sqrt(num.number(8))


def features_gap(move):
    """||F_pre' - F_pre||_F."""
    both = (quantities.features(move, theta) for theta in (move.after, move.theta))
    return jnp.linalg.norm(jnp.ravel(next(both) - next(both)))


def slow_features_gap(num, move):
    """The same in slow arithmetic."""
    before, (_, after) = twins.theta_of(move), twins.moved(move)
    F, G = (flat(twins.features(num, move, theta)) for theta in (before, after))
    return norm(num, [a - b for a, b in zip(G, F, strict=True)])


@on_moves(
    "lemma-9",
    "Drift of the last hidden layer",
    where="Lemma 9",
    says=r"\|F_{\rm pre}^{t'}-F_{\rm pre}^t\|_F\le\rho(\|\Delta W_V\|_2"
    r"+\bar\lambda_V2\tau_0C_x^2d_s(\bar\lambda_Q\|\Delta W_K\|_2+\bar\lambda_K\|\Delta W_Q\|_2))",
    forms="nearly attained by equal tokens and a move of W_V alone",
    trivial=lambda k: 2 * k.rho * k.lam.V,
    notes=("E12",),
)
def lemma_9(move, k):
    """||F_pre' - F_pre||_F <= rho (||dW_V|| + lamV 2 tau0 S (lamQ ||dW_K|| + lamK ||dW_Q||))."""
    values = quantities.spectral(move.d_V)
    return features_gap(move), k.rho * (values + k.lam.V * logit_drift(move, k))


@lemma_9.twin
def _(num, move, k):
    drift = operator_norm(num, move["d_V"]) + k.lam[2] * slow_logit_drift(num, move, k)
    return slow_features_gap(num, move), k.rho * drift


def outputs_gap(move):
    """|f' - f|."""
    both = (quantities.outputs(move, theta) for theta in (move.after, move.theta))
    return jnp.linalg.norm(next(both) - next(both))


def slow_outputs_gap(num, move):
    """The same in slow arithmetic."""
    before, (_, after) = twins.theta_of(move), twins.moved(move)
    f, g = ([one.f for one in twins.samples(num, move, theta)] for theta in (before, after))
    return norm(num, [a - b for a, b in zip(g, f, strict=True)])


@on_moves(
    "lemma-10",
    "Drift of the outputs",
    where="Lemma 10",
    says=r"\|f^{t'}-f^t\|_2\le\rho\bar\lambda_V\|\Delta w_O\|_2"
    r"+\bar\lambda_O\|F_{\rm pre}^{t'}-F_{\rm pre}^t\|_2",
    forms="tight",
    trivial=lambda k: 2 * k.rho * k.lam.V * k.lam.O,
)
def lemma_10(move, k):
    """|f' - f| <= rho lamV |dw_O| + lamO ||F_pre' - F_pre||_F."""
    rhs = k.rho * k.lam.V * jnp.linalg.norm(move.d_O) + k.lam.O * features_gap(move)
    return outputs_gap(move), rhs


@lemma_10.twin
def _(num, move, k):
    rhs = k.rho * k.lam[2] * norm(num, move["d_O"]) + k.lam[3] * slow_features_gap(num, move)
    return slow_outputs_gap(num, move), rhs


def large_output_weight(w_O=20.0):
    """Erratum E8: two scalar tokens, w_O = 20, and a key that leaves zero."""
    one = np.ones((1, 1))
    return Move(
        X=np.array([[[0.9856], [-0.1692]]]),
        y=np.zeros(1),
        W_Q=1e4 * one,
        W_K=0.0 * one,
        W_V=one,
        w_O=np.array([w_O]),
        d_Q=0.0 * one,
        d_K=1e-6 * one,
        d_V=0.0 * one,
        d_O=np.zeros(1),
        tau=np.ones(2),
    )


@on_moves(
    "eq-36",
    "Lipschitz constant c1 of the outputs",
    where="(36)",
    proved="App. C.2",
    says=r"\|f^{t'}-f^t\|_2\le c_1\|\theta^{t'}-\theta^t\|_2",
    forms={
        "printed": false("lamO is missing in the attention term: fails for |w_O| > 14.7", "E8"),
        "corrected": ("c1 = rho (lamV + lamO (1 + lamV z))", "E8"),
    },
    tight=lambda: (large_output_weight(), large_output_weight(1.0)),
    trivial=lambda k: 2 * k.rho * k.lam.V * k.lam.O,
)
def eq_36(move, k):
    """|f' - f| <= c1 |theta' - theta| with c1 = rho (lamV + lamO + lamV z), z = 2 tau0 S
    (lamQ + lamK)."""
    return outputs_gap(move), k.c1 * quantities.length(move.step)


@eq_36.twin
def _(num, move, k):
    return slow_outputs_gap(num, move), k.c1 * norm(num, twins.moved(move)[0].flat())
