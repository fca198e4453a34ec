"""Registries: an entry appears in lists, docs and conformance tests by being registered."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Generic, TypeVar

from ._errors import BadArgument

Entry = TypeVar("Entry")


class Registry(Generic[Entry]):
    """Named entries of one kind, in the order in which they were registered."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._entries: dict[str, Entry] = {}

    def register(self, name: str, entry: Entry) -> Entry:
        """Add `entry`; a name is taken once."""
        if name in self._entries:
            raise RuntimeError(f"{self.kind} {name!r} is registered twice")
        self._entries[name] = entry
        return entry

    def __getitem__(self, name: str) -> Entry:
        if name not in self._entries:
            near = difflib.get_close_matches(str(name), self._entries, n=3, cutoff=0.5)
            hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(self)}"
            raise BadArgument(self.kind, name, "is not known", fix=hint)
        return self._entries[name]

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def items(self) -> Iterator[tuple[str, Entry]]:
        """The pairs (name, entry)."""
        return iter(self._entries.items())
