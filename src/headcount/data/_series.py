"""Time series from CSV files of the user's."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from ..core import Array, BadArgument, check_choice, check_count, check_fraction
from ._base import Dataset

MISSING = ("error", "interpolate")


def _existing(argument: str, path: str | Path) -> Path:
    found = Path(path)
    if not str(path):
        fix = f"for example {argument}=series.csv"
        raise BadArgument(argument, None, "is needed, a CSV file", fix=fix)
    if not found.is_file():
        raise BadArgument(argument, str(path), "is not a file", fix="check the path")
    return found


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
