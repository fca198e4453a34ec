"""Sentences as token numbers: a checkpoint's tokenizer.json, or the words of a text in order.

Padded sentences are x: (n, T, 2), int32: each token's number and 1, then rows of zeros.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float, Int, PRNGKeyArray

from ..core import Array, BadArgument, check_count
from ..core._reading import read_text

TOKENIZER_FILE = "tokenizer.json"
_AGAIN = "fetch the checkpoint again"
MOST_BYTES = 1 << 28
"""Of a tokenizer.json; the largest public ones have 35 MB."""
WIDTHS = (16, 32, 48, 64, 96, 128, 192, 256, 384, 512)
"""Padded lengths: so many programs are compiled at most."""
_POOL = 32
"""Batches that are sorted by length together, so that sentences of one batch are alike."""
_WORD = re.compile(r"\w+|[^\w\s]")


class Tokens(NamedTuple):
    """Token numbers of sentences, and how many sentences were cut at the longest length."""

    numbers: list[list[int]]
    truncated: int


class Batch(NamedTuple):
    """Samples padded to one width; `weight` is 0 for those that only fill the batch up."""

    index: Int[Array, "b"]
    x: Int[Array, "b T 2"]
    weight: Float[Array, "b"]


def tokenise(
    folder: str | Path, sentences: Sequence[str], *, vocabulary: int, longest: int
) -> Tokens:
    """Token numbers by a checkpoint's own tokenizer.json, its special tokens added.

    A sentence of more than `longest` tokens loses its end, but not the final special token; how
    many did is told. A tokenizer with numbers beyond `vocabulary`, or without special tokens
    around a sentence, is not that of the checkpoint.
    """
    check_count("longest", longest, least=3)
    path = Path(folder) / TOKENIZER_FILE
    tokenizer = _read_tokenizer(path, vocabulary)
    try:
        tokenizer.no_padding()
        tokenizer.no_truncation()
        found = [code.ids for code in tokenizer.encode_batch(list(sentences))]
        tokenizer.enable_truncation(longest)
        cut = [i for i, ids in enumerate(found) if len(ids) > longest]
        shorter = tokenizer.encode_batch([sentences[i] for i in cut])
    except Exception as error:  # plain ones of the library, such as for an unknown word
        raise _unusable(path, f"cannot read the sentences ({error})") from error
    for i, code in zip(cut, shorter, strict=True):
        found[i] = code.ids
    # The vocabulary was checked, but special tokens may have any number.
    _check_largest(path, max((n for ids in found for n in ids), default=-1), vocabulary)
    return Tokens(found, len(cut))


def tokenise_words(sentences: Sequence[str], *, vocabulary: int, longest: int) -> Tokens:
    """Lower-case words by their rank in the alphabet: for an encoder without a tokenizer."""
    words = [_WORD.findall(sentence.lower()) for sentence in sentences]
    ranks = {word: i % vocabulary for i, word in enumerate(sorted(set().union(*words)))}
    found = [[ranks[word] for word in line[:longest]] or [0] for line in words]
    return Tokens(found, sum(len(line) > longest for line in words))


def _read_tokenizer(path: Path, vocabulary: int) -> Any:
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise _unusable(path, "needs the package tokenizers", "pip install tokenizers") from error
    if not path.is_file():
        raise _unusable(path, "is missing", "put the checkpoint's tokenizer.json there")
    text = read_text(path, MOST_BYTES, argument="tokenizer", fix=_AGAIN)
    try:
        tokenizer = Tokenizer.from_str(text)
    except Exception as error:  # the library raises plain Exception for what it cannot parse
        raise _unusable(path, f"is not a tokenizer ({error})", _AGAIN) from error
    largest = max(tokenizer.get_vocab(with_added_tokens=True).values(), default=-1)
    _check_largest(path, largest, vocabulary)
    if tokenizer.num_special_tokens_to_add(False) < 2:
        raise _unusable(path, "puts no special tokens around a sentence")
    return tokenizer


def _check_largest(path: Path, largest: int, vocabulary: int) -> None:
    if largest >= vocabulary:
        table = f"the checkpoint's table has {vocabulary} rows"
        raise _unusable(path, f"has token {largest}, but {table}")


def _unusable(
    path: Path, problem: str, fix: str = "use the tokenizer.json that came with the checkpoint"
) -> BadArgument:
    return BadArgument("tokenizer", path.name, f"{path} {problem}", fix=fix)


def restrict_vocabulary(
    *groups: list[list[int]],
) -> tuple[Int[Array, "used"], tuple[list[list[int]], ...]]:
    """The numbers that occur, sorted, and the same sentences with each number's rank among them.

    Rows of a table that no sentence has get no gradient: training with the rows that occur is the
    same, and the optimiser has less to carry.
    """
    used = np.unique(np.concatenate([np.concatenate(group) for group in groups]))
    rank = {int(number): i for i, number in enumerate(used)}
    return used, tuple([[rank[number] for number in line] for line in group] for group in groups)


def padded_width(length: int, longest: int) -> int:
    """The least of WIDTHS that holds `length`, but never more than `longest`."""
    return min([w for w in WIDTHS if w >= length] + [longest])


def pad(numbers: Sequence[Sequence[int]], width: int) -> Int[np.ndarray, "n T 2"]:
    """Sentences as (token, 1) rows followed by zeros."""
    x = np.zeros((len(numbers), width, 2), np.int32)
    for row, line in zip(x, numbers, strict=True):
        row[: len(line), 0] = line
        row[: len(line), 1] = 1
    return x


def batches(
    numbers: Sequence[Sequence[int]],
    size: int,
    longest: int,
    key: PRNGKeyArray | None = None,
) -> Iterator[Batch]:
    """All sentences once, `size` at a time, each batch padded to its longest sentence's width.

    With a key the order is random: sentences are shuffled, sorted by length within pools of 32
    batches, and the batches shuffled again. Without one they come sorted by length.
    """
    check_count("size", size)
    lengths = np.array([len(line) for line in numbers])
    if lengths.max() > longest:
        problem = f"is a sentence of more than {longest} tokens"
        raise BadArgument("numbers", int(lengths.max()), problem, fix="truncate it in tokenise")
    if key is None:
        groups = _cut(np.argsort(lengths, kind="stable"), size)
    else:
        first, second = jax.random.split(key)
        order = np.asarray(jax.random.permutation(first, len(lengths)))
        pools = _cut(order, size * _POOL)
        groups = [g for p in pools for g in _cut(p[np.argsort(lengths[p], kind="stable")], size)]
        groups = [groups[i] for i in np.asarray(jax.random.permutation(second, len(groups)))]
    for group in groups:
        index = np.resize(group, size)
        width = padded_width(int(lengths[group].max()), longest)
        weight = (np.arange(size) < len(group)).astype(np.float32)
        yield Batch(index, pad([numbers[i] for i in index], width), weight)


def _cut(order: Int[np.ndarray, "n"], size: int) -> list[Int[np.ndarray, "m"]]:
    return [order[i : i + size] for i in range(0, len(order), size)]
