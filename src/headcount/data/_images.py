"""Images of handwritten digits: MNIST, and a small set that ships with Headcount."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from ..core import Array, BadArgument, check_choice, check_count, check_shape
from ..core._reading import read_bytes
from ._files import FileSet, ensure, fetch, find

MNIST = FileSet(
    name="mnist",
    files={
        "train-images-idx3-ubyte.gz": (
            "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"
        ),
        "train-labels-idx1-ubyte.gz": (
            "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"
        ),
        "t10k-images-idx3-ubyte.gz": (
            "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"
        ),
        "t10k-labels-idx1-ubyte.gz": (
            "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"
        ),
    },
    alternatives={
        "train-images-idx3-ubyte": (
            "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"
        ),
        "train-labels-idx1-ubyte": (
            "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"
        ),
        "t10k-images-idx3-ubyte": (
            "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"
        ),
        "t10k-labels-idx1-ubyte": (
            "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"
        ),
    },
    mirrors=(
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
    ),
)
"""LeCun, Cortes and Burges' handwritten digits: 60000 to train, 10000 to test, 28 x 28."""

IMAGE_SETS = ("mnist", "digits")
"""Sets of images by name."""
IMAGE_CHOICES = ("auto", *IMAGE_SETS)
"""auto: MNIST where it is at hand, else the digits that ship with Headcount."""

_DIGITS_TEST = 297
"""The last images of the small set, for testing."""
_LARGEST_GREY = {"mnist": 255.0, "digits": 16.0}
_PREFIXES = {"train": "train", "test": "t10k"}
_AGAIN = "download the file again"
MOST_BYTES = 1 << 30
"""Of an idx file, packed and unpacked; the training images of MNIST have 47 MB."""
MOST_AXES = 8
_IDX_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


class Images(NamedTuple):
    """Grey images with values in [0, 1] and their digits."""

    images: Float[Array, "n height width"]
    digits: Int[Array, "n"]


def chosen_images(choice: str, source: FileSet = MNIST, *, download: bool = True) -> str:
    """The image set that a choice stands for on this machine; decided before any work.

    MNIST asked for by name is fetched now, unless `download` is off.
    """
    check_choice("dataset", choice, IMAGE_CHOICES)
    if choice == "mnist":
        ensure(source, download=download)
    if choice != "auto":
        return choice
    return "digits" if find(source) is None else "mnist"


def load_images(
    name: str,
    split: str = "train",
    digits: Sequence[int] | None = None,
    source: FileSet = MNIST,
) -> Images:
    """The images of a set, optionally some digits only.

    "mnist" is taken from HEADCOUNT_DATA, the cache or the network; "digits" is always there: 1500
    images of 8 x 8 to train and 297 to test.
    """
    check_choice("name", name, IMAGE_SETS)
    check_choice("split", split, tuple(_PREFIXES))
    for digit in digits or ():
        check_choice("digits", digit, tuple(range(10)))
    found = _mnist(split, source) if name == "mnist" else _small(split)
    if digits is not None:
        keep = np.isin(found.digits, list(digits))
        found = Images(found.images[keep], found.digits[keep])
    return Images(found.images / _LARGEST_GREY[name], found.digits)


def _mnist(split: str, source: FileSet) -> Images:
    files, prefix = fetch(source), _PREFIXES[split]
    images = read_idx(files[f"{prefix}-images-idx3-ubyte.gz"])
    labels = read_idx(files[f"{prefix}-labels-idx1-ubyte.gz"])
    check_shape("images", images, (None, None, None))
    check_shape("labels", labels, (len(images),))
    return Images(images, labels.astype(np.int64))


def _small(split: str) -> Images:
    folder = resources.files(__package__) / "files"
    with resources.as_file(folder) as path:
        images = read_idx(path / "digits-images-idx3-ubyte.gz")
        labels = read_idx(path / "digits-labels-idx1-ubyte.gz").astype(np.int64)
    part = slice(-_DIGITS_TEST, None) if split == "test" else slice(-_DIGITS_TEST)
    return Images(images[part], labels[part])


def read_idx(path: str | Path) -> Array:
    """The array in an idx file (the format of MNIST), plain or compressed with gzip."""
    raw = read_bytes(path, MOST_BYTES, argument="path", fix=_AGAIN, unpack=True)

    def corrupt(problem: str) -> BadArgument:
        return BadArgument("path", str(path), problem, fix=_AGAIN)

    if len(raw) < 4 or raw[:2] != b"\0\0" or raw[2] not in _IDX_TYPES:
        raise corrupt("is not an idx file")
    dtype, axes = np.dtype(_IDX_TYPES[raw[2]]), raw[3]
    if not 1 <= axes <= MOST_AXES:
        raise corrupt(f"has {axes} axes, not 1 to {MOST_AXES}")
    start = 4 + 4 * axes
    if len(raw) < start:
        raise corrupt("ends inside its header")
    shape = struct.unpack(f">{axes}I", raw[4:start])
    if 0 in shape:
        raise corrupt("is empty")
    expected = start + math.prod(shape) * dtype.itemsize
    if len(raw) != expected:
        raise corrupt(f"has {len(raw)} bytes where its header says {expected}")
    return np.frombuffer(raw, dtype, offset=start).reshape(shape).astype(dtype.newbyteorder("="))


def patches(images: Float[Array, "n height width"], size: int) -> Float[Array, "n T d"]:
    """Square patches as tokens, row by row: T = (height/size)(width/size), d = size^2."""
    check_count("size", size)
    check_shape("images", images, (None, None, None))
    n, height, width = np.shape(images)
    if height % size or width % size:
        raise BadArgument(
            "size", size, f"does not divide {height} x {width}", fix="use a common divisor"
        )
    grid = np.asarray(images).reshape(n, height // size, size, width // size, size)
    return grid.transpose(0, 1, 3, 2, 4).reshape(n, -1, size * size)
