"""The models of arda2026: pooled multi-head attention (Sec. 3.2), and the IndRNN (App. B)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Float

from ...core import Activation, Array, activations, check_count, mirrored_sum, pooled_attention
from ...core._activations import activation_of
from ...core._queries import LAST_TOKEN, Query, check_query
from ...models import models


class PooledAttentionParams(NamedTuple):
    """varphi = (c_i, U_i, W_i), i = 1..m [arda2026, Eq. (4)]."""

    c: Float[Array, "m"]
    U: Float[Array, "m d"]
    W: Float[Array, "m d d"]


@dataclass(frozen=True)
class PooledAttention:
    """f(X; varphi) = m^{-1/2} sum_i c_i sigma(U_i . a(X; W_i)) [arda2026, Eqs. (2)-(4)].

    a(X; W) = sum_t alpha_t X_t with alpha = softmax(X W q_X), tokens X_t as rows of X: (T, d).
    No temperature; the query q_X is not trained. The activation may be given by its name.
    """

    d: int
    m: int
    activation: Activation = activations["tanh"]
    query: Query = LAST_TOKEN
    name: ClassVar[str] = "arda2026"

    def __post_init__(self) -> None:
        object.__setattr__(self, "activation", activation_of(self.activation))
        check_count("d", self.d)
        check_count("m", self.m)
        check_query(self.query, self.d)

    def head(
        self, U: Float[Array, "d"], W: Float[Array, "d d"], x: Float[Array, "T d"]
    ) -> Float[Array, ""]:
        """h(X; theta_i) = sigma(U_i . a(X; W_i)) [arda2026, Eq. (3)]."""
        alpha = pooled_attention(x, W, self.query(x))
        return self.activation(U @ (alpha @ x))

    def __call__(self, params: PooledAttentionParams, x: Float[Array, "T d"]) -> Float[Array, ""]:
        """f(X; varphi) [arda2026, Eq. (4)].

        The two halves of the heads run apart, through kernels of one shape: mirrored heads then
        round alike, and a paired initialisation gives exactly zero.
        """
        heads = jax.vmap(self.head, in_axes=(0, 0, None))
        if self.m % 2:
            total = jnp.sum(params.c * heads(params.U, params.W, x))
        else:
            k = self.m // 2
            first = params.c[:k] * heads(params.U[:k], params.W[:k], x)
            total = jnp.sum(first + params.c[k:] * heads(params.U[k:], params.W[k:], x))
        return total / math.sqrt(self.m)

    def shapes(self) -> PooledAttentionParams:
        """Shapes of (c, U, W)."""
        d, m = self.d, self.m
        return PooledAttentionParams((m,), (m, d), (m, d, d))


models.register("arda2026", PooledAttention)


class IndRNNParams(NamedTuple):
    """(c, U, w) of the IndRNN."""

    c: Float[Array, "m"]
    U: Float[Array, "m d"]
    w: Float[Array, "m"]


@dataclass(frozen=True)
class IndRNN:
    """h_t = sigma(U X_t + w o h_{t-1}), h_0 = 0, f = m^{-1/2} c . h_T [arda2026, App. B]."""

    d: int
    m: int
    activation: Activation = activations["tanh"]
    name: ClassVar[str] = "indrnn"

    def __post_init__(self) -> None:
        object.__setattr__(self, "activation", activation_of(self.activation))
        check_count("d", self.d)
        check_count("m", self.m)

    def final_state(self, params: IndRNNParams, x: Float[Array, "T d"]) -> Float[Array, "m"]:
        """h_T."""

        def step(h: Float[Array, "m"], drive: Float[Array, "m"]) -> tuple[Float[Array, "m"], None]:
            return self.activation(drive + params.w * h), None

        h, _ = jax.lax.scan(step, jnp.zeros_like(params.w), x @ params.U.T)
        return h

    def __call__(self, params: IndRNNParams, x: Float[Array, "T d"]) -> Float[Array, ""]:
        """f(X) = m^{-1/2} c . h_T."""
        return mirrored_sum(params.c * self.final_state(params, x)) / math.sqrt(self.m)

    def shapes(self) -> IndRNNParams:
        """Shapes of (c, U, w)."""
        return IndRNNParams((self.m,), (self.m, self.d), (self.m,))


models.register("indrnn", IndRNN)
