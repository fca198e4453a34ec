"""wu2023, Figure 1: Assumption 3 on sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from ....core import Array
from ....lab import Context, Figure, Finding, Measurement, Trial, over_seeds, register
from .sentences import DECAY
from .tails import QUANTILES, TAIL_OUTPUTS, draw_tail, tail_of, tail_statistics, tail_verdicts

if TYPE_CHECKING:
    import xarray as xr


PRETRAINED = ("pretrained", "hidden")
"""Tokens of a pretrained encoder: its word table, or its last layer."""


def measure_text(config: dict[str, Any], context: Context) -> dict[str, Any]:
    """The tail over the pairs of `sentences` random sentences, each divided by |X|_F."""
    import jax

    from ....core import stream
    from ....data._text import load_sentences

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
    from ....data._text import embedded, random_table, read_vectors, vectors_file

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
    from ....data import pad, tokenise
    from ....data._checkpoints import located
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

TITLES = {
    "sample": "sentences that ship with Headcount",
    "imdb": "IMDB reviews (sample of 5000)",
    "sst2": "SST-2 sentences",
    "sentiment_sentences": "UCI labelled sentences, IMDB part",
}


VECTORS = {
    "random": "random table of words",
    "file": "vectors of the data folder",
    "pretrained": "word table of a pretrained encoder",
    "hidden": "last layer of a pretrained encoder",
}


def trials(
    settings: Mapping[str, Any], seeds: Sequence[int], options: Mapping[str, str]
) -> list[Trial]:
    """One random draw of sentences per run, for the random table and for what stands beside it."""
    from ....data import find_checkpoint
    from ....data._text import chosen_text, vectors_file

    text, asked = chosen_text(options["text"]), options["vectors"]
    vectors = {"random": "random"}
    if asked == "file":
        vectors[asked] = vectors_file()[1]
    elif asked in PRETRAINED:
        vectors[asked] = f"{asked}:{find_checkpoint('auto').identity}"
    names = ("sentences", "d", "shortest", "longest")
    shared = {name: settings[name] for name in names} | {"text": text}
    return [
        Trial(
            text_tail,
            {**shared, "vectors": identity, "seed": seed},
            {"text": text, "vectors": name, "seed": seed},
        )
        for name, identity in vectors.items()
        for seed in seeds
    ]


def statistics(data: xr.Dataset) -> xr.Dataset:
    """Quantiles of the pair products, exponent, and the sentences' lengths."""
    one = data.isel(text=0, drop=True)
    return tail_statistics(one, [""]).merge(over_seeds(one["mean_length"]))


def verdicts(data: xr.Dataset) -> list[Finding]:
    """Exponential decay; the assumption as printed."""
    one = data.isel(text=0)
    names = [str(name) for name in one["vectors"].values]
    return [
        finding
        for name in names
        for finding in tail_verdicts(
            one.sel(vectors=name), "", f"{VECTORS[name]}: " if len(names) > 1 else "", DECAY
        )
    ]


def plot(data: xr.Dataset, axes: Sequence[Any]) -> None:
    """The tails and their fits."""
    for index, name in enumerate(data["vectors"].values):
        draw_tail(axes, data.sel(vectors=name), "", VECTORS[str(name)], index)
    axes[0].figure.suptitle(f"data: {TITLES[str(data['text'].values.ravel()[0])]}", fontsize=7)


_SIZES = {"d": 64, "shortest": 5, "longest": 64}

figure = register(
    Figure(
        id="wu2023/fig1",
        title="Assumption 3 on text: tail of the pair products of normalised sentences",
        reference="[wu2023, Fig. 1, Sec. 4.1]",
        scales={
            "smoke": {"seeds": 2, "sentences": 40, **_SIZES},
            "quick": {"seeds": 10, "sentences": 100, **_SIZES},
            "paper": {"seeds": 10, "sentences": 100, **_SIZES},
        },
        trials=trials,
        statistics=statistics,
        verdicts=verdicts,
        plot=plot,
        options={
            "text": ("auto", "sample", "imdb", "sst2", "sentiment_sentences"),
            "vectors": tuple(VECTORS),
        },
        layout=(1, 2),
        notes="Given: IMDB, 100 normalised sentences with embedding, 10 runs. Ours: a fixed random "
        "table of word vectors with d = 64; beside it vectors=file has vectors.txt of the data "
        "folder, vectors=pretrained and vectors=hidden the word table and the last layer of a "
        "pretrained encoder (special tokens left out); sentences of 5 to 64 words, X divided by "
        "|X|_F; c is fitted to the upper half of pairs.",
    )
)
