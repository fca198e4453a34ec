"""Time series from CSV files of the user's."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path

import numpy as np
from jaxtyping import Float

from ..core import Array, BadArgument, check_choice, check_count, check_fraction
from ..core._reading import parse_number, read_text
from ._base import Dataset

MISSING = ("error", "interpolate")
MOST_BYTES = 1 << 30
_NO_VALUE = ("", "NA", "NaN", "nan")


def read_series(
    path: str | Path, column: str | None = None, missing: str = "error"
) -> Float[Array, "length"]:
    """One column of a CSV file with a header line; the last column unless named.

    missing: what to do with empty cells, "error" or "interpolate" (linearly between neighbours).
    Every row must have a cell for each name in the header; blank lines are passed over.
    """
    check_choice("missing", missing, MISSING)
    if not str(path):
        raise BadArgument("path", None, "is needed, a CSV file", fix="for example path=series.csv")
    rows = _rows(path)
    if len(rows) < 2:
        raise BadArgument("path", str(path), "has no rows below its header", fix="check the file")
    header = _header(path, *rows[0])
    index = len(header) - 1 if column is None else _column(header, column)
    if column is None and (_is_number(header[-1]) or header[-1] in _NO_VALUE):
        problem = f"has {header[-1]!r} where the name of the last column belongs"
        fix = "put a line with names above it, or name the column"
        raise _wrong(path, rows[0][0], problem, fix)
    values = np.array([_number(path, line, row, index, len(header)) for line, row in rows[1:]])
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


def _rows(path: str | Path) -> list[tuple[int, list[str]]]:
    """The rows that are not blank, each with the number of its (last) line."""
    text = read_text(path, MOST_BYTES, argument="path")
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        return [
            (reader.line_num, row) for row in reader if len(row) > 1 or any(map(str.strip, row))
        ]
    except csv.Error as error:
        raise _wrong(path, reader.line_num, f"is no line of a CSV file: {error}") from None


def _header(path: str | Path, line: int, row: list[str]) -> list[str]:
    names = [name.strip() for name in row]
    if all(_is_number(name) for name in names):
        problem = "holds only numbers, where the names of the columns belong"
        raise _wrong(path, line, problem, fix="put a line with names above it")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise _wrong(path, line, f"names a column {twice[0]!r} twice", fix="rename one of them")
    return names


def _is_number(cell: str) -> bool:
    try:
        parse_number(cell)
    except ValueError:
        return False
    return True


def _column(header: list[str], column: str) -> int:
    check_choice("column", column, header)
    return header.index(column)


def _number(path: str | Path, line: int, row: list[str], index: int, cells: int) -> float:
    if len(row) != cells:
        raise _wrong(path, line, f"has {len(row)} cells where the header has {cells}")
    cell = row[index].strip()
    if cell in _NO_VALUE:
        return math.nan
    try:
        return parse_number(cell)
    except ValueError:
        raise _wrong(path, line, f"holds {cell[:40]!r}, not a finite number") from None


def _wrong(path: str | Path, line: int, problem: str, fix: str = "mend that line") -> BadArgument:
    return BadArgument("path", str(path), f"line {line} {problem}", fix=fix)


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
