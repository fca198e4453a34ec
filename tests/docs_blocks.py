"""Reading code and commands out of Markdown, and running them as a reader would."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from pathlib import Path

from headcount.cli import run
from headcount.cli._app import app

ROOT = Path(__file__).parents[1]
PYTHON = re.compile(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", flags=re.DOTALL)
CONSOLE = re.compile(r"```console\n(.*?)```(?:[^`]*\n\n```text\n(.*?)```)?", flags=re.DOTALL)
SHELL = re.compile(r"```sh\n(.*?)```", flags=re.DOTALL)
PLANNED = ("reproduce", "train", "ntk")
"""Commands that can say what they would do: long ones are run with --dry-run."""


def run_python(page: Path) -> None:
    """Every block in order, in one namespace; what it prints is what the page shows below it."""
    text = page.read_text(encoding="utf-8")
    names: dict[str, object] = {}
    for match in PYTHON.finditer(text):
        line = text.count("\n", 0, match.start(1))
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            # Blank lines in front make a traceback point at the line of the page.
            exec(compile("\n" * line + match[1], str(page), "exec"), names)
        if match[2] is not None:
            assert printed.getvalue() == match[2], page


def without_numbers(text: str) -> str:
    """Times and paths differ from machine to machine, words do not."""
    return " ".join(re.sub(r"[\d.]+", "#", text).split())


def run_console(text: str) -> int:
    """Every `$ headcount` command in order; the lines shown below must be among what is printed."""
    count = 0
    for match in CONSOLE.finditer(text):
        printed = io.StringIO()
        for command in re.findall(r"^\$ headcount (.+)$", match[1], flags=re.MULTILINE):
            with contextlib.redirect_stdout(printed):
                assert run(shlex.split(command, comments=True)) == 0, command
            count += 1
        if match[2] is not None:
            for line in match[2].splitlines():
                assert without_numbers(line) in without_numbers(printed.getvalue()), line
    return count


def shell_commands(text: str) -> list[str]:
    """The lines of all `sh` blocks."""
    lines = [line for block in SHELL.findall(text) for line in block.splitlines()]
    return [line for line in lines if line.strip() and not line.startswith("#")]


def check_shell(command: str) -> None:
    """A command that takes too long for a test: planned where it can be, else parsed."""
    program, *words = shlex.split(command, comments=True)
    if program == "make":
        targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
        assert set(words) <= set(targets), command
    elif program == "headcount":
        app.parse_args(words, exit_on_error=False, print_error=False)
        if words[0] in PLANNED and not {"--all", "--list", "--data-dir"} & set(words):
            with contextlib.redirect_stdout(io.StringIO()):
                assert run([*words, *(["--dry-run"] if "--dry-run" not in words else [])]) == 0
    else:
        assert program in ("pip", "python", "git", "pre-commit", "headcount"), command
