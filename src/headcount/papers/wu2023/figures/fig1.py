"""wu2023, Figure 1: Assumption 3 on sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ....lab import Figure, Finding, Trial, over_seeds, register
from ..measurements.text import PRETRAINED, text_tail
from .tails import draw_tail, tail_statistics, tail_verdicts

if TYPE_CHECKING:
    import xarray as xr

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
    from ....data import chosen_text, find_checkpoint, vectors_file

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
            one.sel(vectors=name), "", f"{VECTORS[name]}: " if len(names) > 1 else ""
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
