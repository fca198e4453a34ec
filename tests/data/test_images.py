"""Image files: readers, checksums, folders, downloads; on files that the tests make themselves."""

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
from headcount.data import load_images, patches
from headcount.data._files import FileSet
from headcount.data._images import MNIST, chosen_images, read_idx


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


def test_the_digits_that_ship_are_the_published_ones():
    train, test = load_images("digits"), load_images("digits", "test")
    assert train.images.shape == (1500, 8, 8)
    assert test.images.shape == (297, 8, 8)
    assert train.images.min() == 0
    assert train.images.max() == 1
    np.testing.assert_array_equal(train.digits[:10], range(10))
    whole = np.concatenate([train.images, test.images]) * 16
    assert int(whole.sum()) == 561718
    assert np.bincount(np.concatenate([train.digits, test.digits])).tolist() == [
        178, 182, 177, 183, 181, 182, 181, 179, 174, 180,
    ]  # fmt: skip


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
