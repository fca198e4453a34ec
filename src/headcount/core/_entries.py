"""Data of a paper that is no program: tables in a TOML file of its package."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any, TypeVar

from ._errors import BadArgument
from ._outside import load_folder

Entry = TypeVar("Entry")


def read_tables(reference: str) -> dict[str, Any]:
    """The tables of "package:file.toml", by name."""
    package, _, name = reference.partition(":")
    try:
        return tomllib.loads((load_folder(package) / name).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadArgument("file", reference, f"cannot be read: {error}", fix="mend it") from error


def entry_of(kind: type[Entry], table: Any, where: str, **more: Any) -> Entry:
    """An entry whose fields are the keys of a table; lists become tuples."""
    if not isinstance(table, Mapping):
        raise BadArgument("file", where, "is no table", fix="write key = value lines")
    fields = {k: tuple(v) if isinstance(v, list) else v for k, v in table.items()}
    try:
        return kind(**more, **fields)
    except TypeError as error:
        problem = f"has other keys than a {kind.__name__}: {error}"
        raise BadArgument("file", where, problem, fix="mend it") from error
