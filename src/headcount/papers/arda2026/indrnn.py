"""The independently recurrent network that arda2026 compares with (App. B)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Float

from ...core import Activation, Array, activation_of, activations, check_count, mirrored_sum
from ...models import models


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
