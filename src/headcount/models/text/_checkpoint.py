"""Checkpoints of BERT and RoBERTa encoders: `model.safetensors` read into our parameters.

The file is parsed by the safetensors library, which executes nothing; every tensor's presence,
shape and type are checked before it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from ...core import Array, BadArgument, check_choice, check_count, normal, stream
from ...core._reading import read_json
from ._config import MOST_BYTES, CheckpointConfig, read_config
from ._encoder import (
    POOLINGS,
    Affine,
    AttentionParams,
    EmbeddingParams,
    FeedForwardParams,
    Norm,
    ReadoutParams,
    TextClassifier,
    TextParams,
)

WEIGHTS_FILE = "model.safetensors"
READOUT_SCALE = 0.02
"""Standard deviation of a new read-out, as BERT and RoBERTa start theirs."""

Take = Callable[..., Float[Array, "..."]]


def load_checkpoint(
    folder: str | Path, *, classes: int = 2, seed: int = 0, pooling: str = "auto"
) -> tuple[TextClassifier, TextParams]:
    """The classifier of a checkpoint's folder and its parameters, NumPy float32.

    The read-out's last map is new, drawn from the stream of `seed`; so is its dense map unless the
    checkpoint has a pooler. pooling "auto": what the folder says, else the first token.
    """
    check_choice("pooling", pooling, ("auto", *POOLINGS))
    check_count("classes", classes, least=2)
    config = read_config(folder)
    chosen = _own_pooling(Path(folder)) if pooling == "auto" else pooling
    with _opened(Path(folder) / WEIGHTS_FILE) as (take, has_pooler):
        params = TextParams(
            embedding=_embedding(take, config),
            attention=tuple(_attention(take, config, i) for i in range(config.num_hidden_layers)),
            feedforward=tuple(_feed(take, config, i) for i in range(config.num_hidden_layers)),
            readout=new_readout(config.hidden_size, classes, seed),
        )
        if has_pooler:
            dense = _affine(take, "pooler.dense", config.hidden_size, config.hidden_size)
            params = params._replace(readout=params.readout._replace(dense=dense))
    return classifier_of(config, chosen), params


def classifier_of(config: CheckpointConfig, pooling: str) -> TextClassifier:
    """The classifier with all heads that a config.json describes."""
    heads = config.num_attention_heads
    return TextClassifier(
        d=config.hidden_size,
        heads=heads,
        kept=heads,
        layers=config.num_hidden_layers,
        longest=config.longest,
        first_position=config.first_position,
        epsilon=config.layer_norm_eps,
        pooling=pooling,
    )


def new_readout(d: int, classes: int, seed: int) -> ReadoutParams:
    """Gaussian maps of deviation 0.02 with zero biases."""

    def drawn(name: str, out: int) -> Affine:
        W = READOUT_SCALE * normal(stream(seed, "text", "readout", name), (out, d))
        return Affine(W.astype(np.float32), np.zeros(out, np.float32))

    return ReadoutParams(drawn("dense", d), drawn("out", classes))


def _own_pooling(folder: Path) -> str:
    """Sentence-embedding checkpoints say in 1_Pooling/config.json that they average tokens."""
    path = folder / "1_Pooling" / "config.json"
    if not path.is_file():
        return "first"
    said = read_json(path, MOST_BYTES, argument="checkpoint", fix="fetch the checkpoint again")
    return "mean" if isinstance(said, dict) and said.get("pooling_mode_mean_tokens") else "first"


@contextmanager
def _opened(path: Path) -> Iterator[tuple[Take, bool]]:
    """A function that takes named tensors of known shape, and whether there is a pooler."""
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError as error:
        raise BadArgument(
            "checkpoint", path.name, "needs safetensors", fix="pip install safetensors"
        ) from error
    if not path.is_file():
        raise _broken(path, "is missing")
    try:
        with safe_open(path, "numpy") as file:
            names = set(file.keys())
            prefix = _prefix(names, path)

            def take(name: str, *shape: int) -> Float[Array, "..."]:
                return _tensor(file, path, names, prefix + name, shape)

            yield take, f"{prefix}pooler.dense.weight" in names
    except SafetensorError as error:
        raise _broken(path, f"is not a safetensors file ({error})") from error


def _prefix(names: set[str], path: Path) -> str:
    """Models saved with a head put "bert." or "roberta." before every name."""
    for prefix in ("", "bert.", "roberta."):
        if f"{prefix}embeddings.word_embeddings.weight" in names:
            return prefix
    raise _broken(path, "has no tensor embeddings.word_embeddings.weight")


def _tensor(
    file: Any, path: Path, names: set[str], name: str, shape: tuple[int, ...]
) -> Float[Array, "..."]:
    # Old checkpoints call the scale and shift of a norm gamma and beta.
    older = name.replace("LayerNorm.weight", "LayerNorm.gamma")
    older = older.replace("LayerNorm.bias", "LayerNorm.beta")
    found = next((own for own in (name, older) if own in names), None)
    if found is None:
        raise _broken(path, f"has no tensor {name}")
    about = file.get_slice(found)
    if tuple(about.get_shape()) != shape:
        actual = tuple(about.get_shape())
        raise _broken(path, f"has {found} of shape {actual}, by config.json expected {shape}")
    if about.get_dtype() not in ("F16", "F32", "F64"):
        raise _broken(path, f"has {found} of type {about.get_dtype()}, not F16, F32 or F64")
    values = file.get_tensor(found).astype(np.float32)
    if not np.isfinite(values).all():
        raise _broken(path, f"has NaN or infinite entries in {found}")
    return values


def _affine(take: Take, name: str, out: int, into: int) -> Affine:
    return Affine(take(f"{name}.weight", out, into), take(f"{name}.bias", out))


def _norm(take: Take, name: str, d: int) -> Norm:
    return Norm(take(f"{name}.LayerNorm.weight", d), take(f"{name}.LayerNorm.bias", d))


def _embedding(take: Take, config: CheckpointConfig) -> EmbeddingParams:
    d = config.hidden_size
    return EmbeddingParams(
        words=take("embeddings.word_embeddings.weight", config.vocab_size, d),
        positions=take("embeddings.position_embeddings.weight", config.max_position_embeddings, d),
        types=take("embeddings.token_type_embeddings.weight", config.type_vocab_size, d),
        norm=_norm(take, "embeddings", d),
    )


def _attention(take: Take, config: CheckpointConfig, layer: int) -> AttentionParams:
    d, name = config.hidden_size, f"encoder.layer.{layer}.attention"
    return AttentionParams(
        query=_affine(take, f"{name}.self.query", d, d),
        key=_affine(take, f"{name}.self.key", d, d),
        value=_affine(take, f"{name}.self.value", d, d),
        output=_affine(take, f"{name}.output.dense", d, d),
        norm=_norm(take, f"{name}.output", d),
    )


def _feed(take: Take, config: CheckpointConfig, layer: int) -> FeedForwardParams:
    d, wide, name = config.hidden_size, config.intermediate_size, f"encoder.layer.{layer}"
    return FeedForwardParams(
        up=_affine(take, f"{name}.intermediate.dense", wide, d),
        down=_affine(take, f"{name}.output.dense", d, wide),
        norm=_norm(take, f"{name}.output", d),
    )


def _broken(path: Path, problem: str) -> BadArgument:
    return BadArgument(
        "checkpoint", path.name, f"{path} {problem}", fix="fetch the checkpoint again"
    )
