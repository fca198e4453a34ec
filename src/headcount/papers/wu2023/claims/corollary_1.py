"""Corollary 1 of wu2023: a vector fed as one token, or as tokens of one feature."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp

from ....theory import Sides
from .. import quantities
from ..constants import state
from ..records import OneToken, ScalarTokens

equal = functools.partial(state.identity, proved="Sec. 4.4")


@equal(
    "corollary-1-scalars",
    "Tokens of one feature: two directions are all there is",
    where="Corollary 1",
    on=ScalarTokens,
    says=r"F_{\rm pre}=\tau_1(pq^\top+p'q'^\top)",
    forms="rank(F_pre) <= 2: stronger than `the conditions do not hold`",
)
def two_directions(network):
    """For d = 1, F_pre = tau1 (p q^T + p' q'^T) with p = sum_i relu(m_i), p' = sum_i relu(-m_i),
    q = relu(w_V), q' = relu(-w_V): rank at most 2 at every width, so alpha = 0 and (2), (3) fail
    for N >= 3. f then depends on theta through three numbers, and the tangent kernel has rank at
    most 3."""
    X, w, tau1 = network.X, network.W_V[:, 0], network.tau[1]
    mean = jnp.einsum("nts,ns->nt", quantities.attention(network, network.theta), X[..., 0])
    up, down = (jnp.sum(jax.nn.relu(sign * mean), axis=1) for sign in (1, -1))
    pieces = jnp.outer(up, jax.nn.relu(w)) + jnp.outer(down, jax.nn.relu(-w))
    scale = jnp.max(jnp.abs(X)) * jnp.max(jnp.abs(w)) * tau1
    return Sides(quantities.features(network, network.theta), tau1 * pieces, scale=scale)


@equal(
    "corollary-1-vector",
    "One token: a two-layer network",
    where="Corollary 1, Sec. 5.1",
    on=OneToken,
    says=r"f(x)=\tau_1w_O^\top\sigma_r(W_Vx)",
    forms="the same network, not a similar one",
)
def two_layers(network):
    """For d_s = 1 attention is 1 and f = tau1 w_O . relu(W_V x), exactly: W_Q and W_K have gradient
    zero and training is that of the two-layer network, step for step."""
    units = network.tau[1] * jax.nn.relu(network.X[:, 0] @ network.W_V.T)
    scale = jnp.max(jnp.abs(units) @ jnp.abs(network.w_O))
    return Sides(quantities.outputs(network, network.theta), units @ network.w_O, scale=scale)
