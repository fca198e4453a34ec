"""A tiny encoder with random weights: every program runs with it, and nothing is pretrained."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from ...core import Array, normal, stream
from ._checkpoint import classifier_of, new_readout
from ._config import CheckpointConfig
from ._encoder import (
    Affine,
    AttentionParams,
    EmbeddingParams,
    FeedForwardParams,
    Norm,
    TextClassifier,
    TextParams,
)

TINY = CheckpointConfig(
    model_type="bert",
    vocab_size=512,
    hidden_size=24,
    num_hidden_layers=2,
    num_attention_heads=12,
    intermediate_size=48,
    max_position_embeddings=64,
    type_vocab_size=1,
    layer_norm_eps=1e-12,
)
"""As many heads as the real ones have, in the smallest width that they divide twice."""


def random_encoder(
    config: CheckpointConfig = TINY, *, classes: int = 2, seed: int = 0, pooling: str = "mean"
) -> tuple[TextClassifier, TextParams]:
    """An encoder of these sizes, maps with variance 1/fan-in, tables with variance 1/d."""
    d, wide = config.hidden_size, config.intermediate_size

    def drawn(name: str, layer: int, rows: int, columns: int) -> Float[Array, "..."]:
        key = stream(seed, "text", "random-encoder", name, str(layer))
        return (normal(key, (rows, columns)) / np.sqrt(columns)).astype(np.float32)

    def affine(name: str, layer: int, out: int, into: int) -> Affine:
        return Affine(drawn(name, layer, out, into), np.zeros(out, np.float32))

    norm = Norm(np.ones(d, np.float32), np.zeros(d, np.float32))
    layers = range(config.num_hidden_layers)
    params = TextParams(
        embedding=EmbeddingParams(
            words=drawn("words", 0, config.vocab_size, d),
            positions=drawn("positions", 0, config.max_position_embeddings, d),
            types=drawn("types", 0, config.type_vocab_size, d),
            norm=norm,
        ),
        attention=tuple(
            AttentionParams(
                query=affine("query", i, d, d),
                key=affine("key", i, d, d),
                value=affine("value", i, d, d),
                output=affine("output", i, d, d),
                norm=norm,
            )
            for i in layers
        ),
        feedforward=tuple(
            FeedForwardParams(affine("up", i, wide, d), affine("down", i, d, wide), norm)
            for i in layers
        ),
        readout=new_readout(d, classes, seed),
    )
    return classifier_of(config, pooling), params
