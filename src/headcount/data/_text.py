"""Sentences and their embeddings: local files, a sample that ships; random or given vectors."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

import numpy as np
from jaxtyping import Float

from ..core import Array, BadArgument, check_choice, check_count, normal, stream
from ..core._reading import read_text
from ..core._shown import brief
from ._files import VARIABLE, FileSet, data_folder, fetch, find, sha256_of

TEXTS = {
    "imdb": FileSet(
        "imdb",
        {
            "imdb_train_sample5000.tsv.gz": (
                "76f4441754e8397ccf16f81dc244aab085a4bf654f348e4878508d5998e7fbd2"
            )
        },
        {},
        mirrors=(),
    ),
    "sst2": FileSet(
        "sst2",
        {"stsa.binary.train": "71c04bcc41291fa47454dd670df701b14ee9249156babeaac404cfe2c8d74338"},
        {},
        mirrors=(),
    ),
    "sentiment_sentences": FileSet(
        "sentiment_sentences",
        {"imdb_labelled.txt": "aef2e49e3da25714d61175e3a6e68eeef74a20a2f914318dc3be9947ea86512d"},
        {},
        mirrors=(),
    ),
}
"""Local text sets, with one file each; there is no public address to fetch them from."""

TEXT_CHOICES = ("auto", "sample", *TEXTS)
"""auto: IMDB where the data folder has it, else the sample that ships with Headcount."""
VECTORS_FILE = "vectors.txt"
"""Pretrained vectors in the data folder: a word and its numbers on every line."""

MOST_BYTES = 1 << 33
"""Of a text or a file of vectors; the largest public ones have 6 GB."""

_WORD = re.compile(r"[a-z0-9]+(?:'[a-z]+)?")
_SENTENCE_END = re.compile(r"[.!?]+\s|<br />|\n")


def chosen_text(choice: str) -> str:
    """The text that a choice stands for on this machine; its file is checked now."""
    check_choice("text", choice, TEXT_CHOICES)
    if choice == "auto":
        folder = data_folder()
        choice = "imdb" if folder is not None and (folder / "imdb").is_dir() else "sample"
    if choice != "sample":
        _text_file(TEXTS[choice])
    return choice


def load_sentences(name: str, least: int = 5, source: FileSet | None = None) -> list[list[str]]:
    """The sentences of a text as lists of lower-case words, those of at least `least` words."""
    check_choice("name", name, TEXT_CHOICES[1:])
    check_count("least", least)
    if name == "sample":
        text = (resources.files(__package__) / "files" / "sentences.txt").read_text("utf-8")
        rows = text.split("\n")
    else:
        rows = [_without_label(row) for row in _lines(_text_file(source or TEXTS[name]))]
    parts = [part for row in rows for part in _SENTENCE_END.split(row)]
    found = [_WORD.findall(part.lower()) for part in parts]
    return [words for words in found if len(words) >= least]


def _text_file(source: FileSet) -> Path:
    files = fetch(source) if data_folder() is None else find(source)
    assert files is not None  # with a data folder `find` has the files or raises
    return next(iter(files.values()))


def _lines(path: Path) -> list[str]:
    text = read_text(path, MOST_BYTES, argument="text", unpack=True)
    # Only "\n" ends a row: the files hold other characters that splitlines would break at.
    return text.split("\n")


def _without_label(row: str) -> str:
    """The sentence of "label<TAB>text", "text<TAB>label" or "label text"."""
    cells = row.split("\t")
    if len(cells) > 1:
        return max(cells, key=len)
    label, _, rest = row.partition(" ")
    return rest if label in ("0", "1") else row


def random_table(sentences: Sequence[Sequence[str]], d: int) -> dict[str, Float[Array, "d"]]:
    """A fixed Gaussian vector with variance 1/d for each word of a text."""
    words = sorted({word for sentence in sentences for word in sentence})
    rows = normal(stream(0, "token-table"), (len(words), d)) / np.sqrt(d)
    return dict(zip(words, rows, strict=True))


def vectors_file() -> tuple[Path, str]:
    """The file of pretrained vectors in the data folder, and its sha256."""
    folder = data_folder()
    path = (folder or Path()) / VECTORS_FILE
    if folder is None or not path.is_file():
        raise BadArgument(
            "vectors",
            VECTORS_FILE,
            f"{path} is not a file",
            fix=f"put word vectors there (a word and its numbers per line) and set {VARIABLE}",
        )
    return path, sha256_of(path).hex()


def read_vectors(path: Path) -> dict[str, Float[Array, "d"]]:
    """Word vectors as word2vec and GloVe write them; a first line with two counts is skipped."""
    table: dict[str, Array] = {}
    for number, line in enumerate(_lines(path), 1):
        word, *numbers = line.split() or [""]
        if not numbers or (number == 1 and len(numbers) == 1):
            continue
        table[word] = _vector(path, number, numbers)
    lengths = {len(row) for row in table.values()}
    if len(lengths) != 1:
        problem = f"{path} has vectors of lengths {brief(sorted(lengths))}"
        raise BadArgument("vectors", path.name, problem, fix="use one length")
    return table


def _vector(path: Path, line: int, numbers: list[str]) -> Float[Array, "d"]:
    try:
        row = np.array(numbers, np.float64)
    except ValueError:
        row = np.array(np.nan)
    # NumPy reads 1_000 as a thousand; `parse_number` would take minutes for millions of words.
    if not np.isfinite(row).all() or any("_" in number for number in numbers):
        problem = f"{path}, line {line} is not a vector of finite numbers"
        raise BadArgument("vectors", path.name, problem, fix="mend that line")
    return row


def embedded(
    sentences: Sequence[Sequence[str]], table: dict[str, Float[Array, "d"]], most: int
) -> Float[Array, "n T d"]:
    """The first `most` words that have a vector, padded with zero tokens; empty ones left out."""
    kept = [[table[word] for word in words if word in table][:most] for words in sentences]
    kept = [rows for rows in kept if rows]
    if not kept:
        raise BadArgument("vectors", "table", "has none of the words", fix="use other vectors")
    d = len(kept[0][0])
    x = np.zeros((len(kept), most, d))
    for i, rows in enumerate(kept):
        x[i, : len(rows)] = rows
    return x
