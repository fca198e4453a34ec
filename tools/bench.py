"""Where mutants are tried: copies of one copy of the tree."""

from __future__ import annotations

import itertools
import os
import queue
import shutil
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from tools.forks import IMPORT_AFRESH, Forks
from tools.likeness import Likeness
from tools.mutations import Mutant

Work = TypeVar("Work")
QUICK = (
    "--xla_cpu_multi_thread_eigen=false --xla_backend_optimization_level=0 "
    "--xla_llvm_disable_expensive_passes=true --xla_cpu_parallel_codegen_split_count=1 "
    "--xla_cpu_use_fusion_emitters=false"
)
"""How `make test` compiles."""
KEPT = (
    *("src", "tests", "benchmarks", "tools", "docs", "examples", "pyproject.toml", "Makefile"),
    *("README.md", "CITATION.cff", "CHANGELOG.md"),
)
CONCERNED = ("theory", "training", "kernels", "papers", "lab", "cli", "report", "test_prop*.py")
"""Tests that may concern what is mutated."""
LEFT_OUT = ("test_lab_chaos.py", "test_lab_kill.py", "test_newcomer.py")
"""Minutes of processes that are killed, which test the whole and not a line of it."""
AS_USERS = ("train", "run", "seed_parts", "devices", "memory")
"""Tests of training that compare bits and compile as users do."""
ROUNDS = (1, 3, 6)
"""How many of the likeliest files are tried, one round after another."""
LIMITS = (120.0, 1200.0)
"""Seconds of processor and clock after which the tests of a round hang."""


class Workshop:
    """The folder of a draw: the tree as it was at the start, and its tests."""

    def __init__(self, folder: Path, root: Path) -> None:
        self.folder, self.tree = folder, folder / "tree"
        if not self.tree.exists():
            shutil.rmtree(folder, ignore_errors=True)
            copied(root, folder / "half")
            (folder / "half").rename(self.tree)
        self.environment = {
            # Most of a test is compilation, and most programs are the same for all mutants.
            "JAX_COMPILATION_CACHE_DIR": str(folder / "compiled"),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "PYTHONDONTWRITEBYTECODE": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }
        self.likeness = Likeness({n: (self.tree / n).read_text() for n in self._files()})

    def forks(self, tree: Path, *, quick: bool, warm: bool) -> Forks:
        """A process that runs tests of a copy of the tree."""
        flags = {"XLA_FLAGS": QUICK} if quick else {}
        paths = {"PYTHONPATH": f"{tree / 'src'}{os.pathsep}{tree}"}
        return Forks(tree, {**self.environment, **flags, **paths}, warm=warm)

    def _files(self) -> list[str]:
        """The files of tests that may be run."""
        found = [p for name in CONCERNED for p in (self.tree / "tests").glob(name)]
        files = [
            p for above in found for p in ([above] if above.is_file() else above.rglob("*.py"))
        ]
        wanted = [p for p in files if p.name.startswith("test_") and p.name not in LEFT_OUT]
        return sorted(str(p.relative_to(self.tree)) for p in wanted)

    def likely(self, mutant: Mutant) -> list[str]:
        """The files of tests, those that likely run the function of a mutant first."""
        source = (self.tree / "src" / "headcount" / mutant.path).read_text()
        return self.likeness.likely(mutant.path, mutant.function, source)


class Bench:
    """A copy of the tree in which mutants are tried, one after another."""

    def __init__(self, shop: Workshop, folder: Path) -> None:
        self.shop, self.folder = shop, copied(shop.tree, folder)
        self.processes: dict[tuple[bool, bool], Forks] = {}
        self.sound: dict[str, bool] = {}
        """Whether a test passes without any bug."""

    def failing(
        self, tests: Sequence[str], mutant: Mutant | None = None, skipped: Sequence[str] = ()
    ) -> str | None:
        """The first test that fails; with a mutant its file is not as it was.

        A warm process takes the change over where it can; else everything is imported afresh.
        """
        late = False
        for quick in (True, False):
            own = [test for test in tests if compiles_quickly(test) is quick]
            if not own:
                continue
            changed = "" if mutant is None else module_of(mutant.path)
            order = [] if mutant is None else [mutant.path, mutant.function]
            more = {"order": order, "skipped": list(skipped)}
            found = self.process(quick, warm=True).failing(own, LIMITS, changed=changed, **more)
            if found == IMPORT_AFRESH:
                found = self.process(quick, warm=False).failing(own, LIMITS, **more)
            if found:
                return found
            late = late or found is None
        return None if late else ""

    def process(self, quick: bool, warm: bool) -> Forks:
        """Where tests run; made while no file is changed."""
        if (quick, warm) not in self.processes:
            self.processes[quick, warm] = self.shop.forks(self.folder, quick=quick, warm=warm)
        return self.processes[quick, warm]

    def is_sound(self, test: str) -> bool:
        """The test passes without a bug."""
        if test not in self.sound:
            self.sound[test] = self.failing([test]) == ""
            if not self.sound[test]:
                print(f"not sound: {test} fails without a bug", file=sys.stderr, flush=True)
        return self.sound[test]

    def outcome(self, mutant: Mutant) -> tuple[str, str]:
        """killed, survived or timeout; and the test that caught it.

        Of the likeliest file the likeliest tests run, for so long; then those of further files.
        """
        likely, late = self.shop.likely(mutant), False
        for first, last in itertools.pairwise((0, *ROUNDS)):
            while found := self._tried(mutant, likely[first:last]):
                if self._really(found, likely[first:last]):
                    return "killed", found
            late = late or found is None
        return "timeout" if late else "survived", ""

    def _really(self, found: str, tests: Sequence[str]) -> bool:
        """The failure is the mutant's: the test passes without it."""
        if "::" in found:
            return self.is_sound(found)
        if self.failing(["--collect-only", *tests]) != "":  # a file, or pytest itself
            raise SystemExit(f"these tests cannot be collected without a bug: {tests}")
        return True

    def _tried(self, mutant: Mutant, tests: Sequence[str]) -> str | None:
        for quick in (True, False):
            if any(compiles_quickly(test) is quick for test in tests):
                self.process(quick, warm=True)  # imports the file before it is changed
        file = self.folder / "src" / "headcount" / mutant.path
        source = file.read_text()
        file.write_text(mutant.applied(source))
        try:
            return self.failing(tests, mutant, [t for t, sound in self.sound.items() if not sound])
        finally:
            file.write_text(source)

    def __call__(self, mutant: Mutant) -> dict[str, Any]:
        """The row of one mutant."""
        outcome, by = self.outcome(mutant)
        about = {"mutant": mutant.name, "line": mutant.line, "kind": mutant.kind}
        return {**about, "outcome": outcome, "by": by}

    def close(self) -> None:
        """End the processes."""
        for forks in self.processes.values():
            forks.close()


def module_of(path: str) -> str:
    """The module of a source file."""
    return "headcount." + path.removesuffix(".py").replace("/", ".")


def copied(root: Path, to: Path) -> Path:
    """A copy of what tests need of a tree."""
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir(parents=True)
    for name in KEPT:
        if (root / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(root / name, to / name, ignore=ignored)
        elif (root / name).exists():
            shutil.copy(root / name, to / name)
    return to


def compiles_quickly(test: str) -> bool:
    """Whether the file of this test compiles with little effort."""
    return not test.startswith(tuple(f"tests/training/test_{name}.py" for name in AS_USERS))


def measure(
    shop: Workshop, mutants: Sequence[Mutant], workers: int = 1
) -> Iterator[dict[str, Any]]:
    """One row for each mutant, as they come; every worker has a copy of the tree for itself."""
    places = iter(shop.folder / f"worker-{k}" for k in range(workers))
    return in_threads(workers, mutants, lambda: Bench(shop, next(places)))


def in_threads(workers: int, work: Sequence[Work], worker: Callable[[], Any]) -> Iterator[Any]:
    """What workers make of the work, as it comes; each is made in a thread of its own."""
    left, done = queue.SimpleQueue[Work](), queue.SimpleQueue[Any]()
    for item in work:
        left.put(item)

    def run() -> None:
        try:
            own = worker()
            try:
                while True:
                    done.put(own(left.get_nowait()))
            except queue.Empty:
                pass
            finally:
                own.close()
        except BaseException as error:  # the main thread raises it
            done.put(error)

    threads = [threading.Thread(target=run, daemon=True) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for _ in work:
        result = done.get()
        if isinstance(result, BaseException):
            raise result
        yield result
    for thread in threads:
        thread.join()
