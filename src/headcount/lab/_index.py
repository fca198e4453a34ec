"""The index of a plan: verified copies of its small finished trials in one file.

Ten thousand small HDF5 files take ten seconds to open. The index holds what they said when every
byte was last checked, with each file's size, times and number on the disk: as long as these are
the same the copy is used, else the file is read. The index is a cache: one that is damaged,
missing or cannot be written costs time and nothing else.
"""

from __future__ import annotations

import contextlib
import json
import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ._errors import CorruptFile, NewerFormat, StorageError
from ._files import read_file, write_file

SMALL_BYTES = 16384
"""Larger payloads stay in their own files."""

Signature: TypeAlias = tuple[int, int, int, int]


@dataclass(frozen=True)
class StoredTrial:
    """A finished trial: its numbers, and the record of how they came about."""

    payload: dict[str, np.ndarray]
    record: dict[str, Any]

    @property
    def outcome(self) -> str:
        """ "ok", "diverged", "nonfinite" or "failed"."""
        return str(self.record["outcome"])

    @property
    def reason(self) -> str:
        """Why it is not ok; empty when it is."""
        return str(self.record.get("reason") or "")

    @property
    def is_small(self) -> bool:
        """Whether a copy is kept in memory and in the index."""
        return sum(array.nbytes for array in self.payload.values()) <= SMALL_BYTES


def signature(path: Path) -> Signature | None:
    """What changes whenever a file does: size, both times and its number; None without a file."""
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino


Entries: TypeAlias = dict[str, tuple[Signature, StoredTrial]]


def save_index(path: Path, identity: str, entries: Mapping[str, Any]) -> None:
    """Write all entries; trials whose arrays have the same shapes lie in one array each."""
    groups: dict[tuple[Any, ...], list[str]] = {}
    for address, (_, trial) in entries.items():
        kind = tuple((name, str(a.dtype), a.shape) for name, a in sorted(trial.payload.items()))
        groups.setdefault(kind, []).append(address)
    order = [address for members in groups.values() for address in members]
    arrays: dict[str, Any] = {
        "addresses": np.array([list(bytes.fromhex(address)) for address in order], dtype=np.uint8),
        "signatures": np.array([entries[address][0] for address in order], dtype=np.int64),
        "records": _packed([entries[address][1].record for address in order]),
    }
    for number, (kind, members) in enumerate(groups.items()):
        for name, _, _ in kind:
            arrays[f"{number}:{name}"] = np.stack([entries[a][1].payload[name] for a in members])
    sizes = [[len(members), [name for name, _, _ in kind]] for kind, members in groups.items()]
    with contextlib.suppress(StorageError):
        write_file(path, "index", identity, arrays, {"groups": sizes})


def load_index(path: Path, identity: str) -> Entries:
    """The entries, or none when there is no sound index."""
    try:
        arrays, record, _ = read_file(path, "index", identity)
    except (OSError, CorruptFile, NewerFormat):
        return {}
    records = json.loads(zlib.decompress(arrays["records"].tobytes()))
    signatures = arrays["signatures"].tolist()
    addresses = [row.tobytes().hex() for row in arrays["addresses"]]
    entries: Entries = {}
    for number, (count, names) in enumerate(record["groups"]):
        start = len(entries)
        for i in range(count):
            at = start + i
            payload = {name: arrays[f"{number}:{name}"][i] for name in names}
            entries[addresses[at]] = (tuple(signatures[at]), StoredTrial(payload, records[at]))
    return entries


def _packed(records: list[dict[str, Any]]) -> np.ndarray:
    return np.frombuffer(zlib.compress(json.dumps(records).encode(), 1), dtype=np.uint8)
