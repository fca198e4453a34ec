"""Registries: an entry appears in lists, docs and conformance tests by being registered."""

import difflib
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from ._errors import BadArgument
from ._shown import html_table

Entry = TypeVar("Entry")
_MOST_NAMES = 20
"""A message lists so many names at most."""


def suggestion(name: str, known: list[str]) -> str:
    """The known names near a wrong one, that name without its paper first; or all of them."""
    same = [one for one in known if one.endswith(f"/{name}")]
    near = difflib.get_close_matches(str(name), known, n=3, cutoff=0.5)
    near = list(dict.fromkeys([*same, *near]))[:3]
    if near:
        return f"did you mean {' or '.join(near)}?"
    more = f", ... ({len(known)} in all)" if len(known) > _MOST_NAMES else ""
    return f"known: {', '.join(known[:_MOST_NAMES])}{more}"


class Registry(Generic[Entry]):
    """Named entries of one kind, in the order in which they were registered.

    `fill`, where given, registers more of them; it is called at the first look-up, once.
    """

    def __init__(self, kind: str, fill: Callable[[], None] | None = None) -> None:
        self.kind = kind
        self._entries: dict[str, Entry] = {}
        self._fill = fill

    def register(self, name: str, entry: Entry) -> Entry:
        """Add `entry`; a name is taken once."""
        if name in self._entries:
            raise RuntimeError(f"{self.kind} {name!r} is registered twice")
        self._entries[name] = entry
        return entry

    @property
    def _all(self) -> dict[str, Entry]:
        fill, self._fill = self._fill, None
        if fill is not None:
            fill()
        return self._entries

    def __getitem__(self, name: str) -> Entry:
        entries = self._all
        if name not in entries:
            raise BadArgument(self.kind, name, "is not known", fix=suggestion(name, list(self)))
        return entries[name]

    def __contains__(self, name: object) -> bool:
        return name in self._all

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._all))  # whoever iterates may import what registers more

    def __len__(self) -> int:
        return len(self._all)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.kind})"  # counting would import all papers

    def _repr_html_(self) -> str:
        rows = [(name, getattr(entry, "title", "")) for name, entry in self.items()]
        return html_table(rows, [self.kind, "title"])

    def items(self) -> Iterator[tuple[str, Entry]]:
        """The pairs (name, entry)."""
        return iter(list(self._all.items()))
