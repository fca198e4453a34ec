"""Separations of wu2023, App. C.5 and C.6, the step behind Theorem 2, and the PSD step of C.3."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np

from ....theory import false
from ....theory.slow import dot, flat, norm
from ....theory.slow_spectrum import outer_gram, smallest_eigenvalue
from .. import quantities, twins
from ..constants import state
from ..records import Network, Values

on_values = functools.partial(state.claim, on=Values)


def alpha2(values, copies, eta, tau1):
    """lambda_min(F F^T) for F = tau1 relu(sqrt(eta) Phi W_V^T) with every unit copied."""
    W = jnp.concatenate([values.W_V] * copies)
    F = tau1 * jax.nn.relu(eta**0.5 * values.Phi @ W.T)
    return jnp.linalg.svd(F, compute_uv=False)[-1] ** 2


def slow_alpha2(num, values, copies, eta, tau1):
    """The same in slow arithmetic."""
    rows = [
        [tau1 * num.root(eta) * num.positive_part(dot(phi, w)) for w in values["W_V"]] * copies
        for phi in values["Phi"]
    ]
    return smallest_eigenvalue(num, outer_gram(rows))


def common(values):
    """A summand of both sides."""
    return jnp.sum(jax.nn.relu(values.Phi @ values.W_V.T) ** 2)


def slow_common(num, values):
    """The same in slow arithmetic."""
    pairs = ((phi, w) for phi in values["Phi"] for w in values["W_V"])
    return num.total([num.positive_part(dot(phi, w)) ** 2 for phi, w in pairs])


def one_unit(d=1):
    """One sample, one unit, everything 1."""
    return Values(Phi=np.ones((1, d)), W_V=np.ones((1, d)))


@on_values(
    "theorem-2-step",
    "alpha^2 at the NTK initialisation",
    where="Theorem 2, (60), (61)",
    proved="App. C.4",
    says=r"\alpha^2\ge d_m\lambda_0/4",
    forms={
        "printed": false("alpha^2 of order d_m", "E15"),
        "corrected": ("alpha^2 does not depend on the number of copies", "E15"),
    },
    notes=("E2",),
    tight=lambda: (one_unit(),),
)
def theorem_2_step(values, form):
    """alpha^2 grows with the width like d_m lambda_0/4: with four copies of every unit it is four
    times as large. tau1^2 = 1/d_m is forgotten: alpha^2 stays exactly the same. Both sides
    carry a common summand."""
    d_m, both = values.W_V.shape[0], common(values)
    one, four = (alpha2(values, copies, 1.0, (copies * d_m) ** -0.5) for copies in (1, 4))
    return (4.0 if form == "printed" else 1.0) * one + both, four + both


@theorem_2_step.twin
def _(num, values, form):
    d_m, unit, both = len(values["W_V"]), num.number(1), slow_common(num, values)
    one, four = (
        slow_alpha2(num, values, copies, unit, 1 / num.sqrt(num.number(copies * d_m)))
        for copies in (1, 4)
    )
    return (4 if form == "printed" else 1) * one + both, four + both


@on_values(
    "separation-initialisation",
    "LeCun against NTK at the start",
    where="App. C.5",
    says=r"\alpha^2_{\rm LeCun}=\frac{d_m}d\alpha^2_{\rm NTK}",
    forms={
        "printed": false("at every width; the part N/d of the bound is that of Lemma 17", "E18"),
        "corrected": ("d_m/d times", "E18"),
    },
    tight=lambda: (one_unit(3),),
)
def separation_initialisation(values, form):
    """alpha^2 is larger for LeCun than for NTK, for the same attention and the same normals.
    Exactly, it is d_m/d times that of NTK (and He twice LeCun), so the order reverses for
    d_m < d. Both sides carry a common summand."""
    (d_m, d), both = values.W_V.shape, common(values)
    narrow = alpha2(values, 1, 1.0, d_m**-0.5) * (1.0 if form == "printed" else d_m / d)
    return narrow + both, alpha2(values, 1, 1 / d, 1.0) + both


@separation_initialisation.twin
def _(num, values, form):
    d_m, d = len(values["W_V"]), len(values["W_V"][0])
    one, both = num.number(1), slow_common(num, values)
    wide = slow_alpha2(num, values, 1, one / d, one)
    narrow = slow_alpha2(num, values, 1, one, 1 / num.sqrt(num.number(d_m)))
    return narrow * (one if form == "printed" else one * d_m / d) + both, wide + both


def swapped():
    """Erratum E16: the second sample has the first one's tokens in the other order."""
    eye, wide = np.eye(2), np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    return Network(
        X=np.stack([eye, eye[::-1]]),
        y=np.zeros(2),
        W_Q=2.0 * wide,
        W_K=2.0 * wide,
        W_V=np.array([[1.0, 0.0], [0.0, 1.0], [1.0, -1.0]]),
        w_O=np.ones(3),
        tau=np.ones(2),
    )


@state.claim(
    "sum-of-psd",
    "The first token's features against all of them",
    where="App. C.3, before (47)",
    proved="App. C.3",
    on=Network,
    says=r"\lambda_{\min}(F_{\rm pre}F_{\rm pre}^\top)\ge\lambda_{\min}(\hat F\hat F^\top)",
    forms={
        "printed": false("cross terms of different tokens are not semi-definite", "E16"),
        "corrected": ("Weyl: sigma_min(F_pre) >= sigma_min(F^) - ||F_pre - F^||_F", "E16"),
    },
    tight=lambda: (swapped(),),
)
def sum_of_psd(network, form):
    """F_pre F_pre^T is a sum of positive semi-definite matrices, so that lambda_min(F_pre F_pre^T)
    >= lambda_min(F^ F^^T) for the part F^ of the first token. Both sides carry a common summand."""
    h = network.tau[1] * jax.nn.relu(quantities.hidden(network, network.theta))
    F, first, both = jnp.sum(h, axis=1), h[:, 0], jnp.sum(h**2)
    low, high = (jnp.linalg.eigvalsh(A @ A.T)[0] for A in (first, F))
    if form == "printed":
        return low + both, high + both
    low, high = (jnp.sqrt(jnp.maximum(value, 0.0)) for value in (low, high))
    away, root = jnp.linalg.norm(jnp.ravel(F - first)), jnp.sqrt(both)
    return low - away + root, high + root


@sum_of_psd.twin
def _(num, network, form):
    theta, tau1, zero = twins.theta_of(network), network["tau"][1], num.number(0)
    first, squares = [], []
    for one in twins.samples(num, network, theta):
        h = [
            [tau1 * dot(w, phi) if on else zero for w, on in zip(theta.W_V, row, strict=True)]
            for phi, row in zip(one.phi, one.on, strict=True)
        ]
        first.append(h[0])
        squares += flat(h)
    F, both = twins.features(num, network, theta), num.total([x**2 for x in squares])
    low, high = (smallest_eigenvalue(num, outer_gram(A)) for A in (first, F))
    if form == "printed":
        return low + both, high + both
    away = norm(num, [x - y for x, y in zip(flat(F), flat(first), strict=True)])
    return num.root(low) - away + num.root(both), num.root(high) + num.root(both)


def sharp_attention():
    """Erratum E26: d_m = 4; sharper attention prefers the token that no unit likes."""
    return Network(
        X=np.array([[[1.0, 1.0], [1.0, -2.0]]]),
        y=np.zeros(1),
        W_Q=np.tile([0.2, 0.0], (4, 1)),
        W_K=np.tile([0.0, 1.0], (4, 1)),
        W_V=np.tile([0.0, -1.0], (4, 1)),
        w_O=np.ones(4),
        tau=np.array([0.5, 1.0]),
    )


@state.claim(
    "separation-scaling",
    "tau0 = d_m^{-1/2} against d_m^{-1}",
    where="App. C.6",
    on=Network,
    says=r"\alpha^2(d_m^{-1/2})\ge\alpha^2(d_m^{-1})",
    forms={
        "printed": false("the order of alpha at the start", "E26"),
        "corrected": ("what the argument shows: |beta_i|^2 >= 1/d_s for both scalings", "E26"),
    },
    tight=lambda: (sharp_attention(),),
)
def separation_scaling(network, form):
    """alpha^2 is at least as large for tau0 = d_m^{-1/2} as for tau0 = d_m^{-1}, the square;
    1/d_s bounds |beta|^2 from below for both. Both sides of the first carry a common summand."""
    # tau[0] is d_m^{-1/2}; the other scaling is its square.
    weak = network.changed(tau=jnp.stack([network.tau[0] ** 2, network.tau[1]]))
    if form == "corrected":
        rows = (quantities.attention(one, one.theta) for one in (network, weak))
        sizes = [jnp.sum(beta**2, axis=-1) for beta in rows]
        return 1 / network.X.shape[1], jnp.min(jnp.stack(sizes))
    F, G = (quantities.features(one, one.theta) for one in (network, weak))
    strong, other = (jnp.linalg.eigvalsh(A @ A.T)[0] for A in (F, G))
    both = jnp.sum(F**2) + jnp.sum(G**2)
    return other + both, strong + both


@separation_scaling.twin
def _(num, network, form):
    weak = {**network, "tau": [network["tau"][0] ** 2, network["tau"][1]]}
    theta, X = twins.theta_of(network), network["X"]
    if form == "corrected":
        scales = (network["tau"][0], weak["tau"][0])
        rows = [b for t in scales for one in X for b in twins.attention(num, one, theta, t)]
        sizes = [num.total([p**2 for p in row]) for row in rows]
        return num.number(1) / len(X[0]), num.smallest(sizes)
    F, G = (twins.features(num, one, theta) for one in (network, weak))
    strong, other = (smallest_eigenvalue(num, outer_gram(A)) for A in (F, G))
    both = num.total([x**2 for x in [*flat(F), *flat(G)]])
    return other + both, strong + both
