"""Readers for real data in a folder of the user's: MNIST (idx files) and time series (CSV)."""

from __future__ import annotations

import csv
import gzip
import math
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from ..core import Array, BadArgument, check_choice, check_count, check_fraction, check_shape
from ._base import Dataset

_IDX_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_MNIST_PREFIXES = {"train": "train", "test": "t10k"}
MISSING = ("error", "interpolate")


class Images(NamedTuple):
    """Grey images with values in [0, 1] and their digits."""

    images: Float[Array, "n height width"]
    digits: Int[Array, "n"]


def _existing(argument: str, path: str | Path) -> Path:
    found = Path(path)
    if not found.is_file():
        raise BadArgument(argument, str(path), "is not a file", fix="check the path")
    return found


def read_idx(path: str | Path) -> Array:
    """The array in an idx file (the format of MNIST), plain or compressed with gzip."""
    raw = _existing("path", path).read_bytes()

    def corrupt(problem: str) -> BadArgument:
        return BadArgument("path", str(path), problem, fix="download the file again")

    if raw[:2] == b"\x1f\x8b":
        try:
            raw = gzip.decompress(raw)
        except (EOFError, OSError) as error:
            raise corrupt(f"is a damaged gzip file ({error})") from error
    if len(raw) < 4 or raw[:2] != b"\0\0" or raw[2] not in _IDX_TYPES:
        raise corrupt("is not an idx file")
    dtype, axes = np.dtype(_IDX_TYPES[raw[2]]), raw[3]
    start = 4 + 4 * axes
    if len(raw) < start:
        raise corrupt("ends inside its header")
    shape = struct.unpack(f">{axes}I", raw[4:start])
    expected = start + math.prod(shape) * dtype.itemsize
    if len(raw) != expected:
        raise corrupt(f"has {len(raw)} bytes where its header says {expected}")
    return np.frombuffer(raw, dtype, offset=start).reshape(shape).astype(dtype.newbyteorder("="))


def mnist(folder: str | Path, split: str = "train", digits: Sequence[int] | None = None) -> Images:
    """MNIST from `folder` with its four usual files (.gz or not), optionally some digits only."""
    check_choice("split", split, tuple(_MNIST_PREFIXES))
    if digits is not None:
        for digit in digits:
            check_choice("digits", digit, tuple(range(10)))
    prefix = _MNIST_PREFIXES[split]
    images = read_idx(_mnist_file(folder, f"{prefix}-images-idx3-ubyte"))
    labels = read_idx(_mnist_file(folder, f"{prefix}-labels-idx1-ubyte"))
    check_shape("images", images, (None, None, None))
    check_shape("labels", labels, (len(images),))
    labels = labels.astype(np.int64)
    if digits is not None:
        keep = np.isin(labels, list(digits))
        images, labels = images[keep], labels[keep]
    return Images(images / 255.0, labels)


def _mnist_file(folder: str | Path, name: str) -> Path:
    for candidate in (Path(folder) / name, Path(folder) / f"{name}.gz"):
        if candidate.is_file():
            return candidate
    raise BadArgument(
        "folder", str(folder), f"has no {name} or {name}.gz", fix="put the MNIST files there"
    )


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


def read_series(
    path: str | Path, column: str | None = None, missing: str = "error"
) -> Float[Array, "length"]:
    """One column of a CSV file with a header line; the last column unless named.

    missing: what to do with empty cells, "error" or "interpolate" (linearly between neighbours).
    """
    check_choice("missing", missing, MISSING)
    with _existing("path", path).open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.reader(file) if row]
    if len(rows) < 2:
        raise BadArgument("path", str(path), "has no rows below its header", fix="check the file")
    header = [name.strip() for name in rows[0]]
    index = len(header) - 1 if column is None else _column(header, column)
    values = np.array([_number(path, line, row, index) for line, row in enumerate(rows[1:], 2)])
    empty = np.isnan(values)
    if not empty.any():
        return values
    if missing == "error" or empty.all():
        raise BadArgument(
            "missing", missing, f"{int(empty.sum())} cells are empty", fix='use "interpolate"'
        )
    places = np.arange(len(values))
    values[empty] = np.interp(places[empty], places[~empty], values[~empty])
    return values


def _column(header: list[str], column: str) -> int:
    check_choice("column", column, header)
    return header.index(column)


def _number(path: str | Path, line: int, row: list[str], index: int) -> float:
    cell: Any = row[index].strip() if index < len(row) else ""
    if cell in ("", "NA", "NaN", "nan"):
        return math.nan
    try:
        return float(cell)
    except ValueError as error:
        raise BadArgument(
            "path", str(path), f"line {line} holds {cell!r}, not a number", fix="mend that line"
        ) from error


def windows_of_series(
    path: str | Path,
    T: int,
    *,
    column: str | None = None,
    missing: str = "error",
    stride: int = 1,
    validation: float = 0.2,
) -> tuple[Dataset, Dataset]:
    """Windows x: (n, T, 1) with the next value as label: training, then later validation data.

    The series is cut once in time, so that no value is in both; all is standardised with the mean
    and deviation of the training part.
    """
    check_count("T", T)
    check_count("stride", stride)
    check_fraction("validation", validation)
    values = read_series(path, column, missing)
    cut = len(values) - round(validation * len(values))
    if min(cut, len(values) - cut) < T + 1:
        raise BadArgument(
            "T", T, f"does not fit twice into {len(values)} values", fix="use a shorter window"
        )
    mean, deviation = float(np.mean(values[:cut])), float(np.std(values[:cut]))
    if deviation == 0:
        raise BadArgument("path", str(path), "has a constant training part", fix="use other data")
    standard = (values - mean) / deviation
    return _windows(standard[:cut], T, stride), _windows(standard[cut:], T, stride)


def _windows(values: Float[Array, "length"], T: int, stride: int) -> Dataset:
    view = np.lib.stride_tricks.sliding_window_view(values, T + 1)[::stride]
    return Dataset(view[:, :T, None].copy(), view[:, T].copy())
