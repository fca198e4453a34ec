"""Transport maps: directions in feature space that define the targets of arda2026, Sec. 5.4."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ...core import (
    Activation,
    Array,
    BadArgument,
    activations,
    check_choice,
    check_finite,
    check_positive,
    check_shape,
    head_features,
    precision,
)
from ...core._queries import LAST_TOKEN, Query, check_query
from ...core._results import equal_by_content
from .model import PooledAttentionParams

ATTENTIONS = ("full", "diagonal")
W_BRANCHES = ("clipped", "scaled")


class TransportVectors(NamedTuple):
    """v(phi0) for m heads: (v_c, v_u, v_w)."""

    v_c: Float[Array, "m"]
    v_u: Float[Array, "m d"]
    v_w: Float[Array, "m d d"]


def attention_matrix(W: Float[Array, "*m d d"], attention: str) -> Float[Array, "*m d d"]:
    """W itself, or its diagonal part, which is all that the released teacher uses."""
    if attention == "full":
        return W
    return W * jnp.broadcast_to(jnp.eye(W.shape[-1], dtype=W.dtype), W.shape)


@equal_by_content
@dataclass(frozen=True, eq=False)
class TransportMap:
    """v = sum_r w_r v^(r) with frozen anchors X^(r), drawn before the student [arda2026, Sec. 6].

    v_c^(r) = (nu_c/sigma0) phi_c(X^(r)), v_u^(r) = (nu_u/sigma1) phi_u(X^(r)) and
    v_w^(r) = clip_F(phi_w(X^(r)), nu_w): clipped, not scaled; `w_branch="scaled"` clips
    (nu_w/sigma1) phi_w instead. Since sum_r |w_r| = 1, v lies in V_nu: |v_c| <= nu_c,
    |v_u| <= nu_u, |v_w|_F <= nu_w for every head. `attention="diagonal"` keeps only the diagonal
    of W in the softmax, as the released code does.
    """

    anchors: Float[Array, "R T d"]
    weights: Float[Array, "R"]
    nu: tuple[float, float, float] = (3.0, 3.0, 3.0)
    activation: Activation = activations["tanh"]
    query: Query = LAST_TOKEN
    attention: str = "full"
    w_branch: str = "clipped"

    def __post_init__(self) -> None:
        check_shape("anchors", self.anchors, (None, None, None))
        check_finite("anchors", self.anchors)
        check_shape("weights", self.weights, (len(self.anchors),))
        check_finite("weights", self.weights)
        check_nu(self.nu)
        check_choice("attention", self.attention, ATTENTIONS)
        check_choice("w_branch", self.w_branch, W_BRANCHES)
        check_query(self.query, self.anchors.shape[-1])
        total = float(np.sum(np.abs(self.weights)))
        if total > 1 + 1e-9:
            raise BadArgument(
                "weights", total, "have absolute sum above 1", fix="divide them by that sum"
            )

    def __call__(
        self, c: Float[Array, "m"], U: Float[Array, "m d"], W: Float[Array, "m d d"]
    ) -> TransportVectors:
        """v(phi0) of each head phi0 = (c, U, W), in the precision of U; c does not enter."""
        check_heads(c, U, W, self.anchors.shape[-1])
        dtype = np.result_type(U)
        with precision(str(dtype)):
            frozen = self.arrays(str(dtype))
            return _jitted_vectors(frozen, jnp.asarray(U), jnp.asarray(W), spec=self.spec)

    @property
    def spec(self) -> TransportSpec:
        """The hashable part, which a compiled program depends on."""
        return TransportSpec(self.nu, self.activation, self.attention, self.w_branch)

    def arrays(self, dtype: str) -> AnchorArrays:
        """Anchors, their queries and their weights, in the given precision."""
        with precision(dtype):
            anchors = jnp.asarray(np.asarray(self.anchors, dtype))
            queries = jax.vmap(self.query)(anchors)
            return AnchorArrays(anchors, queries, jnp.asarray(np.asarray(self.weights, dtype)))


class AnchorArrays(NamedTuple):
    """The array part of a transport map."""

    anchors: Float[Array, "R T d"]
    queries: Float[Array, "R d"]
    weights: Float[Array, "R"]


class TransportSpec(NamedTuple):
    """The static part of a transport map."""

    nu: tuple[float, float, float]
    activation: Activation
    attention: str
    w_branch: str


def transport_vectors(
    frozen: AnchorArrays, U: Float[Array, "m d"], W: Float[Array, "m d d"], spec: TransportSpec
) -> TransportVectors:
    """v of every head; phi_w = outer(w_left, q) is never built per anchor.

    |phi_w|_F = |w_left| |q|, so the clip of each anchor's matrix is a number.
    """
    nu_c, nu_u, nu_w = spec.nu
    sigma0, sigma1 = spec.activation.sigma0, spec.activation.sigma1
    attention = attention_matrix(W, spec.attention)
    over_heads = jax.vmap(head_features, in_axes=(None, None, 0, 0, None))
    features = jax.vmap(over_heads, in_axes=(0, 0, None, None, None))(
        frozen.anchors, frozen.queries, U, attention, spec.activation
    )
    scale = nu_w / sigma1 if spec.w_branch == "scaled" else 1.0
    w_left = scale * features.w_left
    size = jnp.linalg.norm(w_left, axis=-1) * jnp.linalg.norm(frozen.queries, axis=-1)[:, None]
    clip = nu_w / jnp.maximum(size, nu_w)
    weights = frozen.weights
    return TransportVectors(
        v_c=(nu_c / sigma0) * jnp.einsum("r,rm->m", weights, features.phi_c),
        v_u=(nu_u / sigma1) * jnp.einsum("r,rmd->md", weights, features.phi_u),
        v_w=jnp.einsum("rm,rmi,rj->mij", weights[:, None] * clip, w_left, frozen.queries),
    )


_jitted_vectors = jax.jit(transport_vectors, static_argnames="spec")


def transported(start: PooledAttentionParams, v: TransportVectors) -> PooledAttentionParams:
    """phi~ = phi0 + (v_c, c0 v_u, c0 v_w)/sqrt m, v at each phi0 [arda2026, Eq. (10)]."""
    c0, root = np.asarray(start.c), math.sqrt(len(start.c))
    return PooledAttentionParams(
        c0 + np.asarray(v.v_c) / root,
        np.asarray(start.U) + c0[:, None] * np.asarray(v.v_u) / root,
        np.asarray(start.W) + c0[:, None, None] * np.asarray(v.v_w) / root,
    )


def check_nu(nu: tuple[float, float, float]) -> None:
    """Three transport bounds (nu_c, nu_u, nu_w), each > 0."""
    if not isinstance(nu, tuple) or len(nu) != 3:
        raise BadArgument("nu", nu, "must be three numbers", fix="give (nu_c, nu_u, nu_w)")
    for block, value in zip("cuw", nu, strict=True):
        check_positive(f"nu_{block}", value)


def check_heads(c: Array, U: Array, W: Array, d: int) -> None:
    """Parameters of m heads in the shapes c: (m,), U: (m, d), W: (m, d, d)."""
    check_shape("U", U, (None, d))
    m = len(U)
    check_shape("c", c, (m,))
    check_shape("W", W, (m, d, d))
