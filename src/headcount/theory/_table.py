"""Tables of constants: what right sides and hypotheses of a paper are made of."""

from __future__ import annotations

import functools
from typing import Any


class Table:
    """A base for a paper's constants: each a `cached_property`, computed when it is asked for.

    The same names in slow arithmetic are those of a second class, whose `symbols` are a point's
    nested lists.
    """

    def __init__(self, symbols: Any, form: str, num: Any = None) -> None:
        self.symbols, self.form, self.num = symbols, form, num

    def used(self) -> dict[str, Any]:
        """Those constants that were asked for, by name."""
        own = _constants_of(type(self).__mro__)
        return {name: value for name, value in vars(self).items() if name in own}


@functools.cache
def _constants_of(kinds: tuple[type, ...]) -> frozenset[str]:
    """Counting asks one table at fifty thousand settings."""
    kept = functools.cached_property
    return frozenset(n for k in kinds for n, v in vars(k).items() if isinstance(v, kept))


def used(table: Any) -> dict[str, Any]:
    """The constants that were asked for, by name, where a table tells."""
    return table.used() if isinstance(table, Table) else {}
