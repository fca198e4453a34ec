"""Runs of pytest in forks of one process that has imported all that it can.

Importing JAX and its friends costs more than most tests. The parent process imports them once and
never starts a JAX backend, so a fork of it is safe; each run is a fork that ends with its tests.
A warm parent has imported the code under test too: a fork takes over the change of one file
(`tools/patching.py`), or says that it cannot.

    forks.main(warm) reads lines of JSON: the arguments of `Forks.failing`
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import importlib.metadata
import inspect
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tools.likeness import Likeness
from tools.patching import Imported

PRELOADED = (
    *("jax", "jax.numpy", "jax.scipy.linalg", "jax.experimental", "optax", "numpy", "scipy.stats"),
    *("scipy.optimize", "scipy.special", "scipy.linalg", "pytest", "hypothesis", "flint"),
    *("mpmath", "jaxtyping", "beartype"),
)
BUDGET = 25.0
"""Seconds of processor time for the likeliest tests of a round."""
IMPORT_AFRESH = "import afresh"
"""The answer of a warm process to a change that it cannot take over."""


class Forks:
    """A process that runs tests in a folder, with this environment; warm: its package imported."""

    def __init__(self, folder: Path, environment: dict[str, str], *, warm: bool = False) -> None:
        root = Path(__file__).resolve().parent.parent
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-B",
                "-c",
                f"import sys; sys.path.append({str(root)!r}); "
                f"from tools import forks; forks.main({warm})",
            ],
            cwd=folder,
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.process.stdout.readline()  # it has imported what it will: files may change now

    def failing(
        self,
        tests: Sequence[str],
        limits: tuple[float, float],
        *,
        changed: str = "",
        order: Sequence[str] = (),
        skipped: Sequence[str] = (),
    ) -> str | None:
        """The first test that fails, "" if none does, None if time ran out.

        `limits` are those of processor time and of the clock. `changed` is the module whose file is
        not as it was when a warm process imported it. With `order`, the path of a source and a
        function, those run that likely concern it, the likeliest first, for `BUDGET` seconds.
        """
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        seconds, clock = limits
        request = {"tests": tests, "seconds": seconds, "clock": clock}
        request |= {"changed": changed, "order": order, "skipped": skipped}
        print(json.dumps(request), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())["failing"]

    def close(self) -> None:
        """End the process."""
        self.process.communicate()


def main(warm: bool = False) -> None:
    """Answer requests until there are no more."""
    for name in PRELOADED:
        importlib.import_module(name)
    for plugin in importlib.metadata.entry_points(group="pytest11"):
        plugin.load()
    imported = _imported() if warm else None
    gc.freeze()  # pytest collects garbage twice: not among all that was imported
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps({"failing": _forked(imported, **json.loads(line))}), flush=True)


def _imported() -> Imported:
    """The package, under the tests' own settings."""
    tests = Path.cwd() / "tests"
    if (tests / "conftest.py").exists():
        sys.path.insert(0, str(tests))
        importlib.import_module("conftest")
    return Imported(Path.cwd() / "src", "headcount")


class _First:
    """A pytest plugin: the first test, or file, that failed."""

    failed = ""

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.failed = self.failed or report.nodeid

    def pytest_collectreport(self, report: Any) -> None:
        self.pytest_runtest_logreport(report)


def _forked(
    imported: Imported | None,
    tests: Sequence[str],
    seconds: float,
    clock: float,
    changed: str,
    order: Sequence[str],
    skipped: Sequence[str],
) -> str | None:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.setsid()
        os.close(reader)
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 1))
        # The tests' own bytecode may be kept where no changed file is imported.
        sys.dont_write_bytecode = imported is None
        taken_over = imported is None or not changed or imported.patch(changed)
        said = _run(tests, order, skipped) if taken_over else f"done {IMPORT_AFRESH}"
        os.write(writer, said.encode())
        os._exit(0)
    os.close(writer)
    ended = _wait(child, clock)
    with os.fdopen(reader) as answer:
        said = answer.read()
    return said.removeprefix("done ") if ended and said else None


class _Likeliest:
    """A pytest plugin: the likeliest tests first, for so much processor time."""

    def __init__(self, order: Sequence[str], skipped: Sequence[str]) -> None:
        self.order, self.skipped = order, set(skipped)
        self.enough = False
        """The time is spent, and no test has failed."""

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = [item for item in items if item.nodeid not in self.skipped]
        if self.order and items:
            path, function = self.order
            source = (Path.cwd() / "src" / "headcount" / path).read_text()
            texts = {item.nodeid: inspect.getsource(item.function) for item in items}
            places = {
                name: k for k, name in enumerate(Likeness(texts).likely(path, function, source))
            }
            items.sort(key=lambda item: places[item.nodeid])

    def pytest_sessionstart(self, session: Any) -> None:
        self.session = session

    def pytest_runtest_logfinish(self) -> None:
        if self.order and time.process_time() > BUDGET:
            self.session.shouldstop = self.enough = True


def _run(tests: Sequence[str], order: Sequence[str], skipped: Sequence[str]) -> str:
    import pytest

    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    first, likeliest = _First(), _Likeliest(order, skipped)
    # What is imported already keeps its plain assertions, which are as good here.
    quiet = (
        "-x",
        "-q",
        "-p",
        "no:cacheprovider",
        "-W",
        "ignore::pytest.PytestAssertRewriteWarning",
    )
    try:
        code = int(pytest.main([*quiet, *tests], plugins=[first, likeliest]))
    except BaseException:  # a bug may break pytest itself; whoever asks sees if it does without
        code = 1
    failed = code not in (0, pytest.ExitCode.NO_TESTS_COLLECTED) and not likeliest.enough
    return f"done {first.failed or ('pytest itself' if failed else '')}"


def _wait(child: int, seconds: float) -> bool:
    """Whether it ended by itself; it and what it started are gone afterwards."""
    until = time.monotonic() + seconds
    ended = 0
    while not ended and time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        time.sleep(0.05 * (not ended))
    with contextlib.suppress(ProcessLookupError):  # its group: workers that it left behind, too
        os.killpg(child, signal.SIGKILL)
    if not ended:
        os.waitpid(child, 0)
    return bool(ended) and os.WIFEXITED(status)
