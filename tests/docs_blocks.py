"""Running Markdown as a reader would: every block of a page, in order, in one folder.

python   runs; a `text` block right below is exactly what it prints
console  `$ headcount ...` runs; lines of the `text` block below are among what is printed
text     with `$ headcount ...` in it is a transcript: the lines below a command are what it says
sh       what takes long, run at a size that `reduced` states: searches with the small budget, runs
         with the numbers of LEAST, figures as a dry run (their own tests run each at smoke scale)
py       a part of something: it is compiled

Numbers are compared, except those that are times and memory: these differ between machines.
"""

from __future__ import annotations

import contextlib
import io
import math
import re
import shlex
import subprocess
import sys
from pathlib import Path

from headcount.cli import app, run

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(python|console|text|sh)\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"^\$ headcount (.+)$", flags=re.MULTILINE)
LEAST = {"--n": "12", "--steps": "3", "--width": "8", "--seeds": "0:2"}
"""In place of the numbers of a long command."""
TOKEN = re.compile(r"[-+]?\d[\d.]*(?:e[-+]?\d+)?%?|[^\s\d]+")
UNITS = {"s", "s,", "s;", "ms", "min", "h", "kB", "MB", "GB", "TB", "GB)", "MB)"}
CLOSE = 0.02
"""Relative: another processor rounds otherwise."""


def run_page(text: str, place: Path) -> int:
    """Everything on a page; how many commands of ours were run."""
    names: dict[str, object] = {}
    said, shown, end, count = "", "", -9, 0
    for match in BLOCK.finditer(text):
        kind, body = match[1], match[2]
        if kind == "python":
            said = run_python(body, names, place, line=text.count("\n", 0, match.start(2)))
        elif kind == "sh":
            said = "".join(run_long(command) for command in commands_of(body))
        elif kind == "console":
            said = "".join(run_command(command) for command in COMMAND.findall(body))
            count += len(COMMAND.findall(body))
        elif COMMAND.search(body):
            count += run_transcript(body)
        elif shown == "python" and match.start() - end < 3:
            assert said == body, (place, body, said)
        else:
            for line in body.splitlines():
                assert is_among(line, said), (place, line, said)
        shown, end = kind, match.end()
    return count


def run_python(code: str, names: dict[str, object], place: Path, line: int) -> str:
    """One block in the namespace of its page; blank lines make a traceback point at its line."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile("\n" * line + code, str(place), "exec"), names)
    return printed.getvalue()


def run_command(command: str, *, code: int | None = 0) -> str:
    """What one command prints on either stream."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        found = run(shlex.split(command, comments=True))
    assert code is None or found == code, (command, printed.getvalue())
    return printed.getvalue()


def run_transcript(body: str) -> int:
    """Commands with what they answer below each, mistakes among them."""
    parts = re.split(COMMAND, body)[1:]
    for command, answer in zip(parts[::2], parts[1::2], strict=True):
        said = run_command(command, code=None)
        for line in answer.strip().splitlines():
            assert is_among(line, said), (command, line, said)
    return len(parts) // 2


def is_among(line: str, said: str) -> bool:
    """Whether these words stand in a row in what was said, the numbers as close as CLOSE."""
    want, have = TOKEN.findall(line), TOKEN.findall(said)
    starts = range(len(have) - len(want) + 1)
    return any(all(map(_alike, want, have[i:], [*want[1:], ""])) for i in starts)


def _alike(one: str, other: str, unit: str) -> bool:
    if one == other:
        return True
    try:
        a, b = float(one.rstrip("%.")), float(other.rstrip("%."))
    except ValueError:
        return False
    return unit in UNITS or math.isclose(a, b, rel_tol=CLOSE)


def commands_of(block: str) -> list[str]:
    """The lines of a block that are commands."""
    lines = block.replace("\\\n", " ").splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]


def shell_commands(text: str) -> list[str]:
    """The lines of all `sh` blocks."""
    blocks = [body for kind, body in BLOCK.findall(text) if kind == "sh"]
    return [line for block in blocks for line in commands_of(block)]


def reduced(words: list[str]) -> list[str]:
    """A long command at the size at which a test can run it."""
    words = [str(ROOT / word) if word.startswith("examples/") else word for word in words]
    small = [LEAST.get(before, word) for before, word in zip(["", *words], words, strict=False)]
    if small[0] in ("reproduce", "train", "ntk") and {"--list", "--dry-run"}.isdisjoint(small):
        return [*small, "--dry-run"] if small[0] == "reproduce" else small
    if small[0] == "falsify" and "--budget" not in small:
        return [*small, "--budget", "small"]
    return small


def is_elsewhere(words: list[str]) -> bool:
    """Whether a command takes data, hours, a server, devices or machines that a test has not."""
    absent = {"DATA", "~/data", "--all", "explore", "--devices"} & set(words)
    return bool(absent) or any("HOST" in word or word.startswith("/shared") for word in words)


def run_long(command: str) -> str:
    """A line of an `sh` block: ours at the stated size, a script as it is, others as a plan."""
    program, *words = [w for w in shlex.split(command, comments=True) if "XLA_FLAGS=" not in w]
    if program == "make":
        targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
        assert set(words) <= set(targets), command
    elif program == "headcount":
        app.parse_args(words, exit_on_error=False, print_error=False)
        results = words[0] not in ("report", "show") or Path("headcount-results").exists()
        if results and not is_elsewhere(words):
            return run_command(shlex.join(reduced(words)))
    elif program == "python" and words[0].endswith(".py") and not is_elsewhere(words):
        places = (Path(words[0]), ROOT / words[0], ROOT / "src" / "headcount" / words[0])
        (script, *_) = [place for place in places if place.is_file()]
        done = subprocess.run([sys.executable, script, *words[1:]], capture_output=True, text=True)
        assert done.returncode == 0, (command, done.stderr)
        return done.stdout
    elif program == "python" and words[0] == "-m":
        assert words[:2] == ["-m", "benchmarks"], command
        assert all((ROOT / "benchmarks" / f"{name}.py").is_file() for name in words[2:]), command
    else:
        assert program in ("pip", "git", "pre-commit", "dask", "python"), command
    return ""
