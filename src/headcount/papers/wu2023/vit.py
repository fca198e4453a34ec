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

BLOCKS = {
    "vit": ("norm", "residual", "mlp"),
    "no-norm": ("residual", "mlp"),
    "no-residual": ("norm", "mlp"),
    "no-mlp": ("norm", "residual"),
    "relu": (),
}
"""Parts of the block around attention; relu: none of them, but relu on it [wu2023, Eq. (1.2)]."""
READOUTS = ("mean", "class")
MLP = 4
"""Hidden units of the MLP over d [Dosovitskiy et al., 2021]."""
STARTS = ("lecun", "small")
SMALL = 0.02
"""Standard deviation of positions, and with init "small" of all weights."""
_EPSILON = 1e-6


class VisionParams(NamedTuple):
    """Patch embedding E, positions (row 0 is the class token, if there is one), W_Q, W_K, W_V, W_H,
    scales and shifts of three layer norms, the MLP, read-out W_O and its bias b."""

    E: Float[Array, "p d"]
    positions: Float[Array, "S d"]
    W_Q: Float[Array, "d_m d"]
    W_K: Float[Array, "d_m d"]
    W_V: Float[Array, "d_m d"]
    W_H: Float[Array, "d d_m"]
    scales: Float[Array, "3 d"]
    shifts: Float[Array, "3 d"]
    W_1: Float[Array, "h d"]
    b_1: Float[Array, "h"]
    W_2: Float[Array, "d h"]
    b_2: Float[Array, "d"]
    W_O: Float[Array, "outputs d"]
    b: Float[Array, "outputs"]


@dataclass(frozen=True)
class VisionTransformer:
    """f(X) = W_O g(Z'') + b on tokens Z = X E + positions, X: (T, p) the patches of an image.

    Z' = Z + A(LN Z), Z'' = LN(Z' + MLP(LN Z')), A(Z) = softmax(tau0 Z W_Q^T W_K Z^T) Z W_V^T W_H^T,
    MLP = W_2 gelu(W_1 . + b_1) + b_2: one pre-norm block as in [Dosovitskiy et al., 2021]; g is the
    mean over tokens, or a class token that is put first. `block` leaves parts out; "relu" is
    f(X) = W_O mean_i relu(A(Z)_i) + b, the encoder of wu2023, Eq. (1.2), with a trained W_H.
    tau1 multiplies A, as a scale outside of the softmax [wu2023, Table 1, NTK].
    """

    p: int
    T: int
    d: int
    d_m: int
    tau0: float
    outputs: int
    block: str = "vit"
    readout: str = "mean"
    tau1: float = 1.0

    def __post_init__(self) -> None:
        for name in ("p", "T", "d", "d_m", "outputs"):
            check_count(name, getattr(self, name))
        check_positive("tau0", self.tau0)
        check_positive("tau1", self.tau1)
        check_choice("block", self.block, BLOCKS)
        check_choice("readout", self.readout, READOUTS)

    def tokens(self, params: VisionParams, x: Float[Array, "T p"]) -> Float[Array, "S d"]:
        """Z = X E + positions; a class token is its position alone."""
        patches = x @ params.E
        if self.readout == "class":
            patches = jnp.concatenate([jnp.zeros_like(patches[:1]), patches])
        return patches + params.positions

    def attention(self, params: VisionParams, x: Float[Array, "T p"]) -> Float[Array, "S S"]:
        """The attention map: row i is beta_i."""
        return self._map(params, self._norm(params, 0, self.tokens(params, x)))

    def __call__(self, params: VisionParams, x: Float[Array, "T p"]) -> Float[Array, "outputs"]:
        """f(X), through the d x d products of the two pairs of matrices."""
        parts, z = BLOCKS[self.block], self.tokens(params, x)
        u = self._norm(params, 0, z)
        h = self._map(params, u) @ (u @ (self.tau1 * params.W_H @ params.W_V).T)
        h = jax.nn.relu(h) if self.block == "relu" else h
        h = h + z if "residual" in parts else h
        if "mlp" in parts:
            hidden = self._norm(params, 1, h) @ params.W_1.T + params.b_1[None]
            step = jax.nn.gelu(hidden) @ params.W_2.T + params.b_2[None]
            h = h + step if "residual" in parts else step
        h = self._norm(params, 2, h)
        return params.W_O @ (h[0] if self.readout == "class" else jnp.mean(h, axis=0)) + params.b

    def _map(self, params: VisionParams, u: Float[Array, "S d"]) -> Float[Array, "S S"]:
        return self_attention(u, self.tau0 * params.W_Q.T @ params.W_K)

    def _norm(
        self, params: VisionParams, which: int, z: Float[Array, "S d"]
    ) -> Float[Array, "S d"]:
        """Layer norm of every token, where the block has it."""
        if "norm" not in BLOCKS[self.block]:
            return z
        centred = z - jnp.mean(z, axis=-1, keepdims=True)
        size = jnp.sqrt(jnp.mean(centred**2, axis=-1, keepdims=True) + _EPSILON)
        return params.scales[which][None] * centred / size + params.shifts[which][None]

    def shapes(self) -> VisionParams:
        """Shapes of all blocks."""
        d, wide, hidden = self.d, (self.d_m, self.d), MLP * self.d
        return VisionParams(
            (self.p, d), (self.T + (self.readout == "class"), d), wide, wide, wide, wide[::-1],
            (3, d), (3, d), (hidden, d), (hidden,), (d, hidden), (d,),
            (self.outputs, d), (self.outputs,),
        )  # fmt: skip


def vision_start(model: VisionTransformer, seed: int, init: str = "lecun") -> VisionParams:
    """Gaussian weights with variance 1/fan-in (lecun) or 0.02^2 (small); positions 0.02^2.

    Layer norms start as the identity, shifts and biases at zero. W_H is divided by tau1, so that
    the network starts the same whatever the scale outside of the softmax.
    """
    check_choice("init", init, STARTS)
    d, shapes = model.d, model.shapes()
    fan_in = {
        "E": model.p, "W_Q": d, "W_K": d, "W_V": d, "W_H": model.d_m,
        "W_1": d, "W_2": MLP * d, "W_O": d,
    }  # fmt: skip
    size = {name: fan**-0.5 if init == "lecun" else SMALL for name, fan in fan_in.items()}
    size["positions"] = SMALL
    size["W_H"] /= model.tau1
    weights = {
        name: of * normal(stream(seed, "wu2023-vit", name), getattr(shapes, name))
        for name, of in size.items()
    }
    rest = {name: np.zeros(shape) for name, shape in shapes._asdict().items() if name not in size}
    return VisionParams(**weights | rest | {"scales": np.ones(shapes.scales)})


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
