"""Result files: ordinary HDF5 behind a 512-byte header that vouches for every byte.

The header (HDF5's own user block, so any HDF5 tool opens the file) holds the format version, what
the file is about (its address), where it was made (versions and CPU) and a sha256 of all that
follows. It is checked before HDF5 sees a byte, so a damaged file is recognised as such whichever
bit flipped, and so is a good file under another's name.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from ..core import BadArgument
from ..core._files import write_atomically as write_bytes
from ..core._inside import read_inside
from ._errors import CorruptFile, NewerFormat, StorageError
from ._record import origin

FORMAT = 2
"""Version of the results format; a reader refuses larger ones. Format 1 had no address."""

HEADER_BYTES = 512
BEGINNING = b"headcount format="
NUMBERS = "biuf"
"""Kinds of dtypes that are stored: truth values, integers, real numbers."""
_HEADER = re.compile(
    rb"headcount format=(?P<format>\d+) kind=(?P<kind>[a-z]+) "
    rb"(?:address=(?P<address>[0-9a-f]{64}) outcome=(?P<outcome>[a-z-]+) origin=(?P<origin>\S+) )?"
    rb"sha256=(?P<sha256>[0-9a-f]{64}) bytes=(?P<bytes>\d+) crc=(?P<crc>[0-9a-f]{8})\n"
)
_BAD_DISK = {
    errno.EIO,
    errno.EISDIR,
    errno.EBADMSG,
    errno.ELOOP,
    getattr(errno, "EUCLEAN", errno.EIO),
}


@dataclass(frozen=True)
class Header:
    """What a file says of itself; `outcome` and `origin` are None in files of format 1."""

    outcome: str | None
    origin: str | None


def write_file(
    path: Path, kind: str, address: str, arrays: Mapping[str, Any], record: Mapping[str, Any]
) -> None:
    """Write named arrays and a JSON record to `path`, all or nothing; its folder must exist."""
    write_atomically(path, encode(kind, address, arrays, record), make_folder=False)


def encode(kind: str, address: str, arrays: Mapping[str, Any], record: Mapping[str, Any]) -> bytes:
    """The bytes of a result file."""
    buffer = io.BytesIO()
    with h5py.File(buffer, "w", userblock_size=HEADER_BYTES) as file:
        payload = file.create_group("payload")
        for name in sorted(arrays):
            payload.create_dataset(name, data=numeric(name, arrays[name]))
        file.create_dataset("record", data=json.dumps(record, sort_keys=True))
    body = buffer.getvalue()[HEADER_BYTES:]
    digest = hashlib.sha256(body).hexdigest()
    line = f"headcount format={FORMAT} kind={kind} address={address} "
    line += f"outcome={record.get('outcome', '-')} origin={origin()} "
    line += f"sha256={digest} bytes={len(body)} "
    line += f"crc={zlib.crc32(line.encode()):08x}\n"
    return line.encode().ljust(HEADER_BYTES, b"\0") + body


def read_file(
    path: Path, kind: str, address: str
) -> tuple[dict[str, np.ndarray], dict[str, Any], Header]:
    """The arrays, the record and the header of a file, after every byte was checked."""
    header, data = check_file(path, kind, address)
    try:
        arrays, record = _decoded(data)
    except Exception as error:  # the library raises all kinds of them over what is no such file
        problem = error if isinstance(error, _Foreign) else f"{type(error).__name__}: {error}"
        raise CorruptFile(path, f"is not as Headcount writes it ({problem})") from error
    if header.origin is None and record.get("address", address) != address:
        raise CorruptFile(path, f"is about {record['address']}")
    return arrays, record, header


def check_file(path: Path, kind: str, address: str) -> tuple[Header, bytes]:
    """The header and all bytes of a file, checked but not yet decoded."""
    data = _read_bytes(path, kind)
    header = _HEADER.match(data[:HEADER_BYTES])
    if header is None:
        raise CorruptFile(path, "no valid header")
    if zlib.crc32(data[: header.start("crc") - len("crc=")]) != int(header["crc"], 16):
        raise CorruptFile(path, "damaged header")
    if int(header["format"]) > FORMAT:
        raise NewerFormat(path, int(header["format"]), FORMAT)
    if header["kind"] != kind.encode():
        raise CorruptFile(path, f"holds a {header['kind'].decode()}, not a {kind}")
    body = data[HEADER_BYTES:]
    if data[header.end() : HEADER_BYTES].strip(b"\0") or len(body) != int(header["bytes"]):
        raise CorruptFile(path, f"{len(body)} bytes instead of {int(header['bytes'])}")
    if hashlib.sha256(body).hexdigest() != header["sha256"].decode():
        raise CorruptFile(path, "checksum does not match")
    if header["address"] is None:
        return Header(None, None), data
    if header["address"].decode() != address:
        raise CorruptFile(path, f"is about {header['address'].decode()}")
    return Header(header["outcome"].decode(), header["origin"].decode()), data


class _Foreign(Exception):
    """Sound HDF5, but nothing that `encode` has made."""


def _decoded(data: bytes) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays and the record of a file whose checksum is right, which proves no good will."""
    with h5py.File(io.BytesIO(data), "r") as file:
        payload = _own(file, "payload")
        if not isinstance(payload, h5py.Group):
            raise _Foreign("payload is no group")
        arrays = {name: _numbers(payload, name, len(data)) for name in payload}
        text = _own(file, "record")
        if not isinstance(text, h5py.Dataset) or text.shape != () or _lies_elsewhere(text):
            raise _Foreign("record is no text")
        record = json.loads(text[()])
    if not isinstance(record, dict):
        raise _Foreign("record holds no named values")
    return arrays, record


def _numbers(payload: h5py.Group, name: str, most: int) -> np.ndarray:
    item = _own(payload, name)
    if not isinstance(item, h5py.Dataset) or _lies_elsewhere(item):
        raise _Foreign(f"{name} does not lie in the file")
    if item.dtype.kind not in NUMBERS:
        raise _Foreign(f"{name} has dtype {item.dtype}")
    if item.nbytes > most:
        raise _Foreign(f"{name} claims {item.nbytes} bytes in a file of {most}")
    return np.asarray(item[()])


def _own(group: h5py.Group, name: str) -> Any:
    """What the group holds itself, not what it points to."""
    if not isinstance(group.get(name, getlink=True), h5py.HardLink):
        raise _Foreign(f"{name} does not lie in the file")
    return group[name]


def _lies_elsewhere(item: h5py.Dataset) -> bool:
    return bool(item.external or item.is_virtual)


def numeric(name: str, value: Any) -> np.ndarray:
    """`value` as an array of real numbers, whole numbers or truth values."""
    array = np.asarray(value)
    if array.dtype.kind not in NUMBERS:
        raise BadArgument(
            name, value, f"has dtype {array.dtype}", fix="store real numbers, integers or booleans"
        )
    return array


def write_note(path: Path, note: Mapping[str, Any], *, sync: bool = False) -> None:
    """Write a small JSON file with its checksum on a second line."""
    text = json.dumps(note)
    digest = hashlib.sha256(text.encode()).hexdigest()
    write_atomically(path, f"{text}\nsha256={digest}\n".encode(), sync=sync, make_folder=False)


def read_note(path: Path) -> dict[str, Any]:
    """What `write_note` wrote; notes of earlier versions have no checksum."""
    text, newline, check = _read_bytes(path).partition(b"\n")
    digest = hashlib.sha256(text).hexdigest()
    if newline and check and check != f"sha256={digest}\n".encode():
        raise CorruptFile(path, "checksum does not match")
    try:
        note = json.loads(text)
    except ValueError as error:
        raise CorruptFile(path, "is not JSON") from error
    if not isinstance(note, dict):
        raise CorruptFile(path, "holds no named values")
    return note


def write_atomically(
    path: Path, data: bytes, *, sync: bool = True, make_folder: bool = True
) -> None:
    """Replace `path` by `data`, all or nothing; what prevents it is a `StorageError`."""
    try:
        write_bytes(path, data, sync=sync, make_folder=make_folder)
    except OSError as error:
        raise StorageError.at(path, error) from error


def _read_bytes(path: Path, kind: str = "") -> bytes:
    """All bytes of a file; a trial may be reached through a link, as its address vouches for it."""
    try:
        return read_inside(Path(os.path.realpath(path)) if kind == "trial" else path)
    except OSError as error:
        if error.errno in _BAD_DISK:
            raise CorruptFile(path, f"cannot be read ({error.strerror})") from error
        raise
