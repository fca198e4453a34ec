"""App. C.7 of wu2023: the variant with a residual connection."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np

from ....theory import false
from ....theory.slow import dot, flat, norm
from .. import quantities, twins
from ..constants import state
from ..records import WideNetwork

on_residual = functools.partial(state.claim, on=WideNetwork, proved="App. C.7")


def features(network):
    """tau1 sum_k relu(W_V X^T beta_k + x_k)."""
    room = network.W_V.shape[0] - network.X.shape[-1]
    padded = jnp.pad(network.X, ((0, 0), (0, 0), (0, room)))
    h = quantities.hidden(network, network.theta) + padded
    return network.tau[1] * jnp.sum(jax.nn.relu(h), axis=1)


def slow_features(num, network):
    """The same in slow arithmetic."""
    theta, W_V = twins.theta_of(network), network["W_V"]
    room = [num.number(0)] * (len(W_V) - len(W_V[0]))
    padded = ([[*x, *room] for x in X] for X in network["X"])
    samples = zip(network["X"], padded, strict=True)
    return [twins.sample(num, X, theta, network["tau"], shift).f_pre for X, shift in samples]


@on_residual(
    "residual-lemma-10",
    "Size of the last hidden layer with a residual connection",
    where="App. C.7",
    says=r"\|f_{\rm pre}\|_2\le\tau_1d_s(\|W_V\|_2d_s^{1/2}C_x+C_x)",
    no_rival="the bound is the sum of norms itself",
)
def residual_lemma_10(network, sizes, lam):
    """|f_pre| <= tau1 d_s (||W_V|| sqrt(d_s) C_x + C_x) for every sample: sum_i |x_i| <=
    sqrt(d_s) |X|_F."""
    s, rows = sizes, jnp.linalg.norm(features(network), axis=1)
    return jnp.max(rows), s.tau1 * s.d_s * (lam.V * s.d_s**0.5 * s.C_x + s.C_x)


@residual_lemma_10.twin
def _(num, network, k):
    rhs = network["tau"][1] * k.d_s * k.C_x * (k.lam[2] * num.sqrt(k.d_s) + 1)
    return num.largest([norm(num, row) for row in slow_features(num, network)]), rhs


def small_weights():
    """One token, weights of size 1/10: the residual changes f_pre by 1."""
    weights = dict.fromkeys(("W_Q", "W_K", "W_V"), np.full((1, 1), 0.1))
    data = {"X": np.ones((1, 1, 1)), "y": np.zeros(1), "tau": np.ones(2)}
    return WideNetwork(**data, **weights, w_O=np.array([0.1]))


@on_residual(
    "eq-62",
    "How much the residual connection changes the last hidden layer",
    where="(62)",
    says=r"\|F_{\rm pre}-F_{\rm pre}^*\|_F\le\sqrt N\tau_1d_s\|w_O\|_2\|W_V\|_2C_x",
    forms={
        "printed": false("W_V does not belong there: fails for small values", "E13"),
        "corrected": ("sqrt(N) tau1 d_s C_x without w_O, since relu is 1-Lipschitz", "E13"),
    },
    no_rival="the bound on a difference that does not vanish with the weights",
    tight=lambda: (small_weights(),),
)
def eq_62(network, sizes, lam, form):
    """||F_res - F_pre||_F <= sqrt(N) tau1 d_s |w_O| ||W_V|| C_x, where the print has w_O^T in
    front of both sums: f_pre is a number there, and F_pre a vector."""
    gap = features(network) - quantities.features(network, network.theta)
    rhs = sizes.N**0.5 * sizes.tau1 * sizes.d_s * sizes.C_x
    if form == "printed":
        return jnp.linalg.norm(gap @ network.w_O), rhs * lam.O * lam.V
    return jnp.linalg.norm(jnp.ravel(gap)), rhs


@eq_62.twin
def _(num, network, form, k):
    with_x = slow_features(num, network)
    without = twins.features(num, network, twins.theta_of(network))
    pairs = zip(with_x, without, strict=True)
    gap = [[x - y for x, y in zip(*rows, strict=True)] for rows in pairs]
    rhs = num.sqrt(k.N) * network["tau"][1] * k.d_s * k.C_x
    if form == "printed":
        return norm(num, [dot(row, network["w_O"]) for row in gap]), rhs * k.lam[2] * k.lam[3]
    return norm(num, flat(gap)), rhs
