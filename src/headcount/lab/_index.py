"""The index of a results folder: copies of its small finished trials in one SQLite file.

Ten thousand small HDF5 files take ten seconds to open. The index holds what they said when every
byte was last checked, with each file's size, times and number on the disk: as long as these are
the same the copy is used, else the file is read. It is a cache: one that is damaged, locked, of
another version, missing or on a disk that cannot lock costs time and nothing else. Every entry
has its own checksum, so that a damaged one is not believed.
"""

from __future__ import annotations

import contextlib
import functools
import json
import math
import os
import sqlite3
import stat
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from ..core._inside import Inside, inside, read_inside
from ._stored import Signature, StoredTrial

SMALL_BYTES = 16384
"""Larger payloads stay in their own files."""
MADE = ("versions", "commit", "device", "cpu", "dtype")
"""What a copy tells of its record, beside outcome, reason and seconds."""
_VERSION = 1
_PROGRAM = int.from_bytes(b"Head")
_MAGIC = b"SQLite format 3\0"
_OF_A_JOURNAL = bytes.fromhex("d9d505f920a163d7")
_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS trials (address BLOB PRIMARY KEY, state BLOB, copy BLOB) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS kinds (id BLOB PRIMARY KEY, text BLOB) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS plans (identity BLOB PRIMARY KEY, addresses BLOB) WITHOUT ROWID;
PRAGMA application_id = {_PROGRAM};
PRAGMA user_version = {_VERSION};
"""
_DAMAGED = (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_PATIENCE_SECONDS = 2.0
_AT_A_TIME = 500
_SEAL = 16
_SIGNATURE = struct.Struct("<4q")
_HEAD = struct.Struct(f"<{_SEAL}sd")
_T = TypeVar("_T")
State: TypeAlias = tuple[str, str]


class _Unusable(sqlite3.Error):
    """An index that this version did not make."""

    sqlite_errorcode = sqlite3.SQLITE_NOTADB


class Index:
    """The index file at `path`; asking it never fails, it then knows nothing."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._given_up = False

    def states(self, addresses: Iterable[str]) -> Iterator[tuple[str, Signature, State]]:
        """Address, signature and (outcome, reason) of the trials that are known."""
        for key, _, state, _ in self._rows(addresses, "NULL"):
            yield key.hex(), *_state_of(state)

    def copies(self, addresses: Iterable[str]) -> Iterator[tuple[str, Signature, StoredTrial]]:
        """Address, signature and copy of the trials of which there is one."""
        for key, kinds, state, copy in self._rows(addresses, "copy"):
            if copy is None:
                continue
            kind, seconds = _HEAD.unpack_from(copy)
            if kind in kinds:  # it is not where that has been damaged
                found, (outcome, reason) = _state_of(state)
                made, fields = kinds[kind]
                record = {"outcome": outcome, "reason": reason, "seconds": seconds, **made}
                yield key.hex(), found, StoredTrial(_arrays(copy, fields), record)

    def add(self, entries: Mapping[str, tuple[Signature, StoredTrial]]) -> None:
        """Note trials, all or none; their files have just been checked."""
        rows, kinds = [], {}
        for address, (found, trial) in entries.items():
            key = bytes.fromhex(address)
            state = _SIGNATURE.pack(*found) + f"{trial.outcome}\0{trial.reason}".encode()
            copy = None
            if sum(array.nbytes for array in trial.payload.values()) <= SMALL_BYTES:
                text = _kind(trial)
                kinds[_digest(text)] = text
                copy = _HEAD.pack(_digest(text), float(trial.record["seconds"]))
                copy += b"".join(np.ascontiguousarray(a).tobytes() for a in trial.payload.values())
                copy = _sealed(key, copy)
            rows.append((key, _sealed(key, state), copy))

        def write(database: sqlite3.Connection) -> None:
            database.executemany("INSERT OR REPLACE INTO kinds VALUES (?, ?)", kinds.items())
            database.executemany("INSERT OR REPLACE INTO trials VALUES (?, ?, ?)", rows)

        self._change(write)

    def plan(self, identity: str) -> list[str]:
        """The addresses of a plan; none where they are not known."""
        key = bytes.fromhex(identity)
        ask = "SELECT addresses FROM plans WHERE identity = ?"
        found = self._ask(lambda database: database.execute(ask, (key,)).fetchone(), None)
        text = b"" if found is None else _opened(key, found[0]) or b""
        return [text[k : k + 32].hex() for k in range(0, len(text), 32)]

    def add_plan(self, identity: str, addresses: Iterable[str]) -> None:
        """Note the addresses of a plan."""
        key = bytes.fromhex(identity)
        row = (key, _sealed(key, bytes.fromhex("".join(addresses))))
        self._change(lambda db: db.execute("INSERT OR REPLACE INTO plans VALUES (?, ?)", row))

    def _rows(
        self, addresses: Iterable[str], copy: str
    ) -> Iterator[tuple[bytes, dict[bytes, Any], bytes, bytes | None]]:
        """Key, kinds, state and copy of what is known and sound; `copy` may be NULL."""
        kinds: dict[bytes, Any] = {}
        keys = sorted(bytes.fromhex(address) for address in addresses)
        for first in range(0, len(keys), _AT_A_TIME):
            some = keys[first : first + _AT_A_TIME]
            rows = self._ask(functools.partial(_select, some, copy, kinds), None)
            if rows is None:
                return
            for key, state, found in rows:
                opened = _opened(key, state)
                if opened is not None:
                    yield key, kinds, opened, _opened(key, found)

    def _change(self, work: Callable[[sqlite3.Connection], object]) -> None:
        def whole(database: sqlite3.Connection) -> None:
            database.execute("BEGIN IMMEDIATE")
            work(database)
            database.execute("COMMIT")

        self._ask(whole, None, make=True)

    def _ask(self, work: Callable[[sqlite3.Connection], _T], none: _T, make: bool = False) -> _T:
        """The answer, or `none` where the index cannot give one; a damaged index goes."""
        if self._given_up:
            return none
        try:
            with inside(self.path.parent) as held:
                flags = stat.S_IFREG if make else 0
                with contextlib.suppress(FileNotFoundError):
                    place = held.place(self.path.name)
                    flags = os.stat(place, dir_fd=held.handle, follow_symlinks=False).st_mode
                if not stat.S_ISREG(flags) or self._has_foreign_beside(held):
                    return none
            uri = f"{self.path.absolute().as_uri()}?mode={'rwc' if make else 'rw'}"
            database = sqlite3.connect(
                uri, uri=True, timeout=_PATIENCE_SECONDS, isolation_level=None
            )
            with contextlib.closing(database):
                _prepare(database, make)
                return work(database)
        except (sqlite3.Error, UnicodeError) as error:  # messages repeat damaged names
            if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF in _DAMAGED:
                with contextlib.suppress(OSError):
                    self._discard()
            else:  # locked, or nothing can be locked or written here
                self._given_up = True
        except OSError:
            pass
        return none

    def _has_foreign_beside(self, held: Inside) -> bool:
        """Whether SQLite would take, and remove, files that no index of ours has left there.

        The index itself is not opened for this: closing it would end SQLite's locks on it.
        """
        name = self.path.name
        if not {f"{name}-wal", f"{name}-shm"}.isdisjoint(held.names()):
            return True
        try:
            with open(held.open(f"{name}-journal", os.O_RDONLY), "rb") as file:
                return not _OF_A_JOURNAL.startswith(file.read(len(_OF_A_JOURNAL)))
        except FileNotFoundError:
            return False

    def _discard(self) -> None:
        """Remove an index that cannot be used; what is none of ours keeps a name."""
        head = read_inside(self.path)[:72]
        ours = head[:16] == _MAGIC[: len(head)] and head[68:] in (b"", _PROGRAM.to_bytes(4))
        with inside(self.path.parent) as held:
            if ours:
                held.remove(self.path.name)
                held.remove(f"{self.path.name}-journal")
            else:
                held.move(self.path.name, free_name(self.path).name)


def free_name(path: Path) -> Path:
    """Where a damaged file is put aside."""
    k = 1
    while os.path.lexists(aside := path.with_name(f"{path.name}.corrupt-{k}")):
        k += 1
    return aside


def _prepare(database: sqlite3.Connection, make: bool) -> None:
    database.execute("PRAGMA trusted_schema = OFF")
    if database.execute("PRAGMA journal_mode").fetchone() == ("wal",):
        raise _Unusable
    database.execute("PRAGMA synchronous = OFF")  # a cache: what a power cut breaks is noticed
    database.execute("BEGIN")  # one view, whoever makes the index meanwhile
    (program,) = database.execute("PRAGMA application_id").fetchone()
    (version,) = database.execute("PRAGMA user_version").fetchone()
    (tables,) = database.execute("SELECT count(*) FROM sqlite_master").fetchone()
    database.execute("COMMIT")
    if (program, version) == (_PROGRAM, _VERSION):
        return
    if program or version or tables:
        raise _Unusable
    if make:
        database.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} COMMIT;")


def _select(
    keys: Sequence[bytes], copy: str, kinds: dict[bytes, Any], database: sqlite3.Connection
) -> list[tuple[Any, Any, Any]]:
    """The rows of these keys; the kinds of their copies are added to `kinds`."""
    marks = ",".join("?" * len(keys))
    ask = f"SELECT address, state, {copy} FROM trials WHERE address IN ({marks})"
    rows = database.execute(ask, keys).fetchall()
    needed = {found[_SEAL : 2 * _SEAL] for *_, found in rows if isinstance(found, bytes)}
    for kind in needed - set(kinds):
        row = database.execute("SELECT text FROM kinds WHERE id = ?", (kind,)).fetchone()
        if row is not None and isinstance(row[0], bytes) and _digest(row[0]) == kind:
            made, layout = json.loads(row[0])
            kinds[kind] = made, _fields(layout)
    return rows


def in_short(trial: StoredTrial, shared: dict[str, Any]) -> StoredTrial:
    """The trial as its copy would give it back; equal parts of records are `shared`."""
    record = {"outcome": trial.outcome, "reason": trial.reason, "seconds": trial.record["seconds"]}
    for name in MADE:
        if name in trial.record:
            value = trial.record[name]
            record[name] = shared.setdefault(repr(value), value)
    return StoredTrial(trial.payload, record)


def _kind(trial: StoredTrial) -> bytes:
    """What many trials have in common: how they were made, and what their numbers look like."""
    layout = [(name, a.dtype.str, a.shape) for name, a in trial.payload.items()]
    made = {name: trial.record[name] for name in MADE if name in trial.record}
    return json.dumps([made, layout]).encode()


class _Field(NamedTuple):
    """Where an array lies in a copy."""

    name: str
    dtype: np.dtype
    shape: tuple[int, ...]
    size: int
    at: int


def _fields(layout: Iterable[tuple[str, str, Sequence[int]]]) -> list[_Field]:
    fields, at = [], _HEAD.size
    for name, code, shape in layout:
        dtype, count = np.dtype(code), math.prod(shape)
        fields.append(_Field(name, dtype, tuple(shape), count, at))
        at += count * dtype.itemsize
    return fields


def _arrays(copy: bytes, fields: Iterable[_Field]) -> dict[str, np.ndarray]:
    return {
        field.name: np.frombuffer(copy, field.dtype, field.size, field.at).reshape(field.shape)
        for field in fields
    }


def _state_of(state: bytes) -> tuple[Signature, State]:
    size, modified, changed, number = _SIGNATURE.unpack_from(state)
    outcome, _, reason = state[_SIGNATURE.size :].decode().partition("\0")
    return (size, modified, changed, number), (outcome, reason)


def _digest(*parts: bytes) -> bytes:
    return blake2b(b"".join(parts), digest_size=_SEAL).digest()


def _sealed(key: bytes, content: bytes) -> bytes:
    return _digest(key, content) + content


def _opened(key: bytes, sealed: Any) -> bytes | None:
    """The content, if it is as it was written for this key."""
    if not isinstance(sealed, bytes) or _digest(key, sealed[_SEAL:]) != sealed[:_SEAL]:
        return None
    return sealed[_SEAL:]
