"""Assumption 3 on sentences [wu2023, Fig. 1]."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from ....core import Array
from ....lab import Context, Measurement
from .tails import QUANTILES, TAIL_OUTPUTS, tail_of

PRETRAINED = ("pretrained", "hidden")
"""Tokens of a pretrained encoder: its word table, or its last layer."""


def measure_text(config: dict[str, Any], context: Context) -> dict[str, Any]:
    """The tail over the pairs of `sentences` random sentences, each divided by |X|_F."""
    import jax

    from ....core import stream
    from ....data import load_sentences

    sentences = load_sentences(config["text"], config["shortest"])
    order = np.asarray(
        jax.random.permutation(stream(config["seed"], "wu2023", "sentences"), len(sentences))
    )
    chosen = [sentences[i] for i in order[: config["sentences"]]]
    context.progress(1, 2)
    kind, _, identity = config["vectors"].partition(":")
    if kind in PRETRAINED:
        x = pretrained_tokens(chosen, identity, config["longest"], kind)
    else:
        x = _word_vectors(sentences, chosen, config)
    lengths = np.sum(np.any(x != 0, axis=2), axis=1)
    return {
        "tail_point": np.arange(QUANTILES),
        **tail_of(x),
        "used_sentences": len(x),
        "mean_length": np.mean(lengths),
    }


def _word_vectors(
    sentences: list[list[str]], chosen: list[list[str]], config: dict[str, Any]
) -> Float[Array, "n T d"]:
    """Words by a random table of the whole text, or by the vectors of the data folder."""
    from ....core import BadArgument
    from ....data import embedded, random_table, read_vectors, vectors_file

    if config["vectors"] == "random":
        table = random_table(sentences, config["d"])
    else:
        path, checksum = vectors_file()
        if checksum != config["vectors"]:
            problem = f"{path} has changed: sha256 {checksum}, expected {config['vectors']}"
            raise BadArgument("vectors", path.name, problem, fix="plan the figure again")
        table = read_vectors(path)
    return embedded(chosen, table, config["longest"])


def pretrained_tokens(
    sentences: list[list[str]], identity: str, longest: int, kind: str
) -> Float[Array, "n T d"]:
    """Tokens of a pretrained encoder, zero after a sentence's end; special tokens left out.

    kind "pretrained": rows of its word table; "hidden": the last layer's tokens.
    """
    from ....core import cast
    from ....data import located, pad, tokenise
    from ....models.text import load_checkpoint

    folder = located(identity)
    assert folder is not None  # the random encoder is never planned here
    model, params = load_checkpoint(folder)
    words = params.embedding.words
    lines = [" ".join(sentence) for sentence in sentences]
    room = min(longest + 2, model.longest)
    numbers = tokenise(folder, lines, vocabulary=len(words), longest=room).numbers
    if kind == "pretrained":
        tokens = [words[line] for line in numbers]
    else:
        tokens = _last_layer(model, cast(params, "float32"), pad(numbers, room))
    x = np.zeros((len(numbers), room - 2, words.shape[1]))
    for row, line, own in zip(x, numbers, tokens, strict=True):
        row[: len(line) - 2] = own[1 : len(line) - 1]
    return x


def _last_layer(model: Any, params: Any, x: Any) -> Any:
    import jax

    program = jax.jit(lambda theta, samples: jax.lax.map(lambda z: model.hidden(theta, z), samples))
    return np.asarray(program(params, x))


text_tail = Measurement(
    name="wu2023-text-tail",
    version=1,
    function=measure_text,
    outputs={
        "tail_point": ("tail_point",),
        **TAIL_OUTPUTS,
        "used_sentences": (),
        "mean_length": (),
    },
    estimate=lambda config: (3.0, 3e8),
    may_be_nan=("tail_exponent",),
)
