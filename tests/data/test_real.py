"""Readers of real data, on files that the tests write themselves."""

from __future__ import annotations

import gzip
import struct

import numpy as np
import pytest

from headcount.core import BadArgument
from headcount.data import mnist, patches, read_idx, read_series, windows_of_series


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


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "is not an idx file"),
        (b"GIF89a", "is not an idx file"),
        (b"\0\0\x07\1", "is not an idx file"),
        (b"\0\0\x08\3\0\0", "ends inside its header"),
        (idx_bytes(np.zeros((2, 2), "u1"))[:-1], "has 15 bytes where its header says 16"),
        (gzip.compress(idx_bytes(np.zeros(99, "u1")))[:-9], "damaged gzip"),
    ],
)
def test_corrupt_idx_files_are_refused(tmp_path, raw, message):
    path = tmp_path / "bad"
    path.write_bytes(raw)
    with pytest.raises(BadArgument, match=message):
        read_idx(path)


def test_missing_files_are_named(tmp_path):
    with pytest.raises(BadArgument, match="is not a file"):
        read_idx(tmp_path / "none")
    with pytest.raises(BadArgument, match="has no t10k-images-idx3-ubyte or"):
        mnist(tmp_path, "test")
    with pytest.raises(BadArgument, match="split = 'val'"):
        mnist(tmp_path, "val")
    with pytest.raises(BadArgument, match="digits = 11"):
        mnist(tmp_path, digits=[0, 11])


def write_mnist(folder, digits):
    images = np.arange(len(digits) * 16, dtype="u1").reshape(-1, 4, 4)
    (folder / "train-images-idx3-ubyte").write_bytes(idx_bytes(images))
    labels = gzip.compress(idx_bytes(np.array(digits, "u1")))
    (folder / "train-labels-idx1-ubyte.gz").write_bytes(labels)
    return images


def test_mnist_reads_and_selects_digits(tmp_path):
    images = write_mnist(tmp_path, [3, 0, 1, 3])
    everything = mnist(tmp_path)
    np.testing.assert_allclose(everything.images, images / 255)
    some = mnist(tmp_path, digits=(3, 1))
    np.testing.assert_array_equal(some.digits, [3, 1, 3])
    np.testing.assert_allclose(some.images, images[[0, 2, 3]] / 255)


def test_patches_by_loop(tmp_path):
    images = np.random.default_rng(0).random((2, 4, 6))
    tokens = patches(images, 2)
    assert tokens.shape == (2, 6, 4)
    for row in range(2):
        for column in range(3):
            block = images[1, 2 * row : 2 * row + 2, 2 * column : 2 * column + 2]
            np.testing.assert_array_equal(tokens[1, 3 * row + column], block.ravel())
    with pytest.raises(BadArgument, match="size = 4: does not divide 4 x 6"):
        patches(images, 4)


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


@pytest.mark.parametrize(
    ("text", "message"),
    [("t,v\n", "no rows"), ("", "no rows"), ("t,v\n1,x\n", "line 2 holds 'x', not a number")],
)
def test_bad_series_are_refused(tmp_path, text, message):
    with pytest.raises(BadArgument, match=message):
        read_series(write(tmp_path, text))


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
