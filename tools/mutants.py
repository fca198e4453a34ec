"""How many planted bugs the tests catch.

    python -m tools.mutants [--sample N] [--seed NAME] [--survivors] [files ...]

Each mutant is one small wrong change of one source file (`tools/mutations.py`), made in a copy of
the tree; one of the tests that concern the file must fail, and pass again without the change.
Timeouts do not count, nor do the survivors that are argued to be equivalent
(`tools/equivalent.json`). All mutants are put in a random order by hashing their names with the
seed and tried in that order: a run that was cut short is a random sample too, and changes elsewhere
in the sources leave it as it is. One draw is kept in docs/mutants.json, from which docs/mutants.md
is made; another seed begins another one. The score is that of the first try. Survivors that are
tried again, when there are tests for them, do not change it. Files that are named are looked at and
not written down.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import queue
import shutil
import sys
import tempfile
import threading
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from scipy import stats

from tools.forks import IMPORT_AFRESH, Forks
from tools.mutant_tests import tests_of
from tools.mutations import Mutant, mutants_of

ROOT = Path(__file__).resolve().parent.parent
STORE, PAGE = ROOT / "docs" / "mutants.json", ROOT / "docs" / "mutants.md"
EQUIVALENT = ROOT / "tools" / "equivalent.json"
CACHE = Path(tempfile.gettempdir()) / "headcount-mutants-compiled"
GOAL = 0.85


def sources() -> list[str]:
    """The files that are mutated."""
    package = ROOT / "src" / "headcount"
    whole = [p for part in ("theory", "training") for p in (package / part).glob("*.py")]
    kernels = [package / "kernels" / f"{name}.py" for name in ("_lambda_min", "_margin")]
    found = sorted(str(p.relative_to(package)) for p in (*whole, *kernels))
    return [path for path in found if not path.endswith("__init__.py")]


def chosen(paths: Sequence[str], sample: int | None, seed: str) -> list[Mutant]:
    """The mutants of the files in the random order of a seed, or the first so many of them."""
    package = ROOT / "src" / "headcount"
    every = [m for path in paths for m in mutants_of(path, (package / path).read_text())]
    drawn = sorted(every, key=lambda m: hashlib.sha256(f"{seed} {m.name}".encode()).digest())
    return drawn[:sample]


CPU_SECONDS = 150.0
"""Processor time that the tests of a mutant may take."""
QUICK = (
    "--xla_cpu_multi_thread_eigen=false --xla_backend_optimization_level=0 "
    "--xla_llvm_disable_expensive_passes=true --xla_cpu_parallel_codegen_split_count=1 "
    "--xla_cpu_use_fusion_emitters=false"
)
"""How `make test` compiles."""


class Bench:
    """A copy of the tree in which mutants are tried, one after another."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        kept = ("src", "tests", "benchmarks", "tools", "docs", "examples")
        for name in kept:
            shutil.copytree(
                ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__")
            )
        for name in ("pyproject.toml", "Makefile", "README.md", "CITATION.cff", "CHANGELOG.md"):
            shutil.copy(ROOT / name, folder / name)
        self.environment = {
            "PYTHONPATH": f"{folder / 'src'}{os.pathsep}{folder}",
            # Most of a test is compilation, and most programs are the same for all mutants.
            "JAX_COMPILATION_CACHE_DIR": str(CACHE),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "PYTHONDONTWRITEBYTECODE": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }
        self.forks: dict[tuple[bool, bool], Forks] = {}
        self.sound: set[str] = set()
        """Tests that were seen to pass without any bug."""
        self.killers: dict[str, list[str]] = {}
        """Tests that caught a mutant of a file: tried first on its next mutant."""

    def failing(self, tests: Sequence[str], path: str, changed: bool) -> str | None:
        """The first test of source file `path` that fails, whether it is changed or as it was.

        A warm process takes the change over where it can; else everything is imported afresh.
        """
        module = "headcount." + path.removesuffix(".py").replace("/", ".") if changed else ""
        found = self.process(path, warm=True).failing(list(tests), CPU_SECONDS, module)
        if found == IMPORT_AFRESH:
            found = self.process(path, warm=False).failing(list(tests), CPU_SECONDS)
        return found

    def process(self, path: str, warm: bool) -> Forks:
        """Where the tests of a file run; those of training compare bits and compile as users do."""
        quick = not path.startswith("training/")
        if (quick, warm) not in self.forks:
            flags = {"XLA_FLAGS": QUICK} if quick else {}
            environment = {**self.environment, **flags}
            self.forks[quick, warm] = Forks(self.folder, environment, warm=warm)
        return self.forks[quick, warm]

    def check_sound(self, test: str, path: str) -> None:
        """The test passes without a bug."""
        if test in self.sound:
            return
        alone = [test] if "::" in test else ["--collect-only", test]
        if self.failing(alone, path, changed=False) != "":
            raise SystemExit(f"this test fails without any bug: {test}")
        self.sound.add(test)

    def outcome(self, mutant: Mutant) -> str:
        """killed, survived or timeout."""
        tests = tests_of(mutant.path, ROOT)
        known = self.killers.setdefault(mutant.path, [])
        self.process(mutant.path, warm=True)  # imports the file before it is changed
        file = self.folder / "src" / "headcount" / mutant.path
        source = file.read_text()
        file.write_text(mutant.applied(source))
        try:
            found = self.failing(known, mutant.path, changed=True) if known else ""
            if found == "":
                found = self.failing(tests, mutant.path, changed=True)
        finally:
            file.write_text(source)
        if not found:
            return "timeout" if found is None else "survived"
        self.check_sound(found if found.startswith("tests/") else tests[0], mutant.path)
        if "::" in found and found not in known:
            known.insert(0, found)
        return "killed"

    def close(self) -> None:
        """End the processes."""
        for forks in self.forks.values():
            forks.close()


def measure(mutants: Sequence[Mutant], workers: int = 1) -> Iterator[dict[str, Any]]:
    """One row for each mutant, as they come; every worker has a copy of the tree for itself."""
    left, rows = queue.SimpleQueue[Mutant](), queue.SimpleQueue[Any]()
    for mutant in mutants:
        left.put(mutant)
    threads = [
        threading.Thread(target=_work, args=(left, rows), daemon=True) for _ in range(workers)
    ]
    for thread in threads:
        thread.start()
    for _ in mutants:
        row = rows.get()
        if isinstance(row, BaseException):
            raise row
        yield row
    for thread in threads:
        thread.join()


def _work(left: queue.SimpleQueue[Mutant], rows: queue.SimpleQueue[Any]) -> None:
    """Take mutants until there are none left."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        bench = Bench(Path(name))
        try:
            while not left.empty():
                mutant = left.get_nowait()
                rows.put(
                    {
                        "mutant": mutant.name,
                        "line": mutant.line,
                        "kind": mutant.kind,
                        "outcome": bench.outcome(mutant),
                    }
                )
        except queue.Empty:
            pass  # another worker took the last one
        except BaseException as error:  # the main thread raises it
            rows.put(error)
        finally:
            bench.close()


def equivalents() -> dict[str, str]:
    """Survivors that no test can tell from the original, each with the reason."""
    return json.loads(EQUIVALENT.read_text()) if EQUIVALENT.exists() else {}


def score(rows: Sequence[dict[str, Any]]) -> tuple[int, int]:
    """Killed, and killed or survived, at the first try; without timeouts and equivalents."""
    same = equivalents()
    counted = [r for r in rows if r["outcome"] != "timeout" and r["mutant"] not in same]
    return sum(row["outcome"] == "killed" for row in counted), len(counted)


def interval(killed: int, counted: int) -> tuple[float, float]:
    """The exact 95 % interval of the share that is killed."""
    low = float(stats.beta.ppf(0.025, killed, counted - killed + 1)) if killed else 0.0
    above = killed < counted
    return low, float(stats.beta.ppf(0.975, killed + 1, counted - killed)) if above else 1.0


def page(draw: dict[str, Any]) -> str:
    """docs/mutants.md."""
    rows = draw["rows"]
    killed, counted = score(rows)
    low, high = interval(killed, counted)
    same = equivalents()
    late = sum(row["outcome"] == "timeout" for row in rows)
    lines = [
        "# Planted bugs",
        "",
        "One small wrong change at a time is made in `theory`, `training`, "
        "`kernels/_lambda_min.py` and `kernels/_margin.py`: comparisons, signs, operations, "
        "constants, order of arguments. The tests that concern the file must fail.",
        "",
        f"**Killed {killed} of {counted} mutants ({100 * killed / max(counted, 1):.0f} %; "
        f"95 % interval {100 * low:.0f} to {100 * high:.0f} %).** "
        f"Not counted: {late} that ran out of time, and the equivalent ones below. "
        f"They are the first {len(rows)} of the {draw['of']} mutants in the random order of the "
        f'seed "{draw["seed"]}", measured once each. No test was written with this order in view '
        "before that: the share estimates that of all mutants. Survivors that were tried again "
        "later are marked and still count as survivors.",
        "",
        *_earlier(draw),
        "| file | killed | survived | equivalent | timeout |",
        "|---|---|---|---|---|",
    ]
    for path in sorted({row["mutant"].split(":")[0] for row in rows}):
        own = [row for row in rows if row["mutant"].startswith(f"{path}:")]
        kinds = [
            sum(r["outcome"] == "killed" for r in own),
            sum(r["outcome"] == "survived" and r["mutant"] not in same for r in own),
            sum(r["outcome"] == "survived" and r["mutant"] in same for r in own),
            sum(r["outcome"] == "timeout" for r in own),
        ]
        lines.append(f"| `{path}` | {' | '.join(map(str, kinds))} |")
    lines += ["", "## Survivors", ""]
    alive = [r for r in rows if r["outcome"] == "survived" and r["mutant"] not in same]
    later = {"killed": ": killed by a test that was written since"}
    lines += [
        f"- `{row['mutant']}` ({row['kind']}){later.get(row.get('again', ''), '')}" for row in alive
    ] or ["None."]
    lines += ["", "## Judged equivalent", ""]
    present = [r["mutant"] for r in rows if r["outcome"] == "survived" and r["mutant"] in same]
    lines += [f"- `{name}`: {same[name]}" for name in present] or ["None."]
    lines += ["", "Written by `make mutants` (`python -m tools.mutants`); do not edit it by hand."]
    return "\n".join(lines) + "\n"


def _earlier(draw: dict[str, Any]) -> list[str]:
    """A line on the draws before, whose survivors tests were written for."""
    before = draw.get("earlier", [])
    shown = [f"{d['killed']} of {d['counted']} (seed {d['seed']})" for d in before]
    return [f"Earlier draws, before tests for their survivors: {', '.join(shown)}.", ""] * bool(
        shown
    )


def draw_on_file() -> dict[str, Any]:
    """What docs/mutants.json holds."""
    return json.loads(STORE.read_text()) if STORE.exists() else {"seed": "", "of": 0, "rows": []}


def record(row: dict[str, Any], seed: str, names: Collection[str]) -> list[dict[str, Any]]:
    """Add a row to the draw; a second try is noted beside the first. Code that is gone leaves."""
    known = draw_on_file()
    table = {r["mutant"]: r for r in known["rows"]} if known["seed"] == seed else {}
    first = table.get(row["mutant"])
    table[row["mutant"]] = row if first is None else {**first, "again": row["outcome"]}
    rows = [table[name] for name in sorted(table) if name in names]
    earlier = known.get("earlier", [])
    if known["seed"] != seed and known["rows"]:
        killed, counted = score(known["rows"])
        earlier = [*earlier, {"seed": known["seed"], "killed": killed, "counted": counted}]
    draw = {"seed": seed, "of": len(names), "earlier": earlier, "rows": rows}
    STORE.write_text(json.dumps(draw, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page(draw), encoding="utf-8")
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 1 when too many survive."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    parser.add_argument("files", nargs="*", help="such as theory/_verdict.py; all if none is given")
    parser.add_argument("--sample", type=int, help="so many mutants, drawn at random")
    parser.add_argument("--seed", help="the name of the draw; that on file if none is given")
    parser.add_argument("--workers", type=int, default=1, help="mutants at a time")
    parser.add_argument("--survivors", action="store_true", help="try those of the draw again")
    given = parser.parse_args(arguments)
    known = draw_on_file()
    seed = given.seed or known["seed"] or "mutants"
    mutants = chosen(given.files or sources(), given.sample, seed)
    rows = known["rows"] if known["seed"] == seed else []
    outcomes = {row["mutant"]: row["outcome"] for row in rows}
    if given.survivors:
        alive = {name for name, outcome in outcomes.items() if outcome == "survived"}
        mutants = [m for m in mutants if m.name in alive - set(equivalents())]
    elif not given.files:
        mutants = [m for m in mutants if m.name not in outcomes]
    names = {mutant.name for mutant in chosen(sources(), None, seed)}
    seen = []
    for row in measure(mutants, given.workers):
        print(f"{row['outcome']:9s} {row['mutant']}", file=sys.stderr, flush=True)
        seen.append(row)
        rows = seen if given.files else record(row, seed, names)
    killed, counted = score(rows)
    print(f"killed {killed} of {counted}")
    return int(killed < GOAL * counted)


if __name__ == "__main__":
    sys.exit(main())
