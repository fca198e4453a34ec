"""The one way in which Headcount reads a file that somebody else made: regular, bounded, strict."""

import gzip
import io
import json
import math
import os
import re
import stat
import zlib
from pathlib import Path
from typing import Any

from ._errors import BadArgument

_MARKS = {"UTF-32": (b"\xff\xfe\0\0", b"\0\0\xfe\xff"), "UTF-16": (b"\xff\xfe", b"\xfe\xff")}
"""The first bytes of texts in other encodings."""


def read_bytes(
    path: str | Path,
    most: int,
    *,
    argument: str = "file",
    fix: str = "check the path",
    unpack: bool = False,
) -> bytes:
    """All of a regular file of at most `most` bytes; anything else is a `BadArgument`.

    A pipe or a device is told, not waited for. With `unpack` the content of a gzip file is meant,
    and `most` bounds that as well.
    """

    def refused(problem: str) -> BadArgument:
        return BadArgument(argument, str(path), problem, fix=fix)

    try:
        with open(path, "rb", opener=_without_waiting) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise refused("is not a file")
            data = file.read(most + 1)
        if unpack and data[:2] == b"\x1f\x8b":
            data = gzip.GzipFile(fileobj=io.BytesIO(data)).read(most + 1)
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        raise refused("is not a file") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise refused(f"is a damaged gzip file ({error})") from None
    except (OSError, ValueError) as error:  # ValueError: a null byte in the name
        raise refused(f"cannot be read ({getattr(error, 'strerror', None) or error})") from None
    if len(data) > most:
        raise refused(f"holds more than {most} bytes")
    return data


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def read_text(
    path: str | Path,
    most: int,
    *,
    argument: str = "file",
    fix: str = "check the path",
    unpack: bool = False,
) -> str:
    """The text of such a file, UTF-8 with or without a byte order mark, its newlines untouched."""
    data = read_bytes(path, most, argument=argument, fix=fix, unpack=unpack)
    for name, marks in _MARKS.items():
        if data.startswith(marks):
            raise BadArgument(argument, str(path), f"is in {name}", fix="save it as UTF-8")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        problem = f"line {line} is not UTF-8 (perhaps Latin-1: byte {data[error.start]:#04x})"
        raise BadArgument(argument, str(path), problem, fix="save it as UTF-8") from None


def read_json(
    path: str | Path, most: int, *, argument: str = "file", fix: str = "check the file"
) -> Any:
    """What `parse_json` finds in such a file."""
    text = read_text(path, most, argument=argument, fix=fix)
    try:
        return parse_json(text)
    except ValueError as error:
        raise BadArgument(argument, str(path), f"is not JSON ({error})", fix=fix) from None


def parse_json(text: str) -> Any:
    """JSON with finite numbers, no name twice and no endless nesting; else a ValueError.

    >>> parse_json('{"a": 1, "a": 2}')
    Traceback (most recent call last):
        ...
    ValueError: 'a' stands there twice
    """
    try:
        return json.loads(
            text, object_pairs_hook=_once, parse_float=_finite, parse_constant=_finite
        )
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"{name!r} stands there twice")
        found[name] = value
    return found


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is not a finite number")
    return value


_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def parse_number(text: str) -> float:
    """A finite decimal number in ASCII digits; `1_000`, `inf` and `٣` are a ValueError."""
    if not text.isascii() or not _NUMBER.fullmatch(text):
        raise ValueError(f"{text!r} is not a number")
    return _finite(text)
