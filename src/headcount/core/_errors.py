"""Errors that name the argument, the value and the fix."""

from __future__ import annotations

import os
import pickle
from typing import Any


class HeadcountError(ValueError):
    """Bad input, found before any work starts.

    The command line prints the message without a traceback and exits with code 2. It survives the
    way to another process: what cannot be pickled of it arrives as the text that shows it.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), self.args, {k: _portable(v) for k, v in vars(self).items()})


class BadArgument(HeadcountError):
    """One argument is wrong: which one, what it was, and what to do about it.

    >>> raise BadArgument("m", 7, "must be even", fix="use m=8")
    Traceback (most recent call last):
        ...
    headcount.core._errors.BadArgument: m = 7: must be even; use m=8
    """

    def __init__(self, argument: str, value: Any, problem: str, *, fix: str) -> None:
        self.argument = argument
        self.value = value
        self.problem = problem
        self.fix = fix
        self.where = ""  # the file that the value comes from
        super().__init__(f"{self.shown}: {problem}; {fix}")

    @property
    def shown(self) -> str:
        """The argument and its value, as in Python."""
        return f"{self.argument} = {_brief(self.value)}"


class _Text(str):
    """A value that could not travel, shown as it was."""

    def __repr__(self) -> str:
        return str(self)


def _portable(value: Any) -> Any:
    try:
        pickle.dumps(value)
    except Exception:  # whatever a value's own code raises
        return _Text(_brief(value))
    return value


def _again(kind: type[HeadcountError], args: tuple[Any, ...], fields: dict[str, Any]) -> Any:
    error = kind.__new__(kind, *args)
    vars(error).update(fields)
    return error


def _brief(value: Any) -> str:
    text = repr(value) if isinstance(value, str) else " ".join(repr(value).split())
    most = 300 if isinstance(value, str) and os.sep in value else 80  # a path is of use whole
    return text if len(text) <= most else text[: most - 3] + "..."
