"""Sentences in the formats of local files, and word vectors."""

from __future__ import annotations

import gzip
import hashlib

import numpy as np
import pytest

from headcount.core import BadArgument
from headcount.data import _files as files
from headcount.data._files import FileSet
from headcount.data._text import (
    chosen_text,
    embedded,
    load_sentences,
    random_table,
    read_vectors,
    vectors_file,
)


def text_set(folder, name, content, monkeypatch):
    """A folder with one text file, and the set that knows it."""
    (folder / "imdb").mkdir()
    data = gzip.compress(content.encode()) if name.endswith(".gz") else content.encode()
    (folder / "imdb" / name).write_bytes(data)
    monkeypatch.setenv(files.VARIABLE, str(folder))
    return FileSet("imdb", {name: hashlib.sha256(data).hexdigest()}, {}, ())


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.tsv.gz", "label\ttext\n1\tIt's a GOOD film. Really it is!<br />Yes, it is so good\n"),
        ("a.txt", "It's a good film. Really it is!\t1\nYes, it is so good\t0\n"),
        ("stsa", "1 it's a good film\n0 really it is\n0 yes, it is so good\n"),
    ],
)
def test_formats(tmp_path, monkeypatch, name, content):
    source = text_set(tmp_path, name, content, monkeypatch)
    assert load_sentences("imdb", 4, source) == [
        ["it's", "a", "good", "film"],
        ["yes", "it", "is", "so", "good"],
    ]
    assert ["really", "it", "is"] in load_sentences("imdb", 3, source)


def test_only_a_newline_ends_a_row(tmp_path, monkeypatch):
    source = text_set(tmp_path, "a.txt", "one two\x85three four\t1\n", monkeypatch)
    assert load_sentences("imdb", 1, source) == [["one", "two", "three", "four"]]


def test_the_sample_ships_and_is_what_auto_means_without_a_folder(monkeypatch, tmp_path):
    monkeypatch.delenv(files.VARIABLE, raising=False)
    assert chosen_text("auto") == "sample"
    assert len(load_sentences("sample")) >= 120
    monkeypatch.setattr(files, "cache_folder", lambda source: tmp_path / source.name)
    with pytest.raises(BadArgument, match="no address is known"):
        chosen_text("imdb")
    monkeypatch.setenv(files.VARIABLE, str(tmp_path))
    assert chosen_text("auto") == "sample"
    (tmp_path / "imdb").mkdir()
    with pytest.raises(BadArgument, match="is missing"):
        chosen_text("auto")


def test_vectors_from_a_file(tmp_path, monkeypatch):
    monkeypatch.setenv(files.VARIABLE, str(tmp_path))
    with pytest.raises(BadArgument, match=r"vectors.txt is not a file"):
        vectors_file()
    (tmp_path / "vectors.txt").write_text("2 3\ngood 1 2 3\nfilm 0 0 -1.5\n", encoding="utf-8")
    path, checksum = vectors_file()
    assert checksum == hashlib.sha256(path.read_bytes()).hexdigest()
    x = embedded([["a", "good", "film"], ["nothing"], ["film"]], read_vectors(path), most=2)
    np.testing.assert_array_equal(x, [[[1, 2, 3], [0, 0, -1.5]], [[0, 0, -1.5], [0, 0, 0]]])
    path.write_text("good 1 2\nfilm 1\n", encoding="utf-8")
    with pytest.raises(BadArgument, match=r"lengths \[1, 2\]"):
        read_vectors(path)
    for numbers in ("1 x", "1 inf", "1_0 2"):
        path.write_text(f"good {numbers}\n", encoding="utf-8")
        with pytest.raises(BadArgument, match="line 1 is not a vector of finite numbers"):
            read_vectors(path)
    with pytest.raises(BadArgument, match="none of the words"):
        embedded([["a"]], {"b": np.ones(2)}, 3)


def test_a_random_table_is_fixed_and_has_norms_near_one():
    table = random_table([["b", "a"], ["c", "a"]], 400)
    again = random_table([["c", "b", "a"]], 400)
    assert list(table) == ["a", "b", "c"]
    for word, row in table.items():
        np.testing.assert_array_equal(row, again[word])
        assert abs(np.linalg.norm(row) - 1) < 0.2
