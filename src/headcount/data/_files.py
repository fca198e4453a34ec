"""Files of public data sets, known by their checksums: a folder of the user's, a cache, a download.

The folder is named by the environment variable HEADCOUNT_DATA (which `--data-dir` sets). Where it
is set, a file that is missing or wrong there is an error: other data never take its place.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..core import BadArgument

VARIABLE = "HEADCOUNT_DATA"
"""The environment variable with the folder of local data files."""


@dataclass(frozen=True)
class FileSet:
    """A data set as files: name -> sha256, and addresses from which they can be had.

    `alternatives` are the same contents under another name, such as an unpacked .gz file.
    """

    name: str
    files: Mapping[str, str]
    alternatives: Mapping[str, str]
    mirrors: tuple[str, ...]

    def checksum(self, name: str) -> str:
        """The sha256 of a file or of its alternative."""
        return {**self.files, **self.alternatives}[name]


def data_folder() -> Path | None:
    """The folder named by HEADCOUNT_DATA, or None; it must exist."""
    named = os.environ.get(VARIABLE)
    if not named:
        return None
    folder = Path(named)
    if not folder.is_dir():
        raise BadArgument(
            VARIABLE, named, "is not a folder", fix="correct the path (--data-dir sets it)"
        )
    return folder


def cache_folder(source: FileSet) -> Path:
    """Where downloads are kept: the operating system's own cache folder for Headcount."""
    import pooch

    return Path(pooch.os_cache("headcount")) / source.name


def find(source: FileSet) -> dict[str, Path] | None:
    """The files where they are at hand, each checked; None where they would have to be fetched.

    In the folder of HEADCOUNT_DATA they lie directly or in a folder with the set's name.
    """
    folder = data_folder()
    if folder is not None:
        own = folder / source.name
        return _complete(source, own if own.is_dir() else folder)
    cache = cache_folder(source)
    if all((cache / name).is_file() for name in source.files):
        return _complete(source, cache)
    return None


def fetch(source: FileSet) -> dict[str, Path]:
    """The files, downloaded into the cache unless they are at hand."""
    found = find(source)
    if found is not None:
        return found
    return {name: _downloaded(source, name) for name in source.files}


def ensure(source: FileSet, *, download: bool = True) -> None:
    """Check the files that are at hand and fetch the others.

    Without `download` nothing is fetched: a plan may name files that its run will have to get,
    but not files of which no address is known.
    """
    if download or not source.mirrors:
        fetch(source)
    else:
        find(source)


def verified(source: FileSet, path: Path) -> Path:
    """`path`, if its contents are the published ones."""
    expected = source.checksum(path.name)
    actual = sha256_of(path).hex()
    if actual != expected:
        raise BadArgument(
            source.name,
            path.name,
            f"{path} is truncated or not the published file: its sha256 is {actual}, "
            f"expected {expected}",
            fix="delete it and fetch it again",
        )
    return path


def sha256_of(path: Path) -> bytes:
    """The checksum of a file of any size, which is read piece by piece."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def _complete(source: FileSet, folder: Path) -> dict[str, Path]:
    return {name: verified(source, _present(source, folder, name)) for name in source.files}


def _present(source: FileSet, folder: Path, name: str) -> Path:
    plain = name.removesuffix(".gz")
    for candidate in (name, plain):
        if (folder / candidate).is_file():
            return folder / candidate
    raise BadArgument(
        source.name,
        name,
        f"{folder / name} is missing (expected sha256 {source.files[name]})",
        fix=f"put the file there, unset {VARIABLE} to download it, or choose another data set",
    )


def _downloaded(source: FileSet, name: str) -> Path:
    import pooch
    import requests

    cache, reasons = cache_folder(source), [] if source.mirrors else ["no address is known"]
    for mirror in source.mirrors:
        try:
            known = f"sha256:{source.files[name]}"
            kept = pooch.retrieve(mirror + name, known, fname=name, path=cache, progressbar=False)
            return Path(kept)
        except (requests.RequestException, OSError, ValueError) as error:
            # pooch raises ValueError when the checksum is not the known one.
            reasons.append(f"{mirror}: {_in_short(error)}")
    raise BadArgument(
        source.name,
        name,
        f"{cache / name} could not be downloaded (expected sha256 {source.files[name]}; "
        f"{'; '.join(reasons)})",
        fix=f"put the files into a folder and name it with --data-dir or {VARIABLE}",
    )


def _in_short(error: Exception) -> str:
    """Why a download failed; without a network, not the whole stack of what then goes wrong."""
    import requests

    if isinstance(error, requests.ConnectionError):
        return "no connection"
    return str(error).splitlines()[0]
