"""Result files: ordinary HDF5 behind a 512-byte header that vouches for every byte.

The header (HDF5's own user block, so any HDF5 tool opens the file) holds the format version and
a sha256 of all that follows. It is checked before HDF5 sees a byte, so a damaged file is
recognised as such whichever bit flipped.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from .. import core
from ..core import BadArgument
from ..core._files import TEMPORARY_SUFFIX
from ._errors import CorruptFile, NewerFormat, StorageError

FORMAT = 1
"""Version of the results format; a reader refuses larger ones."""

HEADER_BYTES = 512
_HEADER = re.compile(
    rb"headcount format=(\d+) kind=([a-z]+) sha256=([0-9a-f]{64}) bytes=(\d+) crc=([0-9a-f]{8})\n"
)


def write_file(path: Path, kind: str, arrays: Mapping[str, Any], record: Mapping[str, Any]) -> None:
    """Write named arrays and a JSON record to `path`, all or nothing."""
    write_atomically(path, encode(kind, arrays, record))


def encode(kind: str, arrays: Mapping[str, Any], record: Mapping[str, Any]) -> bytes:
    """The bytes of a result file."""
    buffer = io.BytesIO()
    with h5py.File(buffer, "w", userblock_size=HEADER_BYTES) as file:
        payload = file.create_group("payload")
        for name in sorted(arrays):
            payload.create_dataset(name, data=numeric(name, arrays[name]))
        file.create_dataset("record", data=json.dumps(record, sort_keys=True))
    body = buffer.getvalue()[HEADER_BYTES:]
    digest = hashlib.sha256(body).hexdigest()
    line = f"headcount format={FORMAT} kind={kind} sha256={digest} bytes={len(body)} "
    line += f"crc={zlib.crc32(line.encode()):08x}\n"
    return line.encode().ljust(HEADER_BYTES, b"\0") + body


def read_file(path: Path, kind: str) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays and the record of a file, after every byte was checked."""
    data = path.read_bytes()
    header = _HEADER.match(data[:HEADER_BYTES])
    if header is None:
        raise CorruptFile(path, "no valid header")
    if zlib.crc32(data[: header.start(5) - len("crc=")]) != int(header[5], 16):
        raise CorruptFile(path, "damaged header")
    if int(header[1]) > FORMAT:
        raise NewerFormat(path, int(header[1]), FORMAT)
    if header[2] != kind.encode():
        raise CorruptFile(path, f"holds a {header[2].decode()}, not a {kind}")
    body = data[HEADER_BYTES:]
    if data[header.end() : HEADER_BYTES].strip(b"\0") or len(body) != int(header[4]):
        raise CorruptFile(path, f"{len(body)} bytes instead of {int(header[4])}")
    if hashlib.sha256(body).hexdigest() != header[3].decode():
        raise CorruptFile(path, "checksum does not match")
    with h5py.File(io.BytesIO(data), "r") as file:
        arrays = {name: np.asarray(item[()]) for name, item in file["payload"].items()}
        record = json.loads(file["record"][()])
    return arrays, record


def numeric(name: str, value: Any) -> np.ndarray:
    """`value` as an array of real numbers, whole numbers or truth values."""
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise BadArgument(
            name, value, f"has dtype {array.dtype}", fix="store real numbers, integers or booleans"
        )
    return array


def write_atomically(path: Path, data: bytes, *, sync: bool = True) -> None:
    """Replace `path` by `data`, all or nothing; what prevents it is a `StorageError`."""
    try:
        core.write_atomically(path, data, sync=sync)
    except OSError as error:
        raise StorageError.at(path, error.strerror or str(error)) from error


def remove_leftovers(path: Path) -> None:
    """Delete temporary files of `path` left by a killed process; call while owning `path`."""
    for leftover in path.parent.glob(f"{path.name}.*{TEMPORARY_SUFFIX}"):
        leftover.unlink(missing_ok=True)
