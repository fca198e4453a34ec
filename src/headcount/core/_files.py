"""Files that are complete or not there, and the one way in which Headcount writes JSON."""

import json
import math
import os
import re
import secrets
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ._inside import Inside, inside
from ._owner import owner

TEMPORARY_SUFFIX = ".tmp"


@contextmanager
def replacing(path: Path, *, sync: bool = True, make_folder: bool = True) -> Iterator[Path]:
    """A temporary name in the folder of `path`, which takes its place when the block ends well.

    Whoever reads `path` sees the old file, the new one or none, never a part. With `sync` both
    the file and the move are on the disk afterwards. The name tells which process made it.
    """
    with _new_file(path, sync, make_folder) as (_, name):
        yield path.with_name(name)


@contextmanager
def _new_file(path: Path, sync: bool, make_folder: bool) -> Iterator[tuple[Inside, str]]:
    """The folder of `path`, held, and the name of a new file there that becomes `path`."""
    temporary = f"{path.name}.{owner()}-{secrets.token_hex(4)}{TEMPORARY_SUFFIX}"
    with inside(path.parent, make=make_folder) as held:
        try:
            os.close(held.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
            yield held, temporary
            if sync:
                _sync(held.open(temporary, os.O_RDWR))
            held.move(temporary, path.name)
        except OSError as error:
            if (number := _in_hdf5(error)) is None:
                raise
            raise OSError(number, os.strerror(number), str(path)) from error
        finally:
            held.remove(temporary)
        if sync:
            held.sync()


def _in_hdf5(error: OSError) -> int | None:
    """The number of the operating system's error within the text of one of the HDF5 library."""
    found = re.search(r"\berrno = (\d+)", str(error))
    return int(found.group(1)) if found else None


def write_atomically(
    path: Path, data: bytes, *, sync: bool = True, make_folder: bool = True
) -> None:
    """Replace `path` by `data`, all or nothing."""
    with _new_file(path, sync, make_folder) as (held, name):
        write_and_close(held.open(name, os.O_WRONLY), data)


def write_and_close(descriptor: int, data: bytes) -> None:
    """All of `data`, however many writes that takes."""
    with open(descriptor, "wb") as file:
        file.write(data)


def check_folder_is_writable(folder: Path) -> None:
    """Raise OSError unless files can be made in `folder`; the probe has no name to fight over."""
    with tempfile.TemporaryFile(dir=folder):
        pass


def sync_to_disk(path: Path) -> None:
    """Wait until a file is on the disk."""
    _sync(os.open(path, os.O_RDWR))


def _sync(descriptor: int) -> None:
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def json_text(content: Any, *, indent: int | None = 2) -> str:
    """`content` as JSON; a number that is not finite is null.

    >>> print(json_text({"loss": [0.5, float("nan")], "count": np.int64(3)}, indent=None))
    {"loss": [0.5, null], "count": 3}
    """
    return json.dumps(_finite(content), indent=indent, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value
