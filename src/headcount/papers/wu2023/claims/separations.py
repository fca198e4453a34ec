"""Separations of wu2023, App. C.5 and C.6, and the PSD step of C.3."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from ....theory import false
from ....theory.slow import dot, flat, norm
from ....theory.slow_spectrum import outer_gram, smallest_eigenvalue
from .. import quantities, twins
from ..constants import state
from ..records import Network, Values
from .relu_kernels import NOTHING


def alpha2(values, eta, tau1):
    """lambda_min(F F^T) for F = tau1 relu(sqrt(eta) Phi W_V^T)."""
    F = tau1 * jax.nn.relu(eta**0.5 * values.Phi @ values.W_V.T)
    return jnp.linalg.svd(F, compute_uv=False)[-1] ** 2


@state.claim(
    "separation-initialisation",
    "LeCun against NTK at the start",
    where="App. C.5",
    on=Values,
    says=r"\alpha^2_{\rm NTK}\le\alpha^2_{\rm LeCun}",
    forms={
        "printed": "the order of alpha^2 where d_m >= d",
        "corrected": ("d_m/d times; the part N/d of the bound is that of Lemma 17", "E18"),
    },
    no_rival=NOTHING,
)
def separation_initialisation(values, form):
    """alpha^2 is larger for LeCun than for NTK, for the same attention and the same normals, where
    d_m >= d. Exactly, it is d_m/d times that of NTK (and He twice LeCun). Both sides carry a
    common summand."""
    (d_m, d), common = values.W_V.shape, jnp.sum(jax.nn.relu(values.Phi @ values.W_V.T) ** 2)
    narrow = alpha2(values, 1.0, d_m**-0.5) * (1.0 if form == "printed" else d_m / d)
    return narrow + common, alpha2(values, 1 / d, 1.0) + common


@separation_initialisation.twin
def _(num, values, form):
    Phi, W_V = values["Phi"], values["W_V"]
    d_m, d, one = len(W_V), len(W_V[0]), num.number(1)
    rows = [[num.positive_part(dot(phi, w)) for w in W_V] for phi in Phi]
    common = num.total([x**2 for x in flat(rows)])

    def alpha2_of(scale):
        return smallest_eigenvalue(num, outer_gram([[scale * x for x in row] for row in rows]))

    narrow = alpha2_of(1 / num.sqrt(num.number(d_m))) * (
        one if form == "printed" else one * d_m / d
    )
    return narrow + common, alpha2_of(1 / num.sqrt(num.number(d))) + common


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
    lower=True,
    where="App. C.3, before (47)",
    proved="App. C.3",
    on=Network,
    says=r"\lambda_{\min}(F_{\rm pre}F_{\rm pre}^\top)\ge\lambda_{\min}(\hat F\hat F^\top)",
    forms={
        "printed": false("cross terms of different tokens are not semi-definite", "E16"),
        "corrected": ("Weyl: sigma_min(F_pre) >= sigma_min(F^) - ||F_pre - F^||_F", "E16"),
    },
    tight=lambda: (swapped(),),
    no_rival=NOTHING,
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


@state.claim(
    "separation-scaling",
    "The size of attention for both scalings",
    lower=True,
    where="App. C.6",
    on=Network,
    says=r"\|\beta_{1,k}\|_2^2\ge1/d_s",
    forms={"printed": ("what the heuristic shows; the order of alpha is left open", "E26")},
    no_rival="a sum of squares is known to be positive, and no more",
)
def separation_scaling(network):
    """|beta_i|^2 >= 1/d_s for tau0 = d_m^{-1/2} and for tau0 = d_m^{-1}, its square."""
    weak = network.changed(tau=jnp.stack([network.tau[0] ** 2, network.tau[1]]))
    rows = (quantities.attention(one, one.theta) for one in (network, weak))
    sizes = [jnp.sum(beta**2, axis=-1) for beta in rows]
    return 1 / network.X.shape[1], jnp.min(jnp.stack(sizes))


@separation_scaling.twin
def _(num, network):
    theta, X, tau0 = twins.theta_of(network), network["X"], network["tau"][0]
    rows = [b for t in (tau0, tau0**2) for one in X for b in twins.attention(num, one, theta, t)]
    return num.number(1) / len(X[0]), num.smallest([num.total([p**2 for p in b]) for b in rows])
