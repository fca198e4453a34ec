"""The encoder of BERT and RoBERTa on one sentence, with a read-out for classes.

A sentence is x: (T, 2), one row per token: its number in the vocabulary and 1, or (padding, 0)
after its end. Padding has no influence on any other token, so that a sentence may be padded to any
length.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Num

from ...core import Array, BadArgument, check_choice, check_count

POOLINGS = ("first", "mean")
HEAD_RULES = ("mask", "resplit")
"""How h of H heads are had: "mask" keeps the first h of every layer and mutes the others;
"resplit" cuts queries, keys and values of the same width into h heads of width d/h."""


class Affine(NamedTuple):
    """x -> W x + b."""

    W: Float[Array, "out in"]
    b: Float[Array, "out"]


class Norm(NamedTuple):
    """Scale and shift of a layer norm."""

    scale: Float[Array, "d"]
    shift: Float[Array, "d"]


class EmbeddingParams(NamedTuple):
    """Tables of words, positions and sentence types, and their norm."""

    words: Float[Array, "V d"]
    positions: Float[Array, "P d"]
    types: Float[Array, "S d"]
    norm: Norm


class AttentionParams(NamedTuple):
    """One layer's attention: all heads side by side, their output map, and the norm after it."""

    query: Affine
    key: Affine
    value: Affine
    output: Affine
    norm: Norm


class FeedForwardParams(NamedTuple):
    """One layer's two-layer perceptron and the norm after it."""

    up: Affine
    down: Affine
    norm: Norm


class ReadoutParams(NamedTuple):
    """Pooled sentence -> tanh(dense) -> one output per class."""

    dense: Affine
    out: Affine


class TextParams(NamedTuple):
    """The blocks of the classifier; attention and feedforward hold one entry per layer."""

    embedding: EmbeddingParams
    attention: tuple[AttentionParams, ...]
    feedforward: tuple[FeedForwardParams, ...]
    readout: ReadoutParams


@dataclass(frozen=True)
class TextClassifier:
    """f(x): (classes,), a pretrained encoder with `heads` heads of which the first `kept` speak.

    `longest`: tokens that have a position; `first_position`: the row of the first one.
    """

    d: int
    heads: int
    kept: int
    layers: int
    longest: int
    first_position: int
    epsilon: float
    pooling: str = "mean"

    def __post_init__(self) -> None:
        for name in ("d", "heads", "kept", "layers", "longest"):
            check_count(name, getattr(self, name))
        check_choice("pooling", self.pooling, POOLINGS)
        if self.d % self.heads:
            raise BadArgument(
                "heads", self.heads, f"does not divide the width {self.d}", fix="use a divisor"
            )
        if self.kept > self.heads:
            raise BadArgument(
                "kept", self.kept, f"exceeds the {self.heads} heads", fix=f"at most {self.heads}"
            )

    def with_heads(self, h: int, rule: str) -> TextClassifier:
        """The same weights seen as h heads, by one of HEAD_RULES."""
        check_choice("rule", rule, HEAD_RULES)
        if rule == "mask":
            return replace(self, kept=h)
        return replace(self, heads=h, kept=h)

    @property
    def gates(self) -> Float[np.ndarray, "heads"]:
        """1 for the heads that speak, 0 for the others."""
        return (np.arange(self.heads) < self.kept).astype(np.float32)

    def embed(self, params: EmbeddingParams, x: Num[Array, "T 2"]) -> Float[Array, "T d"]:
        """Normalised sum of word, position and type embeddings."""
        T = x.shape[0]
        if self.longest < T:
            raise BadArgument("x", T, f"tokens exceed {self.longest}", fix="truncate the sentence")
        positions = params.positions[self.first_position : self.first_position + T]
        total = params.words[x[:, 0].astype(jnp.int32)] + positions + params.types[:1]
        return layer_norm(total, params.norm, self.epsilon)

    def attend(
        self,
        params: AttentionParams,
        z: Float[Array, "T d"],
        present: Float[Array, "T"],
        gates: Float[Array, "heads"],
    ) -> Float[Array, "T d"]:
        """Multi-head attention with residual and norm; a head with gate 0 is silent."""
        width = self.d // self.heads

        def split(map_: Affine) -> Float[Array, "heads T width"]:
            return affine(map_, z).reshape(-1, self.heads, width).transpose(1, 0, 2)

        q, k, v = split(params.query), split(params.key), split(params.value)
        scores = q @ k.transpose(0, 2, 1) * width**-0.5
        weights = jax.nn.softmax(scores, axis=-1, where=present[None, None, :] > 0)
        mixed = weights @ v * gates[:, None, None]
        joined = mixed.transpose(1, 0, 2).reshape(-1, self.d)
        return layer_norm(z + affine(params.output, joined), params.norm, self.epsilon)

    def feed(self, params: FeedForwardParams, z: Float[Array, "T d"]) -> Float[Array, "T d"]:
        """The perceptron with the exact GELU, residual and norm."""
        hidden = jax.nn.gelu(affine(params.up, z), approximate=False)
        return layer_norm(z + affine(params.down, hidden), params.norm, self.epsilon)

    def hidden(
        self, params: TextParams, x: Num[Array, "T 2"], gates: Float[Array, "heads"] | None = None
    ) -> Float[Array, "T d"]:
        """The last layer's tokens; rows of padding mean nothing."""
        z = self.embed(params.embedding, x)
        present = x[:, 1].astype(z.dtype)
        open_ = jnp.asarray(self.gates if gates is None else gates, z.dtype)
        for attention, feedforward in zip(params.attention, params.feedforward, strict=True):
            z = self.feed(feedforward, self.attend(attention, z, present, open_))
        return z

    def __call__(
        self, params: TextParams, x: Num[Array, "T 2"], gates: Float[Array, "heads"] | None = None
    ) -> Float[Array, "classes"]:
        """Outputs of the classes; `gates` overrides which heads speak, without a new program."""
        z = self.hidden(params, x, gates)
        if self.pooling == "first":
            pooled = z[0]
        else:
            present = x[:, 1].astype(z.dtype)
            pooled = present @ z / jnp.sum(present)
        return affine(params.readout.out, jnp.tanh(affine(params.readout.dense, pooled)))


def affine(map_: Affine, x: Float[Array, "*rows in"]) -> Float[Array, "*rows out"]:
    """W x + b for every row."""
    product = x @ map_.W.T
    return product + jnp.broadcast_to(map_.b, product.shape)


def layer_norm(x: Float[Array, "T d"], norm: Norm, epsilon: float) -> Float[Array, "T d"]:
    """(x - mean) / sqrt(variance + epsilon) of every row, scaled and shifted."""
    mean = jnp.mean(x, axis=-1, keepdims=True)
    variance = jnp.mean((x - mean) ** 2, axis=-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + epsilon) * norm.scale[None] + norm.shift[None]
