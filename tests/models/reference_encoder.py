"""BERT and RoBERTa in NumPy loops, from a checkpoint's tensors by their own names.

Independent of our parameters and of JAX: one sentence without padding, one head at a time.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file
from scipy.special import erf


def tensors_of(folder: Path) -> dict[str, np.ndarray]:
    """The tensors without the prefix that models with a head put before their names."""
    found = load_file(folder / "model.safetensors")
    return {name.removeprefix("roberta.").removeprefix("bert."): v for name, v in found.items()}


def hidden_states(
    folder: Path, ids: list[int], dtype: Any, *, heads: int | None = None, kept: int | None = None
) -> np.ndarray:
    """The last layer's tokens; `heads` re-splits the width, `kept` mutes all later heads."""
    config = json.loads((folder / "config.json").read_text())
    w = {name: v.astype(dtype) for name, v in tensors_of(folder).items() if v.dtype.kind == "f"}
    eps, d = dtype(config["layer_norm_eps"]), config["hidden_size"]
    H = heads or config["num_attention_heads"]
    width, kept = d // H, H if kept is None else kept
    first = config["pad_token_id"] + 1 if config["model_type"] == "roberta" else 0

    def norm(x: np.ndarray, name: str) -> np.ndarray:
        out = np.empty_like(x)
        for t, row in enumerate(x):
            centred = row - row.mean()
            out[t] = centred / np.sqrt((centred**2).mean() + eps)
        return out * w[f"{name}.LayerNorm.weight"] + w[f"{name}.LayerNorm.bias"]

    def linear(x: np.ndarray, name: str) -> np.ndarray:
        return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    x = np.stack(
        [
            w["embeddings.word_embeddings.weight"][i]
            + w["embeddings.position_embeddings.weight"][first + t]
            + w["embeddings.token_type_embeddings.weight"][0]
            for t, i in enumerate(ids)
        ]
    )
    x = norm(x, "embeddings")
    for layer in range(config["num_hidden_layers"]):
        name = f"encoder.layer.{layer}"
        q, k, v = (linear(x, f"{name}.attention.self.{p}") for p in ("query", "key", "value"))
        mixed = np.zeros_like(x)
        for h in range(kept):
            own = slice(h * width, (h + 1) * width)
            for t in range(len(ids)):
                scores = np.array([q[t, own] @ k[s, own] for s in range(len(ids))])
                weights = np.exp(scores / dtype(math.sqrt(width)))
                mixed[t, own] = (weights / weights.sum()) @ v[:, own]
        x = norm(x + linear(mixed, f"{name}.attention.output.dense"), f"{name}.attention.output")
        wide = linear(x, f"{name}.intermediate.dense")
        wide = wide * (1 + erf(wide / dtype(math.sqrt(2)))) / 2
        x = norm(x + linear(wide, f"{name}.output.dense"), f"{name}.output")
    return x


ROBERTA = {
    "model_type": "roberta", "vocab_size": 40, "hidden_size": 12, "num_hidden_layers": 2,
    "num_attention_heads": 3, "intermediate_size": 20, "max_position_embeddings": 18,
    "type_vocab_size": 1, "layer_norm_eps": 1e-5, "hidden_act": "gelu", "pad_token_id": 1,
}  # fmt: skip


def write_roberta(folder: Path, seed: int = 0, **changed: Any) -> Path:
    """A tiny random RoBERTa as a fine-tuned checkpoint stores it, tokenizer of words included."""
    config = {**ROBERTA, **changed}
    rng = np.random.default_rng(seed)
    d, wide = config["hidden_size"], config["intermediate_size"]
    shapes = {
        "embeddings.word_embeddings.weight": (config["vocab_size"], d),
        "embeddings.position_embeddings.weight": (config["max_position_embeddings"], d),
        "embeddings.token_type_embeddings.weight": (1, d),
        "embeddings.LayerNorm.weight": (d,),
        "embeddings.LayerNorm.bias": (d,),
    }
    for i in range(config["num_hidden_layers"]):
        layer = f"encoder.layer.{i}"
        sizes = {f"attention.self.{p}": (d, d) for p in ("query", "key", "value")}
        sizes |= {"attention.output.dense": (d, d), "intermediate.dense": (wide, d)}
        for name, shape in {**sizes, "output.dense": (d, wide)}.items():
            shapes |= {f"{layer}.{name}.weight": shape, f"{layer}.{name}.bias": shape[:1]}
        for name in ("attention.output", "output"):
            shapes |= {f"{layer}.{name}.LayerNorm.{p}": (d,) for p in ("weight", "bias")}
    drawn = {
        f"roberta.{name}": rng.normal(size=shape).astype(np.float32)
        for name, shape in shapes.items()
    }
    folder.mkdir(parents=True, exist_ok=True)
    save_file(drawn, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config))
    write_tokenizer(folder, config["vocab_size"])
    return folder


def write_tokenizer(folder: Path, size: int, *, special: bool = True) -> None:
    """A tokenizer of whole words w4, w5, ... with the special tokens of RoBERTa."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    words = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}
    words |= {f"w{i}": i for i in range(4, size)}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    if special:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
        )
    tokenizer.save(str(folder / "tokenizer.json"))
