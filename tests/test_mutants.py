"""The driver that plants bugs: it finds the places, changes one thing, and counts fairly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tools import mutants as driver
from tools.bench import Workshop, measure
from tools.likeness import Likeness
from tools.mutations import Mutant, mutants_of

SOURCE = '''"""A docstring with 1 < 2."""
LIMIT: int = 3


def least(x: "Array[2]", y: float) -> tuple[float, float]:
    """Not 7 of these."""
    if not x <= y and x:
        raise ValueError(f"{x + 1}")
    low = min(x, -y) * 2
    return low, shift(x, y) ** 0.5
'''

EXPECTED = {
    "3 -> 4",
    "not x <= y and x -> (not x <= y or x)",
    "not x <= y -> (x <= y)",
    "x <= y -> (x < y)",
    "x <= y -> (x > y)",
    "min(x, -y) * 2 -> (min(x, -y) / 2)",
    "min(x, -y) -> max(x, -y)",
    "-y -> (y)",
    "2 -> 3",
    "return low, shift(x, y) ** 0.5 -> return (shift(x, y) ** 0.5, low)",
    "shift(x, y) ** 0.5 -> (shift(x, y) * 0.5)",
    "shift(x, y) -> shift(y, x)",
    "0.5 -> 1.0",
}


def test_every_kind_of_change_is_found_and_nothing_else() -> None:
    found = mutants_of("theory/x.py", SOURCE)
    assert {f"{m.before} -> {m.after}" for m in found} == EXPECTED
    assert len({m.name for m in found}) == len(found)
    assert {m.function for m in found} == {"module", "least"}


def test_equal_changes_in_one_function_have_names_of_their_own() -> None:
    found = mutants_of("theory/x.py", "def f(x, y):\n    return [x < 1, y, 1]\n")
    names = [m.name.split(": ")[1] for m in found]
    assert names == ["x < 1 -> (x <= 1)", "x < 1 -> (x >= 1)", "1 -> 2", "1 -> 2 (no. 2)"]


def test_a_change_is_made_where_it_was_found_and_still_compiles() -> None:
    for mutant in mutants_of("theory/x.py", SOURCE):
        changed = mutant.applied(SOURCE)
        compile(changed, "x", "exec")
        assert changed != SOURCE
        before, after = (text.splitlines() for text in (SOURCE, changed))
        different = [k for k, (a, b) in enumerate(zip(before, after, strict=True)) if a != b]
        assert different == [mutant.line - 1]


def test_a_sample_is_named_and_covers_papers_proofs_training_and_the_lab() -> None:
    def drawn(files: list[str], sample: int | None, seed: str) -> list[Mutant]:
        return driver.chosen(driver.ROOT, files, sample, seed)

    first, again, other = (drawn(["theory/domain.py"], 9, s) for s in ("a", "a", "b"))
    assert first == again != other
    assert len(set(first)) == 9
    assert drawn(["theory/domain.py"], 4, "a") == first[:4]
    paths = driver.sources(driver.ROOT)
    wanted = {"papers/wu2023/twins.py", "papers/arda2026/figures/fig2.py", "lab/_store.py"}
    assert wanted | {"theory/_balls.py", "training/_train.py", "kernels/_margin.py"} <= set(paths)
    every = drawn(paths, None, "")
    assert len({mutant.name for mutant in every}) == len(every)
    assert not [m for m in every if m.function == "plot"]


def test_the_files_of_tests_that_use_the_same_words_come_first() -> None:
    texts = {
        "tests/theory/test_conformance.py": "claims of papers",
        "tests/papers/wu2023/test_runs.py": "from headcount.papers import wu2023; descent(rate)",
        "tests/lab/test_lab_costs.py": "from headcount.lab import cost; descent(rate)",
        "tests/lab/test_lab_files.py": "from headcount.lab import Store",
    }
    likeness = Likeness(texts)
    source = "def descent(rate): ..."
    found = likeness.likely("papers/wu2023/claims/rates.py", "descent", source)
    assert [name.split("/")[-1] for name in found[:3]] == [
        "test_runs.py",
        "test_conformance.py",
        "test_lab_costs.py",
    ]
    assert likeness.likely("lab/_costs.py", "cost", source)[0] == "tests/lab/test_lab_costs.py"
    assert likeness.likely("lab/_files.py", "x", "class Store:")[0].endswith("lab_files.py")


def test_timeouts_and_equivalents_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "equivalents", lambda: {"theory/a.py:f: 3": "same"})
    outcomes = ("killed", "killed", "survived", "survived", "timeout")
    rows: list[dict[str, Any]] = [
        {"mutant": f"theory/a.py:f: {k}", "kind": "sign", "outcome": outcome, "reason": "rare"}
        for k, outcome in enumerate(outcomes)
    ]
    assert driver.score(rows) == (2, 3)
    text = driver.page({"seed": "here", "of": 90, "rows": rows})
    assert "Killed 2 of 3 mutants (67 %; 95 % interval 9 to 99 %)" in text
    assert 'the first 5 of the 90 mutants in the random order of the seed "here"' in text
    assert "| `theory` | 2 | 1 | 1 | 1 |" in text
    assert "- `theory/a.py:f: 3`: same" in text
    assert "- `theory/a.py:f: 2` (sign): rare\n" in text


def test_the_committed_page_is_that_of_the_committed_results() -> None:
    draw = json.loads(driver.STORE.read_text())
    assert driver.PAGE.read_text() == driver.page(draw)
    assert {row["outcome"] for row in draw["rows"]} <= {"killed", "survived", "timeout"}
    paths = driver.sources(driver.ROOT)
    every = {mutant.name for mutant in driver.chosen(driver.ROOT, paths, None, "")}
    assert set(driver.equivalents()) <= every, "an equivalent of code that is gone"


def test_a_second_try_does_not_change_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "STORE", tmp_path / "mutants.json")
    monkeypatch.setattr(driver, "PAGE", tmp_path / "mutants.md")
    row = {"mutant": "theory/a.py:f: 1 -> 2", "line": 1, "kind": "sign", "outcome": "survived"}
    driver.record(row, "one", [row["mutant"]])
    earlier = {**driver.draw_on_file(), "places": ["theory"], "concerning": "run the function"}
    driver.STORE.write_text(json.dumps(earlier))  # what a draw was measured with stays with it
    rows = driver.record({**row, "outcome": "killed"}, "one", [row["mutant"]])
    assert (rows[0]["outcome"], rows[0]["again"]) == ("survived", "killed")
    assert driver.score(rows) == (0, 1)
    assert "(sign): killed by a test that was written since" in driver.PAGE.read_text()
    assert "made in `theory`: " in driver.PAGE.read_text()
    assert "Of the tests that run the function one must fail" in driver.PAGE.read_text()
    other = driver.record({**row, "mutant": "theory/b.py"}, "two", [row["mutant"], "theory/b.py"])
    assert [r["mutant"] for r in other] == ["theory/b.py"]
    assert driver.draw_on_file()["of"] == 2
    assert f"Of the tests that {driver.CONCERNING} one must fail" in driver.PAGE.read_text()
    assert "tests for their survivors: 0 of 1 (seed one)." in driver.PAGE.read_text()
    assert driver.record(row, "two", [row["mutant"]]) == [row]


def test_planted_bugs_in_a_copy_are_caught(tmp_path: Path) -> None:
    """A whole run on a package of one file and two files of tests; then it goes on."""
    for folder in ("src/headcount/theory", "tests/theory"):
        (tmp_path / "root" / folder).mkdir(parents=True)
    source = "def double(x):\n    return 2 * x\n\n\ndef unused(x):\n    return 5 * x\n"
    # What runs at import is imported afresh, the rest is taken over by a process that has it.
    source += "\n\ndef made(k):\n    return k + 7\n\n\nMADE = made(3)\n"
    source += "LATER = [lambda x: x - 9]\n"
    (tmp_path / "root/src/headcount/__init__.py").write_text("")
    (tmp_path / "root/src/headcount/theory/__init__.py").write_text("")
    (tmp_path / "root/src/headcount/theory/_count.py").write_text(source)
    (tmp_path / "root/tests/theory/test_count.py").write_text(
        "from headcount.theory._count import LATER, MADE, double\n\n\n"
        "def test():\n    assert double(3) == 6\n\n\n"
        "def test_others():\n    assert (MADE, LATER[0](9)) == (10, 0)\n"
    )
    (tmp_path / "root/tests/theory/test_wrong.py").write_text(
        "from headcount.theory._count import double\n\n\n"
        "def test_that_fails_without_a_bug():\n    assert double(1) == 3\n"
    )
    shop = Workshop(tmp_path / "work", tmp_path / "root")
    chosen = driver.chosen(shop.tree, driver.sources(shop.tree), None, "")
    rows = list(measure(shop, chosen))
    outcomes = {row["mutant"].split(": ", 1)[1]: row["outcome"] for row in rows}
    assert outcomes == {
        "2 * x -> (2 / x)": "killed",
        "2 -> 3": "killed",
        "5 * x -> (5 / x)": "survived",
        "5 -> 6": "survived",
        "k + 7 -> (k - 7)": "killed",
        "7 -> 8": "killed",
        "3 -> 4": "killed",
        "x - 9 -> (x + 9)": "killed",
        "9 -> 10": "killed",
    }
    assert (tmp_path / "work/worker-0/src/headcount/theory/_count.py").read_text() == source
    (tmp_path / "root/src/headcount/theory/_count.py").write_text("changed = 1\n")
    again = Workshop(tmp_path / "work", tmp_path / "root")
    assert driver.chosen(again.tree, driver.sources(again.tree), None, "") == chosen
