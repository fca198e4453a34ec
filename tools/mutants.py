"""How many planted bugs the tests catch.

    python -m tools.mutants [--sample N] [--seed NAME] [--again] [files ...]

Each mutant is one small wrong change of one source file (`tools/mutations.py`), made in a copy of
the tree; one of the tests that concern the file must fail, and pass again without the change.
Timeouts do not count, nor do the survivors that are argued to be equivalent
(`tools/equivalent.json`). Results are kept in docs/mutants.json by the mutant's name, from which
docs/mutants.md is made; what is there already is not measured again unless asked for. A sample is
drawn by hashing names and is tried in the order of the hashes: a run that was cut short is a
random sample too, and changes elsewhere in the sources leave it as it is.
"""

from __future__ import annotations

import argparse
import fnmatch
import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tools.forks import Forks
from tools.mutations import Mutant, mutants_of

ROOT = Path(__file__).resolve().parent.parent
STORE, PAGE = ROOT / "docs" / "mutants.json", ROOT / "docs" / "mutants.md"
EQUIVALENT = ROOT / "tools" / "equivalent.json"
CACHE = Path(tempfile.gettempdir()) / "headcount-mutants-compiled"
GOAL = 0.85

CLI = "cli/test_cli_theory"
BALLS = ("test_balls", "test_ball_jaxpr", "test_ball_claims")
TESTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("theory/_ball*", tuple(f"theory/{name}" for name in BALLS)),
    ("theory/slow", ("theory/test_balls", "theory/test_ball_claims", "theory/test_conformance")),
    ("theory/duals", ("theory/test_ball_claims", "theory/test_conformance")),
    ("theory/_count", ("theory/test_count",)),
    ("theory/_audit", ("theory/test_audit", "papers/arda2026/test_arda2026_audit", CLI)),
    ("theory/_search", ("theory/test_search", "theory/test_power")),
    ("theory/_spaces*", ("theory/test_spaces", "theory/test_lemmas")),
    ("theory/_lemma*", ("theory/test_lemmas", "theory/test_spaces")),
    ("theory/lemma_files", ("theory/test_lemmas",)),
    ("theory/_verify*", ("theory/test_verify",)),
    ("theory/_facts", ("theory/test_verify",)),
    ("theory/_s[ht]*", ("theory/test_search", "theory/test_power", "theory/test_engine")),
    ("theory/_sizes", ("theory/test_search",)),
    ("theory/_falsify", ("theory/test_search", "theory/test_engine", "theory/test_power")),
    ("theory/_corpus", ("theory/test_search",)),
    ("theory/_slow_sides", ("theory/test_recheck", "theory/test_search", "theory/test_engine")),
    ("core/_rounding", ("theory/test_engine", "theory/test_verdicts")),
    ("theory/_verdict", ("theory/test_verdicts", "theory/test_engine", "theory/test_power")),
    ("theory/_frequency", ("theory/test_verdicts", "theory/test_engine")),
    ("theory/_registry", ("theory/test_registry",)),
    ("theory/families", ("theory/test_families",)),
    ("theory/domain", ("theory/test_domain", "theory/test_forgeries")),
    ("theory/*", ("theory/test_recheck", "theory/test_engine", "theory/test_forgeries")),
    ("training/_path_*", ("training/test_paths", "training/test_path_{key}")),
    ("training/_config", ("training/test_config", "training/test_run")),
    ("training/_projections", ("training/test_projections",)),
    ("training/_recorders", ("training/test_recorders",)),
    ("training/_rules", ("training/test_rules",)),
    ("training/_paths", ("training/test_paths", "kernels/test_head_groups")),
    ("training/*", ("training/test_train", "training/test_run", "training/test_config")),
    ("kernels/_lambda_min", ("kernels/test_spectrum", "kernels/test_lambda_min")),
    ("kernels/_margin", ("kernels/test_margin", "kernels/test_head_groups")),
)
"""Which tests concern which file: the first pattern that fits, cheapest tests first."""


def tests_of(path: str) -> list[str]:
    """The test files for a source file such as theory/_falsify.py; those that exist."""
    stem = path.removesuffix(".py")
    for pattern, tests in TESTS:
        if fnmatch.fnmatchcase(stem, pattern):
            cheap = (
                ("theory/test_small_parts", "theory/test_searches_and_slopes")
                if stem.startswith("theory/")
                else ()
            )
            named = [test.format(key=stem.rsplit("_path_", 1)[-1]) for test in (*cheap, *tests)]
            return [f"tests/{t}.py" for t in named if (ROOT / "tests" / f"{t}.py").exists()]
    raise SystemExit(f"no tests are named for {path}")


def sources() -> list[str]:
    """The files that are mutated."""
    package = ROOT / "src" / "headcount"
    whole = [p for part in ("theory", "training") for p in (package / part).glob("*.py")]
    kernels = [package / "kernels" / f"{name}.py" for name in ("_lambda_min", "_margin")]
    found = sorted(str(p.relative_to(package)) for p in (*whole, *kernels))
    return [path for path in found if not path.endswith("__init__.py")]


def chosen(paths: Sequence[str], sample: int | None, seed: str) -> list[Mutant]:
    """All mutants of the files, or a sample in which every mutant is as likely as another."""
    package = ROOT / "src" / "headcount"
    every = [m for path in paths for m in mutants_of(path, (package / path).read_text())]
    if sample is None:
        return every
    drawn = sorted(every, key=lambda m: hashlib.sha256(f"{seed} {m.name}".encode()).digest())
    return drawn[:sample]


CPU_SECONDS = 300.0
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
        self.forks: dict[bool, Forks] = {}
        self.sound: set[str] = set()
        """Tests that were seen to pass without any bug."""
        self.killers: dict[str, list[str]] = {}
        """Tests that caught a mutant of a file: tried first on its next mutant."""

    def failing(self, tests: Sequence[str], seconds: float = CPU_SECONDS) -> str | None:
        """The first test that fails; tests/training compares bits and compiles as users do."""
        quick = not any(test.startswith("tests/training") for test in tests)
        if quick not in self.forks:
            flags = {"XLA_FLAGS": QUICK} if quick else {}
            self.forks[quick] = Forks(self.folder, {**self.environment, **flags})
        return self.forks[quick].failing(list(tests), seconds)

    def check_sound(self, test: str) -> None:
        """The test passes without a bug."""
        if test in self.sound:
            return
        alone = [test] if "::" in test else ["--collect-only", test]
        if self.failing(alone) != "":
            raise SystemExit(f"this test fails without any bug: {test}")
        self.sound.add(test)

    def outcome(self, mutant: Mutant) -> str:
        """killed, survived or timeout."""
        tests = tests_of(mutant.path)
        known = self.killers.setdefault(mutant.path, [])
        file = self.folder / "src" / "headcount" / mutant.path
        source = file.read_text()
        file.write_text(mutant.applied(source))
        try:
            found = self.failing(known) if known else ""
            if found == "":
                found = self.failing(tests)
        finally:
            file.write_text(source)
        if not found:
            return "timeout" if found is None else "survived"
        self.check_sound(found if found.startswith("tests/") else tests[0])
        if "::" in found and found not in known:
            known.insert(0, found)
        return "killed"

    def close(self) -> None:
        """End the processes."""
        for forks in self.forks.values():
            forks.close()


def measure(mutants: Sequence[Mutant]) -> Iterator[dict[str, Any]]:
    """One row for each mutant."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        bench = Bench(Path(name))
        try:
            for mutant in mutants:
                outcome = bench.outcome(mutant)
                yield {
                    "mutant": mutant.name,
                    "line": mutant.line,
                    "kind": mutant.kind,
                    "outcome": outcome,
                }
        finally:
            bench.close()


def equivalents() -> dict[str, str]:
    """Survivors that no test can tell from the original, each with the reason."""
    return json.loads(EQUIVALENT.read_text()) if EQUIVALENT.exists() else {}


def score(rows: Sequence[dict[str, Any]]) -> tuple[int, int]:
    """Killed, and killed or survived; without timeouts and equivalents."""
    same = equivalents()
    counted = [r for r in rows if r["outcome"] != "timeout" and r["mutant"] not in same]
    return sum(row["outcome"] == "killed" for row in counted), len(counted)


def page(rows: Sequence[dict[str, Any]]) -> str:
    """docs/mutants.md."""
    killed, counted = score(rows)
    same = equivalents()
    late = sum(row["outcome"] == "timeout" for row in rows)
    lines = [
        "# Planted bugs",
        "",
        "One small wrong change at a time is made in `theory`, `training`, "
        "`kernels/_lambda_min.py` and `kernels/_margin.py`: comparisons, signs, operations, "
        "constants, order of arguments. The tests that concern the file must fail.",
        "",
        f"**Killed {killed} of {counted} mutants ({100 * killed / max(counted, 1):.0f} %).** "
        f"Not counted: {late} that ran out of time, and the equivalent ones below. "
        f"They are the first {len(rows)} of a random order. Survivors get tests and are tried "
        "again, and tests were written with this order in view: the share is no unbiased "
        "estimate. A new `--seed` gives one.",
        "",
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
    lines += [f"- `{row['mutant']}` ({row['kind']})" for row in alive] or ["None."]
    lines += ["", "## Judged equivalent", ""]
    present = [r["mutant"] for r in rows if r["outcome"] == "survived" and r["mutant"] in same]
    lines += [f"- `{name}`: {same[name]}" for name in present] or ["None."]
    lines += ["", "Written by `make mutants` (`python -m tools.mutants`); do not edit it by hand."]
    return "\n".join(lines) + "\n"


def rows_on_file() -> list[dict[str, Any]]:
    """What docs/mutants.json holds."""
    return json.loads(STORE.read_text()) if STORE.exists() else []


def record(row: dict[str, Any]) -> list[dict[str, Any]]:
    """Put a row in place of the mutant's last one; rows of code that is gone leave."""
    table = {known["mutant"]: known for known in (*rows_on_file(), row)}
    names = {mutant.name for mutant in chosen(sources(), None, "")}
    rows = [table[name] for name in sorted(table) if name in names]
    STORE.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page(rows), encoding="utf-8")
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 1 when too many survive."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    parser.add_argument("files", nargs="*", help="such as theory/_verdict.py; all if none is given")
    parser.add_argument("--sample", type=int, help="so many mutants, drawn at random")
    parser.add_argument("--seed", default="mutants", help="the name of the draw")
    parser.add_argument("--survivors", action="store_true", help="try the known survivors again")
    parser.add_argument("--again", action="store_true", help="also what was measured already")
    given = parser.parse_args(arguments)
    mutants = chosen(given.files or sources(), given.sample, given.seed)
    rows = rows_on_file()
    outcomes = {row["mutant"]: row["outcome"] for row in rows}
    if given.survivors:
        alive = {name for name, outcome in outcomes.items() if outcome == "survived"}
        mutants = [m for m in mutants if m.name in alive - set(equivalents())]
    elif not given.again:
        mutants = [m for m in mutants if m.name not in outcomes]
    for row in measure(mutants):
        print(f"{row['outcome']:9s} {row['mutant']}", file=sys.stderr, flush=True)
        rows = record(row)
    killed, counted = score(rows)
    print(f"killed {killed} of {counted}")
    return int(killed < GOAL * counted)


if __name__ == "__main__":
    sys.exit(main())
