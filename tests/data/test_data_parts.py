"""Sentences in the formats of local files, and word vectors."""

from __future__ import annotations

import dataclasses
import functools
import gzip
import hashlib
import http.server
import struct
import threading

import numpy as np
import pytest

from headcount.core import BadArgument
from headcount.data import _files as files
from headcount.data import load_images
from headcount.data._files import FileSet
from headcount.data._given import Series
from headcount.data._images import MNIST, chosen_images, read_idx
from headcount.data._series import read_series, windows_of_series
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


def write(tmp_path, text):
    path = tmp_path / "series.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_series_reads_the_last_or_a_named_column(tmp_path):
    path = write(tmp_path, "year,a, b\n1,10,5\n2,20,6\n\n3,30,7\n")
    np.testing.assert_array_equal(read_series(path), [5, 6, 7])
    np.testing.assert_array_equal(read_series(path, "a"), [10, 20, 30])
    with pytest.raises(BadArgument, match=r"column = 'c'.*year, a, b"):
        read_series(path, "c")


def test_missing_cells(tmp_path):
    path = write(tmp_path, "t,v\n1,1\n2,\n3,NA\n4,4\n")
    with pytest.raises(BadArgument, match="2 cells are empty"):
        read_series(path)
    np.testing.assert_allclose(read_series(path, missing="interpolate"), [1, 2, 3, 4])
    with pytest.raises(BadArgument, match="missing = 'drop'"):
        read_series(path, missing="drop")


BAD = [
    ("t,v\n", "no rows"),
    ("", "no rows"),
    ("t,v\n1,x\n", "line 2 holds 'x', not a finite number"),
    ("date,value\nx,1,234.5\n", "line 2 has 3 cells where the header has 2"),
    ("t,v\n1,1\n2\n", "line 3 has 1 cells where the header has 2"),
    ("t,v\n\n\n1,1_000\n", "line 4 holds '1_000', not a finite number"),
    ('t,v\n"a\nb",1\n1,inf\n', "line 4 holds 'inf', not a finite number"),
    ("v\n1e999\n", "line 2 holds '1e999', not a finite number"),
    ("1,2.5\n2,3.5\n", "line 1 holds only numbers, where the names of the columns belong"),
    ("\nv,t,v\n1,1,1\n", "line 2 names a column 'v' twice"),
    ("t,,\n1,1,1\n", "line 1 names a column '' twice"),
    (f"t,v\n1,{'9' * 200_000}\n", "line 2 is no line of a CSV file: field larger than"),
    ('t,v\n1,"2\n', "line 2 is no line of a CSV file: unexpected end of data"),
]


@pytest.mark.parametrize(
    ("text", "message"),
    BAD,
    ids=range(len(BAD)),
)
def test_bad_series_are_refused(tmp_path, text, message):
    with pytest.raises(BadArgument, match=message):
        read_series(write(tmp_path, text))


def test_a_series_in_another_encoding_is_told_by_its_name(tmp_path):
    path = tmp_path / "series.csv"
    for encoding, told in (("utf-16", "is in UTF-16"), ("latin-1", "line 1 is not UTF-8")):
        path.write_text("t,größe\n1,1\n2,2\n", encoding=encoding)
        with pytest.raises(BadArgument, match=f"{told}.*save it as UTF-8"):
            read_series(path)
    path.write_text("v,t\n1,1\n2,2\n", encoding="utf-8-sig")
    np.testing.assert_array_equal(read_series(path, "v"), [1, 2])


def test_a_row_of_empty_cells_is_a_missing_value(tmp_path):
    path = write(tmp_path, "t,v\n1,1\n,\n3,3\n")
    np.testing.assert_array_equal(read_series(path, missing="interpolate"), [1, 2, 3])


def test_windows_are_cut_in_time_and_standardised_by_training(tmp_path):
    values = np.arange(20.0) ** 1.5
    path = write(tmp_path, "v\n" + "\n".join(map(str, values)) + "\n")
    train, validation = windows_of_series(path, 3, validation=0.4)
    standard = (values - values[:12].mean()) / values[:12].std()
    assert train.x.shape == (9, 3, 1)
    assert validation.x.shape == (5, 3, 1)
    np.testing.assert_allclose(train.x[4, :, 0], standard[4:7])
    np.testing.assert_allclose(train.y, standard[3:12])
    np.testing.assert_allclose(validation.x[0, :, 0], standard[12:15])
    np.testing.assert_allclose(validation.y, standard[15:20])
    sparse, _ = windows_of_series(path, 3, validation=0.4, stride=4)
    np.testing.assert_allclose(sparse.x, train.x[::4])


def test_windows_refuse_what_does_not_fit(tmp_path):
    path = write(tmp_path, "v\n" + "1\n" * 20)
    with pytest.raises(BadArgument, match="constant training part"):
        windows_of_series(path, 2)
    with pytest.raises(BadArgument, match="does not fit twice"):
        windows_of_series(path, 4)
    with pytest.raises(BadArgument, match=r"validation = 1.0"):
        windows_of_series(path, 2, validation=1.0)
    with pytest.raises(BadArgument, match="stride = 0"):
        windows_of_series(path, 2, stride=0)


@pytest.mark.parametrize("clip", [False, True])
def test_directions_say_whether_the_next_value_goes_up(tmp_path, clip):
    values = [0.0, 5.0, 4.0, 4.0, 9.0, 1.0, 2.0, 0.0, 3.0, 8.0, 7.0, 1.0, 6.0, 2.0]
    path = write(tmp_path, "v\n" + "\n".join(map(str, values)) + "\n")
    shown = Series(path, 2, labels="direction", clip=clip, validation=0.3).sample(8, seed=0)
    plain = Series(path, 2, validation=0.3).sample(8, seed=0)
    train = np.array(values[:10])
    standard = (train - train.mean()) / train.std()
    for x, y, label in zip(plain.x, plain.y, shown.y, strict=True):
        at = next(
            i for i in range(8) if np.allclose(standard[i : i + 3], [*x[:, 0], y], atol=1e-12)
        )
        assert label == (-1.0 if values[at + 2] < values[at + 1] else 1.0)
    assert set(shown.y) == {-1.0, 1.0}
    with pytest.raises(BadArgument, match="labels = 'up'"):
        Series(path, 2, labels="up").sample(2, seed=0)


def idx_bytes(array, code=0x08):
    header = bytes([0, 0, code, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return header + array.astype(array.dtype.newbyteorder(">")).tobytes()


@pytest.mark.parametrize(("code", "dtype"), [(0x08, "u1"), (0x0B, "i2"), (0x0D, "f4")])
@pytest.mark.parametrize("compress", [True, False])
def test_idx_round_trip(tmp_path, code, dtype, compress):
    array = np.arange(24).reshape(2, 3, 4).astype(dtype)
    raw = idx_bytes(array, code)
    path = tmp_path / "data"
    path.write_bytes(gzip.compress(raw) if compress else raw)
    got = read_idx(path)
    np.testing.assert_array_equal(got, array)
    assert got.dtype == np.dtype(dtype)


def test_a_gzip_bomb_is_not_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr("headcount.data._images.MOST_BYTES", 10_000)
    (tmp_path / "bomb").write_bytes(gzip.compress(bytes(10**6)))
    with pytest.raises(BadArgument, match="holds more than 10000 bytes"):
        read_idx(tmp_path / "bomb")


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "is not an idx file"),
        (b"GIF89a", "is not an idx file"),
        (b"\0\0\x07\1", "is not an idx file"),
        (b"\0\0\x08\x40" + b"\0\0\0\1" * 64 + b"a", "has 64 axes, not 1 to 8"),
        (b"\0\0\x08\0a", "has 0 axes, not 1 to 8"),
        (b"\0\0\x08\2" + b"\0\0\0\0" + b"\xff" * 4, "is empty"),
        (b"\0\0\x08\3\0\0", "ends inside its header"),
        (idx_bytes(np.zeros((2, 2), "u1"))[:-1], "has 15 bytes where its header says 16"),
        (gzip.compress(idx_bytes(np.zeros(99, "u1")), mtime=0)[:-9], "damaged gzip"),
    ],
)
def test_corrupt_idx_files_are_refused(tmp_path, raw, message):
    path = tmp_path / "bad"
    path.write_bytes(raw)
    with pytest.raises(BadArgument, match=message):
        read_idx(path)


TINY = {
    "train-images-idx3-ubyte.gz": np.arange(4 * 16, dtype="u1").reshape(-1, 4, 4),
    "train-labels-idx1-ubyte.gz": np.array([3, 0, 1, 3], "u1"),
    "t10k-images-idx3-ubyte.gz": np.arange(2 * 16, dtype="u1").reshape(-1, 4, 4)[::-1],
    "t10k-labels-idx1-ubyte.gz": np.array([9, 0], "u1"),
}


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A data set like MNIST in a folder, with no cache and no folder named."""
    folder = tmp_path / "source"
    folder.mkdir()
    packed, plain = {}, {}
    for name, array in TINY.items():
        raw = idx_bytes(np.ascontiguousarray(array))
        data = gzip.compress(raw, mtime=0)
        (folder / name).write_bytes(data)
        packed[name] = hashlib.sha256(data).hexdigest()
        plain[name.removesuffix(".gz")] = hashlib.sha256(raw).hexdigest()
    monkeypatch.setattr(files, "cache_folder", lambda source: tmp_path / "cache" / source.name)
    monkeypatch.delenv(files.VARIABLE, raising=False)
    return folder, FileSet("mnist", packed, plain, mirrors=())


def test_the_named_folder_is_read_and_digits_are_selected(tiny, monkeypatch):
    folder, source = tiny
    monkeypatch.setenv(files.VARIABLE, str(folder))
    assert chosen_images("auto", source) == "mnist"
    everything = load_images("mnist", source=source)
    np.testing.assert_allclose(everything.images, TINY["train-images-idx3-ubyte.gz"] / 255)
    some = load_images("mnist", digits=(3, 1), source=source)
    np.testing.assert_array_equal(some.digits, [3, 1, 3])
    np.testing.assert_allclose(some.images, everything.images[[0, 2, 3]])
    np.testing.assert_array_equal(load_images("mnist", "test", source=source).digits, [9, 0])


def test_unpacked_files_in_a_folder_of_that_name_will_do(tiny, monkeypatch):
    folder, source = tiny
    for path in list(folder.iterdir()):
        path.with_suffix("").write_bytes(gzip.decompress(path.read_bytes()))
        path.unlink()
    folder.rename(folder.parent / "mnist")
    monkeypatch.setenv(files.VARIABLE, str(folder.parent))
    assert len(load_images("mnist", source=source).digits) == 4


def test_a_missing_file_is_named_with_its_checksum_and_nothing_else_is_used(tiny, monkeypatch):
    folder, source = tiny
    monkeypatch.setenv(files.VARIABLE, str(folder))
    lost = folder / "t10k-labels-idx1-ubyte.gz"
    lost.unlink()
    for choice in ("auto", "mnist"):
        with pytest.raises(BadArgument) as error:
            chosen_images(choice, source)
        for part in (str(lost), source.files[lost.name], "put the file there"):
            assert part in str(error.value)


@pytest.mark.parametrize("damage", [lambda raw: raw[:-5], lambda raw: raw[:-1] + b"!"])
def test_a_truncated_or_wrong_file_is_refused(tiny, monkeypatch, damage):
    folder, source = tiny
    monkeypatch.setenv(files.VARIABLE, str(folder))
    broken = folder / "train-images-idx3-ubyte.gz"
    broken.write_bytes(damage(broken.read_bytes()))
    for attempt in (
        lambda: chosen_images("auto", source),
        lambda: load_images("mnist", source=source),
    ):
        with pytest.raises(BadArgument, match="truncated or not the published") as error:
            attempt()
        assert str(broken) in str(error.value)
        assert source.files[broken.name] in str(error.value)


def test_a_folder_that_is_none_is_refused(tiny, monkeypatch):
    monkeypatch.setenv(files.VARIABLE, "/no/such/folder")
    with pytest.raises(BadArgument, match="is not a folder"):
        chosen_images("auto", tiny[1])


def test_without_mnist_auto_means_the_digits_that_ship(tiny):
    _, source = tiny
    assert chosen_images("auto", source) == "digits"
    assert chosen_images("digits", source) == "digits"


@pytest.fixture
def mirror(tiny):
    """The files of `tiny` behind a web server of this process."""
    folder, source = tiny

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            """Nothing on standard error."""

    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        address = f"http://127.0.0.1:{server.server_port}/"
        yield folder, FileSet("mnist", source.files, source.alternatives, (address,))
        server.shutdown()
        thread.join()


def test_a_download_goes_to_the_cache_and_is_used_from_there(mirror):
    folder, source = mirror
    assert chosen_images("mnist", source) == "mnist"
    for path in folder.iterdir():
        path.unlink()
    assert chosen_images("auto", source) == "mnist"
    np.testing.assert_array_equal(load_images("mnist", source=source).digits, [3, 0, 1, 3])


def test_a_wrong_download_is_refused(mirror, tmp_path):
    folder, source = mirror
    (folder / "train-images-idx3-ubyte.gz").write_bytes(b"something else")
    with pytest.raises(BadArgument, match="could not be downloaded") as error:
        chosen_images("mnist", source)
    assert source.files["train-images-idx3-ubyte.gz"] in str(error.value)
    assert str(tmp_path / "cache" / "mnist") in str(error.value)
    assert "--data-dir" in str(error.value)


def test_without_a_network_the_reason_is_two_words(mirror):
    _, source = mirror
    nowhere = dataclasses.replace(source, mirrors=("http://127.0.0.1:9/",))
    with pytest.raises(BadArgument, match=r"http://127\.0\.0\.1:9/: no connection\)"):
        files.fetch(nowhere)


def test_unknown_names_are_refused():
    with pytest.raises(BadArgument, match="choose from: auto, mnist, digits"):
        chosen_images("cifar")
    with pytest.raises(BadArgument, match="split = 'val'"):
        load_images("digits", "val")
    with pytest.raises(BadArgument, match="digits = 11"):
        load_images("digits", digits=[0, 11])
    with pytest.raises(BadArgument, match="is not a file"):
        read_idx("none")


def test_mnist_is_known_by_its_checksums():
    assert len(MNIST.files) == len(MNIST.alternatives) == 4
    assert all(len(value) == 64 for value in {**MNIST.files, **MNIST.alternatives}.values())
