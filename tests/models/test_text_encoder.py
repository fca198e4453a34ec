"""Our encoder against NumPy loops on real and random checkpoints; heads; bad checkpoints."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference_encoder import hidden_states, tensors_of, write_roberta
from safetensors.numpy import load_file, save_file

from headcount.core import BadArgument, cast
from headcount.data import find_checkpoint, pad, tokenise
from headcount.models.text import (
    TINY,
    TextClassifier,
    load_checkpoint,
    random_encoder,
    read_config,
)

SENTENCE = "a film of quiet , stubborn charm ."
TOLERANCE = {"float32": 2e-5, "float64": 1e-12}
"""Of the largest entry of the last layer, six layers of 384 features deep."""


def ours(folder: Path, ids: list[int], dtype: str, T: int, **heads: Any) -> np.ndarray:
    """Our hidden states of a sentence padded to T tokens."""
    model, params = load_checkpoint(folder)
    if heads:
        model = model.with_heads(**heads)
    x = jnp.asarray(pad([ids], T)[0])
    return np.asarray(compiled(model)(cast(params, dtype), x))[: len(ids)]


@lru_cache
def compiled(model: TextClassifier) -> Any:
    return jax.jit(model.hidden)


@pytest.fixture(scope="module")
def minilm() -> tuple[Path, list[int]]:
    """The real pretrained model, and a real sentence in its tokens."""
    folder = find_checkpoint("minilm").folder
    assert folder is not None
    return folder, tokenise(folder, [SENTENCE], vocabulary=30522, longest=64).numbers[0]


@pytest.fixture(scope="module")
def roberta(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_roberta(tmp_path_factory.mktemp("roberta"))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_real_weights_give_what_the_loops_give(minilm: tuple[Path, list[int]], dtype: str) -> None:
    folder, ids = minilm
    assert ids[0] == 101
    assert ids[-1] == 102
    want = hidden_states(folder, ids, np.dtype(dtype).type)
    got = ours(folder, ids, dtype, 16)
    assert got.dtype == np.dtype(dtype)
    np.testing.assert_allclose(got, want, atol=TOLERANCE[dtype] * np.abs(want).max(), rtol=0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("heads", "loops"),
    [
        ({}, {}),
        ({"h": 1, "rule": "mask"}, {"kept": 1}),
        ({"h": 2, "rule": "mask"}, {"kept": 2}),
        ({"h": 4, "rule": "resplit"}, {"heads": 4}),
    ],
)
def test_roberta_and_its_heads(roberta: Path, dtype: str, heads: Any, loops: Any) -> None:
    ids = [0, 7, 39, 7, 12, 2]
    want = hidden_states(roberta, ids, np.dtype(dtype).type, **loops)
    got = ours(roberta, ids, dtype, 8, **heads)
    np.testing.assert_allclose(got, want, atol=TOLERANCE[dtype] * np.abs(want).max(), rtol=0)


def test_numbers_of_heads_differ_and_all_heads_are_the_model(roberta: Path) -> None:
    ids = [0, 7, 39, 7, 12, 2]
    whole = ours(roberta, ids, "float64", 8)
    for rule in ("mask", "resplit"):
        np.testing.assert_array_equal(ours(roberta, ids, "float64", 8, h=3, rule=rule), whole)
        assert np.abs(ours(roberta, ids, "float64", 8, h=1, rule=rule) - whole).max() > 0.01


def test_gates_are_the_kept_heads_without_a_new_model(roberta: Path) -> None:
    model, params = load_checkpoint(roberta)
    x = jnp.asarray(pad([[0, 5, 2]], 4)[0])
    fewer = model.with_heads(2, "mask")
    np.testing.assert_array_equal(jax.jit(model)(params, x, fewer.gates), jax.jit(fewer)(params, x))


@pytest.mark.parametrize("pooling", ["first", "mean"])
def test_the_readout_is_a_dense_map_tanh_and_a_map(roberta: Path, pooling: str) -> None:
    model, params = load_checkpoint(roberta, classes=3, seed=4, pooling=pooling)
    params = cast(params, "float64")
    x = jnp.asarray(pad([[0, 5, 9, 2]], 6)[0])
    z = np.asarray(compiled(model)(params, x))[:4]
    pooled = z[0] if pooling == "first" else z.mean(axis=0)
    dense, out = params.readout
    want = out.W @ np.tanh(dense.W @ pooled + dense.b) + out.b
    np.testing.assert_allclose(jax.jit(model)(params, x), want, rtol=1e-12)
    again, other = (load_checkpoint(roberta, seed=s)[1].readout for s in (4, 5))
    assert not np.array_equal(again.out.W, other.out.W)


def test_the_pooler_and_the_pooling_of_a_checkpoint_are_used(
    minilm: tuple[Path, list[int]], roberta: Path
) -> None:
    model, params = load_checkpoint(minilm[0])
    assert model.pooling == "mean"  # 1_Pooling/config.json says so
    dense = tensors_of(minilm[0])["pooler.dense.weight"]
    np.testing.assert_array_equal(params.readout.dense.W, dense)
    assert load_checkpoint(roberta)[0].pooling == "first"


def test_sizes_of_the_two_layouts(minilm: tuple[Path, list[int]], roberta: Path) -> None:
    bert, other = read_config(minilm[0]), read_config(roberta)
    assert (bert.first_position, bert.longest) == (0, 512)
    assert (other.first_position, other.longest) == (2, 16)
    model, params = load_checkpoint(roberta)
    with pytest.raises(BadArgument, match="exceed 16"):
        model.embed(params.embedding, jnp.zeros((17, 2), jnp.int32))


def test_the_tiny_encoder_has_the_sizes_it_claims() -> None:
    model, params = random_encoder(seed=1)
    assert (model.heads, model.layers) == (12, 2)
    assert params.embedding.words.shape == (TINY.vocab_size, TINY.hidden_size)
    f = jax.jit(model)(params, jnp.asarray(pad([[3, 1, 4]], 5)[0]))
    assert f.shape == (2,)
    assert np.isfinite(f).all()


def changed_tensors(folder: Path, change: Any) -> None:
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors")


QUERY = "roberta.encoder.layer.1.attention.self.query.weight"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.pop(QUERY), f"has no tensor {QUERY}"),
        (
            lambda t: t.update({QUERY: np.zeros((12, 11), "f")}),
            r"\(12, 11\).*expected \(12, 12\)",
        ),
        (lambda t: t.update({QUERY: np.zeros((12, 12), "i4")}), "type I32"),
        (lambda t: t.update({QUERY: np.full((12, 12), np.nan, "f")}), "NaN or infinite"),
        (lambda t: t.pop("roberta.embeddings.word_embeddings.weight"), "word_embeddings.weight"),
    ],
)
def test_bad_tensors_are_named(tmp_path: Path, change: Any, message: str) -> None:
    write_roberta(tmp_path)
    changed_tensors(tmp_path, change)
    with pytest.raises(BadArgument, match=message) as error:
        load_checkpoint(tmp_path)
    assert str(tmp_path / "model.safetensors") in str(error.value)


def test_norms_by_their_old_names(tmp_path: Path, roberta: Path) -> None:
    write_roberta(tmp_path)

    def older(tensors: dict[str, np.ndarray]) -> None:
        for name in [name for name in tensors if "LayerNorm" in name]:
            new = name.replace("weight", "gamma").replace("bias", "beta")
            tensors[new] = tensors.pop(name)

    changed_tensors(tmp_path, older)
    ids = [0, 4, 2]
    same = ours(tmp_path, ids, "float32", 8), ours(roberta, ids, "float32", 8)
    np.testing.assert_array_equal(*same)


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "is not a safetensors file"), (b"\x80\x04pickled", "is not a safetensors file")],
)
def test_a_malformed_weights_file(tmp_path: Path, content: bytes, message: str) -> None:
    write_roberta(tmp_path)
    whole = (tmp_path / "model.safetensors").read_bytes()
    for bad in (content, whole[: len(whole) // 2]):
        (tmp_path / "model.safetensors").write_bytes(bad)
        with pytest.raises(BadArgument, match=message):
            load_checkpoint(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(BadArgument, match="is missing"):
        load_checkpoint(tmp_path)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"model_type": "gpt2"}, "model_type"),
        ({"hidden_size": "12"}, "hidden_size"),
        ({"num_attention_heads": 5}, "not a multiple"),
        ({"hidden_act": "relu"}, "hidden_act"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type"),
        ({"layer_norm_eps": float("inf")}, "is not JSON .Infinity is not a finite number"),
        ({"layer_norm_eps": 10**400}, "layer_norm_eps"),
        ({"pad_token_id": 17}, "has no position for a token"),
    ],
)
def test_a_config_that_we_do_not_compute(tmp_path: Path, changed: Any, message: str) -> None:
    write_roberta(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, **changed}))
    with pytest.raises(BadArgument, match=message):
        load_checkpoint(tmp_path)
    for text in ("{not json", '{"a":' * 10**5, '{"hidden_size": 1, "hidden_size": 12}'):
        (tmp_path / "config.json").write_text(text)
        with pytest.raises(BadArgument, match="is not JSON"):
            load_checkpoint(tmp_path)
    (tmp_path / "config.json").unlink()
    with pytest.raises(BadArgument, match=r"config.json.*is missing"):
        load_checkpoint(tmp_path)


def test_heads_that_cannot_be() -> None:
    model, _ = random_encoder()
    with pytest.raises(BadArgument, match="exceeds the 12 heads"):
        model.with_heads(13, "mask")
    with pytest.raises(BadArgument, match="does not divide the width 24"):
        model.with_heads(5, "resplit")
    with pytest.raises(BadArgument, match="rule"):
        model.with_heads(1, "drop")
