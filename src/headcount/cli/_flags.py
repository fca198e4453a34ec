"""Types of flags, and errors in the words of the command line."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

if TYPE_CHECKING:
    from ..core import HeadcountError

_WIDTHS = ("m", "H", "d_m", "heads")
"""The papers' letters for what every command calls --width."""
_FLAGS = {"recorder": "record", "data model": "data", "initialisation": "init", "tau": "steps"}
"""Kinds of names whose flag is called otherwise."""
_MOST_SHOWN = 300
"""Characters of a value in an error."""


def _whole(kind: Any, tokens: Sequence[Any]) -> int:
    text = tokens[0].value
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a whole number") from None


Whole = Annotated[int, Parameter(converter=_whole)]
"""A whole number; 1.5 is refused, not rounded."""
Flag = Annotated[bool, Parameter(negative=())]
Repeated = Annotated[list[str] | None, Parameter(negative=())]


def name_folders(data_dir: Path | None, model_dir: Path | None) -> None:
    """Tell this process and its workers where data and checkpoints lie.

    Workers inherit the environment; a path in a trial's configuration would change its name.
    """
    if data_dir is not None:
        os.environ["HEADCOUNT_DATA"] = str(data_dir.resolve())
    if model_dir is not None:
        os.environ["HEADCOUNT_MODEL"] = str(model_dir.resolve())


def in_flags(error: HeadcountError, flags: Sequence[str]) -> str:
    """The message of an error with arguments written as the flags of this command.

    `width = 7: must be even; use width=8` becomes `--width 7: must be even; use --width 8`.
    """
    from ..core import BadArgument

    if not isinstance(error, BadArgument) or not flags:
        return str(error)
    named = _flag(error.argument, flags)
    fix = re.sub(
        r'\b([A-Za-z]\w*)( ?=+ ?| [<>]=? )("?)([^\s;")]+)\3',
        lambda found: _assigned(found, flags),
        error.fix,
    )
    where = f"{error.where}: " if error.where else ""
    if named is None:
        shown = error.argument if error.value is None else error.shown
        return f"{where}{shown}: {error.problem}; {fix}"
    value = "" if error.value is None else f" {_typed(error.value) or chr(39) * 2}"
    return f"{where}{named}{value}: {error.problem}; {fix}"


def _flag(argument: str, flags: Sequence[str]) -> str | None:
    """How this argument is written on the command line, if it can be."""
    name = "width" if argument in _WIDTHS else _FLAGS.get(argument, argument)
    for flag in (f"--{name.replace('_', '-')}", f"--{name.replace('_', '-').removesuffix('s')}"):
        if flag in flags:
            return flag
    return f"--data-option {name}" if "--data-option" in flags and _is_data_option(name) else None


def _assigned(found: re.Match[str], flags: Sequence[str]) -> str:
    name, sign, _, value = found.groups()
    flag = _flag(name, flags)
    if flag is None:
        return found.group()
    if sign.strip() in ("=", "=="):
        return f"{flag}{' ' if flag.count(' ') == 0 else '='}{value}"
    return f"{flag}{sign}{value}"


def _is_data_option(name: str) -> bool:
    if "headcount.data" not in sys.modules:
        return False
    from inspect import signature

    from ..data import data_models

    return any(name in signature(make).parameters for _, make in data_models.items())


def _typed(value: Any) -> str:
    """A value as it would be typed, cut where nobody would read on."""
    if isinstance(value, (tuple, list)):
        return ",".join(_typed(part) for part in value[:8]) + (",..." if len(value) > 8 else "")
    text = str(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN - 3]}..."
