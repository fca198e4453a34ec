"""The command line: thin, and quick to start. JAX is imported when a command needs it."""

from __future__ import annotations

import gc
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import cyclopts

from .. import __version__
from ._audit import audit_command
from ._compare import compare_command
from ._count import count_command
from ._doctor import doctor_command
from ._explain import explain_command
from ._explore import explore_command
from ._falsify import falsify_command
from ._flags import in_flags
from ._list import list_command
from ._new import new_command
from ._ntk import ntk_command
from ._recheck import recheck_command
from ._report import report_command
from ._reproduce import reproduce_command
from ._sharpen import sharpen_command
from ._show import show_command
from ._status import status_command
from ._train import train_command
from ._verify import verify_command

app = cyclopts.App(
    name="headcount",
    help="The theory of shallow Transformers, executable: train, audit, falsify, count heads.",
    version=__version__,
    help_format="markdown",
    suppress_keyboard_interrupt=False,  # `run` says a word about it
)
"""The command line as a cyclopts application."""
app.command(train_command, name="train")
app.command(audit_command, name="audit")
app.command(list_command, name="list")
app.command(explain_command, name="explain")
app.command(falsify_command, name="falsify")
app.command(recheck_command, name="recheck")
app.command(verify_command, name="verify")
app.command(sharpen_command, name="sharpen")
app.command(new_command, name="new")
app.command(count_command, name="count")
app.command(compare_command, name="compare")
app.command(ntk_command, name="ntk")
app.command(reproduce_command, name="reproduce")
app.command(status_command, name="status")
app.command(show_command, name="show")
app.command(report_command, name="report")
app.command(explore_command, name="explore")
app.command(doctor_command, name="doctor")

# `headcount --install-completion` writes the script for the shell in use (bash, zsh, fish).
app.register_install_completion_command(help="Install completion for your shell and exit.")

FAILED = 1
BAD_INPUT = 2
INTERRUPTED = 130


def main(arguments: list[str] | None = None) -> None:
    """Run the command line. Exit codes: 0 done, 1 failed, 2 bad input, 3 violated, 130 stopped."""
    # Measured: one thread per process is fastest on CPU, and sums do not depend on the machine.
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
    os.environ.setdefault("PJRT_NPROC", "1")
    # XLA tells at length when it folds a constant slowly; its errors reach us as exceptions.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    # A sixth of what a short command takes went into looking for garbage while JAX is imported.
    gc.set_threshold(100_000)
    sys.exit(run(arguments))


def run(arguments: list[str] | None = None) -> int:
    """The exit code of a command, with every expected error as one line on standard error."""
    if any("\0" in argument for argument in arguments or ()):
        return _complain("an argument holds a null byte")
    try:
        with _warnings_in_one_line():
            result = app(
                arguments, exit_on_error=False, print_error=False, result_action="return_value"
            )
            sys.stdout.flush()
    except cyclopts.UnusedCliTokensError as error:
        return _complain(f"unexpected argument: {' '.join(error.unused_tokens or ())}")
    except cyclopts.CycloptsError as error:
        return _complain(str(error).strip())
    except ValueError as error:
        from ..core import HeadcountError

        if not isinstance(error, HeadcountError):
            raise
        return _complain(in_flags(error, _flags_of(arguments)))
    except KeyboardInterrupt:
        print("headcount: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        return _nobody_reads()
    except SystemExit as error:
        if not isinstance(error.__context__, BrokenPipeError):  # which Rich turns into an exit
            raise
        return _nobody_reads()
    except OverflowError as error:
        return _complain(f"a number does not fit ({error})")
    except (OSError, MemoryError) as error:
        return _fail(_plain(error) or "not enough memory")
    except Exception as error:
        from ..lab import StorageError

        if not isinstance(error, StorageError):
            raise
        return _fail(str(error))
    return result if isinstance(result, int) else 0


def _nobody_reads() -> int:
    """The reader of our output has gone (`headcount list | head`): nothing is left to say."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


@contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    """What Headcount warns of (a paper that does not load) reads like our other messages."""
    plain = warnings.showwarning

    def show(message: Any, category: type[Warning], *place: Any) -> None:
        if category.__module__.startswith("headcount."):
            print(f"headcount: {message}", file=sys.stderr)
        else:
            plain(message, category, *place)

    warnings.showwarning = show  # type: ignore[assignment]
    try:
        yield
    finally:
        warnings.showwarning = plain


def _flags_of(arguments: list[str] | None) -> list[str]:
    """The flags of the command that was called."""
    given = sys.argv[1:] if arguments is None else arguments
    if not given or given[0] not in app:
        return []
    return [name for flag in app[given[0]].assemble_argument_collection() for name in flag.names]


def _plain(error: OSError | MemoryError) -> str:
    """Without the number that the operating system gives to an error."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def _fail(message: str) -> int:
    print(f"headcount: {message}", file=sys.stderr)
    return FAILED


def _complain(message: str) -> int:
    print(f"headcount: {message}", file=sys.stderr)
    return BAD_INPUT
