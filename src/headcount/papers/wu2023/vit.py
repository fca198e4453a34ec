"""The single-layer, single-head vision Transformer of wu2023, Sec. 5.2, and its exact collapse.

W_Q and W_K act only through W_Q^T W_K, W_V and W_H only through W_H W_V. Both pairs can be written
in an orthonormal basis of the columns of their initial values: with [W_Q W_K] = U [R_Q R_K] (a QR
factorisation) every gradient of W_Q is U times that of R_Q, and so is every iterate of descent,
with or without momentum. A network of any width d_m is thus trained exactly as one of width 2d.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ...core import Array, check_choice, check_count, check_positive, normal, self_attention, stream

BLOCKS = ("relu", "residual", "linear")
"""What stands inside the relu of the vision Transformer."""


class VisionParams(NamedTuple):
    """Patch embedding E, positions, W_Q, W_K, W_V, W_H, read-out W_O and its bias b."""

    E: Float[Array, "p d"]
    positions: Float[Array, "T d"]
    W_Q: Float[Array, "d_m d"]
    W_K: Float[Array, "d_m d"]
    W_V: Float[Array, "d_m d"]
    W_H: Float[Array, "d d_m"]
    W_O: Float[Array, "outputs d"]
    b: Float[Array, "outputs"]


@dataclass(frozen=True)
class VisionTransformer:
    """f(X) = W_O mean_i g(W_H W_V Z^T beta_i) + b on tokens Z = X E + positions.

    beta_i is row i of softmax(tau0 Z W_Q^T W_K Z^T), X: (T, p) the patches of an image. This is the
    encoder of wu2023, Eq. (1.2), with a trained W_H of d rows and several outputs. block "relu":
    g = relu; "residual": g(h_i) = relu(z_i + h_i); "linear": g is the identity.
    """

    p: int
    T: int
    d: int
    d_m: int
    tau0: float
    outputs: int
    block: str = "relu"

    def __post_init__(self) -> None:
        for name in ("p", "T", "d", "d_m", "outputs"):
            check_count(name, getattr(self, name))
        check_positive("tau0", self.tau0)
        check_choice("block", self.block, BLOCKS)

    def tokens(self, params: VisionParams, x: Float[Array, "T p"]) -> Float[Array, "T d"]:
        """Z = X E + positions."""
        return x @ params.E + params.positions

    def attention(self, params: VisionParams, x: Float[Array, "T p"]) -> Float[Array, "T T"]:
        """The attention map: row i is beta_i."""
        return self_attention(self.tokens(params, x), self.tau0 * params.W_Q.T @ params.W_K)

    def __call__(self, params: VisionParams, x: Float[Array, "T p"]) -> Float[Array, "outputs"]:
        """f(X), through the d x d products of the two pairs of matrices."""
        z = self.tokens(params, x)
        attention = self_attention(z, self.tau0 * params.W_Q.T @ params.W_K)
        hidden = attention @ (z @ (params.W_H @ params.W_V).T)
        if self.block == "residual":
            hidden = hidden + z
        if self.block != "linear":
            hidden = jax.nn.relu(hidden)
        return params.W_O @ jnp.mean(hidden, axis=0) + params.b

    def shapes(self) -> VisionParams:
        """Shapes of all blocks."""
        wide = (self.d_m, self.d)
        return VisionParams(
            (self.p, self.d), (self.T, self.d), wide, wide, wide, wide[::-1],
            (self.outputs, self.d), (self.outputs,),
        )  # fmt: skip


def lecun_vision(model: VisionTransformer, seed: int) -> VisionParams:
    """Gaussian with variance 1/fan-in, positions with 1/d, bias zero [wu2023, Table 1]."""
    shapes = model.shapes()
    fan_in = VisionParams(model.p, model.d, model.d, model.d, model.d, model.d_m, model.d, 1)

    def drawn(block: str) -> Float[Array, "..."]:
        key = stream(seed, "wu2023-vit", block)
        return normal(key, getattr(shapes, block)) / np.sqrt(getattr(fan_in, block))

    weights = {block: drawn(block) for block in VisionParams._fields if block != "b"}
    return VisionParams(**weights, b=np.zeros(shapes.b))


class Collapsed(NamedTuple):
    """A model of width min(d_m, 2d) whose training is that of the wide one, and the way back."""

    model: VisionTransformer
    params: VisionParams
    keys: Float[Array, "d_m r"]
    values: Float[Array, "d_m r"]

    def expand(self, params: VisionParams) -> VisionParams:
        """The wide parameters of collapsed ones."""
        return params._replace(
            W_Q=self.keys @ params.W_Q,
            W_K=self.keys @ params.W_K,
            W_V=self.values @ params.W_V,
            W_H=params.W_H @ self.values.T,
        )


def collapse(model: VisionTransformer, params: VisionParams) -> Collapsed:
    """The same network in an orthonormal basis of its initial columns, of which there are 2d.

    tau0 stays that of the wide model. Exact for every optimiser that commutes with rotations:
    descent, mini-batches, momentum; not for Adam.
    """
    d = model.d
    keys, both = np.linalg.qr(np.concatenate([params.W_Q, params.W_K], axis=1))
    values, pair = np.linalg.qr(np.concatenate([params.W_V, params.W_H.T], axis=1))
    narrow = params._replace(
        W_Q=both[:, :d], W_K=both[:, d:], W_V=pair[:, :d], W_H=pair[:, d:].T.copy()
    )
    return Collapsed(replace(model, d_m=len(both)), narrow, keys, values)
