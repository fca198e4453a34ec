"""What the README shows is what works."""

from __future__ import annotations

import json
import re
import shlex

import pytest
from tools import refuted, verdicts

from docs_blocks import ROOT, run_long, shell_commands
from headcount import lab
from headcount.cli import run
from headcount.core import papers
from headcount.theory import claims

README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ headcount (.+)$", README, flags=re.MULTILINE)


def test_the_five_lines_run(capsys):
    (code,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    exec(compile(code, "README.md", "exec"), {})
    smallest = json.loads(capsys.readouterr().out)
    assert 0 < smallest < 0.01


def test_every_command_runs_in_order(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert len(COMMANDS) >= 9
    for command in COMMANDS:
        assert run(shlex.split(command)) == 0, command


CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("text", [README, CONTRIBUTING], ids=["README", "CONTRIBUTING"])
def test_links_lead_somewhere_and_long_commands_run_at_a_small_size(text, monkeypatch, tmp_path):
    for link in re.findall(r"\]\(([^)]+)\)", text):
        assert link.startswith("https://") or (ROOT / link).exists(), link
    monkeypatch.chdir(tmp_path)
    for command in shell_commands(text):
        run_long(command)


def test_the_papers_stand_there_with_authors_place_and_link():
    home = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    for key, paper in papers.items():
        if claims.of_paper(key):
            for text in (README, home):
                (row,) = (line for line in text.splitlines() if f"[{paper.title}](https://" in line)
                assert key in row
            assert paper.title in cited


SOURCE = {"kind": "paper", "says": "it falls", "where": "Sec. 6"}


def test_the_verdicts_are_those_on_file():
    stored = verdicts.on_file()
    assert verdicts.with_table(README, stored) == README
    assert set(stored) <= set(lab.figures)


def test_the_best_reproduction_is_shown(tmp_path):
    lab.Store(tmp_path).prepare()
    for scale, outcome in (("quick", "confirmed"), ("paper", "inconclusive"), ("smoke", "no")):
        folder = tmp_path / "figures" / "arda2026-fig1" / scale
        folder.mkdir(parents=True)
        content = {"figure": "arda2026/fig1", "scale": scale, "seeds": [0, 1], "options": {}}
        content["verdicts"] = [{"claim": "a", "outcome": outcome, "sentence": "b", "p": 0.01}]
        (folder / "verdicts.json").write_text(json.dumps(content))
        other = folder / "teacher=code"
        other.mkdir()
        content["options"] = {"teacher": "code"}
        content["verdicts"][0] |= {"outcome": "confirmed", "source": SOURCE}
        (other / "verdicts.json").write_text(json.dumps(content))
    found = verdicts.collect([tmp_path])
    (entry,) = found.values()
    (verdict,) = entry["verdicts"]
    assert (entry["scale"], verdict["outcome"]) == ("paper", "inconclusive")
    assert verdict["source"]["kind"] == "ours"
    assert [one["options"] for one in entry["readings"]] == [{}, {"teacher": "code"}]
    assert (entry["robustness"][0]["confirmed"], entry["robustness"][0]["readings"]) == (1, 2)
    verdicts.write(found, tmp_path / "docs")
    assert verdicts.on_file(tmp_path / "docs") == json.loads(json.dumps(found))
    assert "Of 1 tests at 95 % up to 0.05 would decide wrongly" in verdicts.table(found)
    (line,) = [row for row in verdicts.table(found).splitlines() if "arda2026/fig1" in row]
    assert "| paper, 2 | 0 / 0 / 0 / 0 | 0 / 0 / 1 / 0 | 2 |" in line


def test_the_number_of_claims_is_that_of_the_registry():
    assert f" {sum(len(claims.of_paper(key)) for key in papers)} claims" in README


def test_the_table_of_papers_counts_what_is_registered():
    assert refuted.with_table(README) == README, "python -m tools.refuted"
    assert refuted.with_table(README.replace("| 1 | 5 | 5 |", "| 2 | 5 | 5 |")) == README


def test_verdicts_on_file_give_way_to_those_of_their_scale_or_a_larger_one():
    before = {"a": {"scale": "paper"}, "b": {"scale": "quick"}, "c": {"scale": "paper", "old": 1}}
    found = {"a": {"scale": "quick"}, "b": {"scale": "paper"}, "c": {"scale": "paper"}}
    expected = {"a": before["a"], "b": found["b"], "c": found["c"], "d": {"scale": "quick"}}
    assert verdicts.merged(before, {**found, "d": {"scale": "quick"}}) == expected
