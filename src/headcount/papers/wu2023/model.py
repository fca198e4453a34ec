"""The encoder-only Transformer of wu2023, its residual variant, and the two-layer ReLU network."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Float

from ...core import Array, BadArgument, check_choice, check_count, check_positive, self_attention
from ...models import models

POOLINGS = ("sum", "mean")
SCALINGS = ("realistic", "ntk")


class EncoderParams(NamedTuple):
    """theta = (W_Q, W_K, W_V, w_O) [wu2023, Sec. 3.1]."""

    W_Q: Float[Array, "d_m d"]
    W_K: Float[Array, "d_m d"]
    W_V: Float[Array, "d_m d"]
    w_O: Float[Array, "d_m"]


def softmax_scale(scaling: str, d_m: int) -> float:
    """tau0: d_m^{-1/2} ("realistic") or d_m^{-1} ("ntk") [wu2023, Sec. 4]."""
    check_choice("scaling", scaling, SCALINGS)
    return d_m**-0.5 if scaling == "realistic" else 1.0 / d_m


@dataclass(frozen=True)
class Encoder:
    """f = tau1 w_O . P_i relu(W_V X^T beta_i), beta_i = row i of softmax(tau0 X W_Q^T W_K X^T).

    P is the sum over tokens (what every formula of wu2023 uses) or the mean (what its text says);
    mean pooling is sum pooling with tau1 divided by the number of tokens. `residual` adds x_i
    inside the relu [wu2023, App. C.7], zero-padded to d_m features, so it needs d_m >= d.
    """

    d: int
    d_m: int
    tau0: float
    tau1: float
    pooling: str
    residual: bool = False
    name: ClassVar[str] = "wu2023"

    def __post_init__(self) -> None:
        check_count("d", self.d)
        check_count("d_m", self.d_m)
        check_positive("tau0", self.tau0)
        check_positive("tau1", self.tau1)
        check_choice("pooling", self.pooling, POOLINGS)
        if self.residual and self.d_m < self.d:
            raise BadArgument(
                "d_m", self.d_m, "is below d with residual=True", fix=f"use d_m={self.d} or more"
            )

    def logits_matrix(self, params: EncoderParams) -> Float[Array, "d d"]:
        """M = tau0 W_Q^T W_K: the only way in which W_Q and W_K enter the softmax."""
        return self.tau0 * params.W_Q.T @ params.W_K

    def pooled(self, hidden: Float[Array, "d_s d_m"]) -> Float[Array, "d_m"]:
        """f_pre = tau1 P_i relu(h_i)."""
        total = jnp.sum(jax.nn.relu(hidden), axis=0)
        return total * (self.tau1 / hidden.shape[0] if self.pooling == "mean" else self.tau1)

    def features(self, params: EncoderParams, x: Float[Array, "d_s d"]) -> Float[Array, "d_m"]:
        """f_pre(X), the last hidden layer [wu2023, Sec. 3.1]."""
        phi = self_attention(x, self.logits_matrix(params)) @ x
        hidden = phi @ params.W_V.T
        if self.residual:
            hidden = hidden + jnp.pad(x, ((0, 0), (0, self.d_m - self.d)))
        return self.pooled(hidden)

    def __call__(self, params: EncoderParams, x: Float[Array, "d_s d"]) -> Float[Array, ""]:
        """f(X; theta) = w_O . f_pre(X)."""
        return params.w_O @ self.features(params, x)

    def shapes(self) -> EncoderParams:
        """Shapes of (W_Q, W_K, W_V, w_O)."""
        wide = (self.d_m, self.d)
        return EncoderParams(wide, wide, wide, (self.d_m,))


class TwoLayerParams(NamedTuple):
    """(W, w_O) of the two-layer network."""

    W: Float[Array, "d_m D"]
    w_O: Float[Array, "d_m"]


@dataclass(frozen=True)
class TwoLayerReLU:
    """f(x) = tau1 w_O . relu(W x) on the flattened sample, D = T d inputs [wu2023, Sec. 5.1]."""

    D: int
    d_m: int
    tau1: float
    name: ClassVar[str] = "two-layer-relu"

    def __post_init__(self) -> None:
        check_count("D", self.D)
        check_count("d_m", self.d_m)
        check_positive("tau1", self.tau1)

    def __call__(self, params: TwoLayerParams, x: Float[Array, "T d"]) -> Float[Array, ""]:
        """tau1 w_O . relu(W x)."""
        return self.tau1 * params.w_O @ jax.nn.relu(params.W @ jnp.ravel(x))

    def shapes(self) -> TwoLayerParams:
        """Shapes of (W, w_O)."""
        return TwoLayerParams((self.d_m, self.D), (self.d_m,))


def output_scale(initialisation: str, d_m: int) -> float:
    """tau1 of wu2023 Table 1: d_m^{-1/2} for the NTK initialisation, 1 for LeCun and He."""
    return 1 / math.sqrt(d_m) if initialisation == "ntk" else 1.0


models.register("wu2023", Encoder)
models.register("two-layer-relu", TwoLayerReLU)
