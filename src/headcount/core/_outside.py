"""What somebody else's package may do while it is loaded: anything, and all else goes on."""

import contextlib
import importlib
import pkgutil
import sys
import warnings
from collections.abc import Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

from ._errors import BadArgument, HeadcountError

HOME = "headcount.papers"
"""Our own papers: every subpackage of this one has a module `paper` with a `paper`."""


class PaperLeftOut(UserWarning):
    """A paper, or a part of one, could not be loaded; everything else goes on working."""


@contextlib.contextmanager
def left_out_if_broken(what: str, *, ours: bool = False) -> Iterator[None]:
    """Turn any error inside into one warning line, except in what is `ours`: that must be seen."""
    try:
        with _output_on_standard_error():
            yield
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # a module may call sys.exit or pytest.skip
        if ours:
            raise
        warnings.warn(f"{what} is left out: {_in_one_line(error)}", PaperLeftOut, stacklevel=3)


@contextlib.contextmanager
def one_line_if_broken(argument: str, name: str, *, ours: bool = False) -> Iterator[None]:
    """Turn any error inside into a `BadArgument` about `name`, except in what is `ours`."""
    try:
        yield
    except (KeyboardInterrupt, GeneratorExit, HeadcountError, OSError):
        raise
    except BaseException as error:
        if ours:
            raise
        problem = f"is broken: {_in_one_line(error)}"
        raise BadArgument(argument, name, problem, fix="mend or remove its package") from error


def load_object(reference: str) -> Any:
    """The object "package.module:attribute"; one from outside that fails is a `BadArgument`."""
    with _loading("reference", reference):
        return pkgutil.resolve_name(reference)


def load_folder(package: str) -> Traversable:
    """The folder of a package; one from outside that fails is a `BadArgument`."""
    with _loading("package", package):
        return resources.files(importlib.import_module(package))


@contextlib.contextmanager
def _loading(argument: str, name: str) -> Iterator[None]:
    ours = name.startswith(f"{HOME}.")
    with one_line_if_broken(argument, name, ours=ours), _output_on_standard_error():
        yield


def _output_on_standard_error() -> contextlib.AbstractContextManager[Any]:
    """Standard output may be one JSON object: what a package prints must not stand before it."""
    return contextlib.redirect_stdout(sys.stderr)


def _in_one_line(error: BaseException) -> str:
    reason = " ".join(str(error).split()) or "no message"
    return reason if isinstance(error, HeadcountError) else f"{type(error).__name__}: {reason}"
