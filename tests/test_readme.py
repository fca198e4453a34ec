"""What the README shows is what works."""

from __future__ import annotations

import json
import re
import runpy
import shlex

import pytest
from tools import refuted, unconfirmed, verdicts
from tools.docs_site import escape

from docs_blocks import ROOT, run_long, shell_commands
from headcount import lab
from headcount.cli import run
from headcount.core import papers
from headcount.theory import claims

README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ headcount (.+)$", README, flags=re.MULTILINE)


def test_the_demo_says_where_its_results_will_be_and_runs_one_command(monkeypatch, capsys):
    ran = []
    monkeypatch.setattr("headcount.cli.main", ran.append)
    runpy.run_path(str(ROOT / "examples" / "demo.py"), run_name="__main__")
    assert "headcount-results/figures/arda2026-fig1/quick/figure.png" in capsys.readouterr().out
    assert ran == [["reproduce", "arda2026/fig1", "--scale", "quick"]]


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


@pytest.mark.parametrize("paper", unconfirmed.PAGES)
def test_the_pages_say_under_which_readings_a_sentence_holds(paper):
    page = (ROOT / unconfirmed.PAGES[paper]).read_text(encoding="utf-8")
    stored = verdicts.on_file()
    assert unconfirmed.with_sections(page, stored, paper) == page, "python -m tools.verdicts"
    for name, entry in stored.items():
        if name.startswith(f"{paper}/"):
            missed = [v for v in entry["verdicts"] if v["source"]["kind"] == "paper"]
            missed = [v["claim"] for v in missed if v["outcome"] != "confirmed"]
            section = page.partition(f"### {name}\n")[2].partition("\n### ")[0]
            assert [escape(claim) for claim in missed if escape(claim) not in section] == []


def test_the_sections_count_readings_and_name_what_decides():
    def reading(step, outcome):
        verdict = {"claim": "it falls", "outcome": outcome, "sentence": "0.5, above 0"}
        return {"options": {"step": step, "heads": "paired"},
                "verdicts": [{**verdict, "source": SOURCE}]}  # fmt: skip

    tried = [reading("paper", "not confirmed"), reading("code", "confirmed")]
    entry = {"figure": "arda2026/fig1", "scale": "paper", "seeds": [0, 1], "readings": tried}
    entry |= {"readings_scale": "quick", "verdicts": tried[0]["verdicts"]}
    entry["robustness"] = lab.robustness(tried)
    found = unconfirmed.sections({"arda2026/fig1": entry}, "arda2026")
    assert "2 readings were tried, at quick scale (`step`: paper, code)" in found
    assert "Open and not tried: `teacher`" in found
    assert '**it falls**: not confirmed.\n  The paper: "it falls" (Sec. 6).' in found
    assert "At quick scale confirmed in 1 of 2 readings" in found
    assert "step matters most" in found
    assert "It holds with `step=code`." in found
    assert "not run since verdicts have sources: `arda2026/fig2`" in found.replace("Not", "not")
    confirmed = {**entry, "verdicts": tried[1]["verdicts"]}
    assert "is confirmed: `arda2026/fig1`" in unconfirmed.sections(
        {"arda2026/fig1": confirmed}, "arda2026"
    )


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
    assert [one["options"]["teacher"] for one in entry["readings"]] == ["paper", "code"]
    assert (entry["robustness"][0]["confirmed"], entry["robustness"][0]["readings"]) == (1, 2)
    verdicts.write(found, tmp_path / "docs")
    assert verdicts.on_file(tmp_path / "docs") == json.loads(json.dumps(found))
    assert "Of 1 tests at 95 % up to 0.05 would decide wrongly" in verdicts.table(found)
    (line,) = [row for row in verdicts.table(found).splitlines() if "arda2026/fig1" in row]
    assert "| paper, 2 | 0 / 0 / 0 / 0 | 0 / 0 / 1 / 0 | 2 |" in line


def test_a_row_without_numbers_is_spoken_of_only_where_there_is_one():
    entry = {"scale": "quick", "seeds": [0], "verdicts": [], "readings": [{}]}
    all_of_them = {n: entry for n in lab.figures if n.split("/")[0] in papers.ours}
    assert "A row without numbers" not in verdicts.table(all_of_them)
    assert "A row without numbers" in verdicts.table({"arda2026/fig1": entry})


def test_the_picture_of_a_run_on_file_goes_to_the_docs(tmp_path):
    from PIL import Image

    lab.Store(tmp_path).prepare()
    folder = tmp_path / "figures" / "arda2026-fig1" / "quick"
    folder.mkdir(parents=True)
    content = {"figure": "arda2026/fig1", "scale": "quick", "seeds": [0, 1], "options": {}}
    verdict = {"claim": "a", "outcome": "confirmed", "sentence": "b"}
    (folder / "verdicts.json").write_text(json.dumps({**content, "verdicts": [verdict]}))
    noise = Image.effect_noise((2070, 900), 60.0)  # nothing is harder to make small
    noise.save(folder / "figure.png")
    found, place = verdicts.collect([tmp_path]), tmp_path / "pictures"
    assert verdicts.write_pictures([tmp_path], found, place) == ["arda2026/fig1"]
    with Image.open(place / "arda2026-fig1.webp") as small:
        assert small.width in [width for width, _ in verdicts.SIZES]
    assert (place / "arda2026-fig1.webp").stat().st_size <= verdicts.BYTES
    assert not (place / "arda2026-fig1-readings.webp").exists()
    content["options"], verdict["interval"] = {"step": "code"}, [0.0, 1.0]
    (folder / "code").mkdir()
    verdict |= {"value": 0.5, "expected": [0.0, None], "source": SOURCE}
    (folder / "code" / "verdicts.json").write_text(json.dumps({**content, "verdicts": [verdict]}))
    assert verdicts.write_pictures([tmp_path], found, place) == ["arda2026/fig1"]
    with Image.open(place / "arda2026-fig1-readings.webp") as small:
        assert small.width == verdicts.SIZES[0][0]
    other = {"arda2026/fig1": found["arda2026/fig1"] | {"scale": "paper"}}
    assert verdicts.write_pictures([tmp_path], other, place) == []  # not the run on file


def test_readings_come_from_the_largest_scale_that_has_others(tmp_path):
    lab.Store(tmp_path).prepare()
    for place, scale, options in (
        ("paper", "paper", {}),
        ("quick", "quick", {"step": "paper"}),
        ("quick/step=code", "quick", {"step": "code"}),
    ):
        folder = tmp_path / "figures" / "arda2026-fig1" / place
        folder.mkdir(parents=True)
        verdict = {"claim": "a", "outcome": "confirmed", "sentence": scale, "source": SOURCE}
        content = {"figure": "arda2026/fig1", "scale": scale, "seeds": [0], "options": options}
        (folder / "verdicts.json").write_text(json.dumps(content | {"verdicts": [verdict]}))
    entry = verdicts.collect([tmp_path])["arda2026/fig1"]
    assert (entry["scale"], entry["readings_scale"]) == ("paper", "quick")
    steps = [one["options"]["step"] for one in entry["readings"]]
    assert steps == ["paper", "code"]
    assert {one["options"]["anchors"] for one in entry["readings"]} == {"16"}  # newer than the run
    assert "| paper, 1 | 1 / 0 / 0 / 0 | 0 / 0 / 0 / 0 | 2 (quick) |" in verdicts.table(
        {"arda2026/fig1": entry}
    )


def test_the_default_reading_is_shown_and_most_readings_beside_it(tmp_path):
    """Even where another reading was run at a larger scale, or few at the largest."""
    lab.Store(tmp_path).prepare()
    for scale, step in [("paper", "code"), *(("quick", step) for step in ("paper", "code"))]:
        folder = tmp_path / "figures" / "arda2026-fig1" / scale / step
        folder.mkdir(parents=True)
        verdict = {"claim": "a", "outcome": "confirmed", "sentence": scale, "source": SOURCE}
        content = {"figure": "arda2026/fig1", "scale": scale, "seeds": [0]}
        content |= {"options": {"step": step}, "verdicts": [verdict]}
        (folder / "verdicts.json").write_text(json.dumps(content))
    entry = verdicts.collect([tmp_path])["arda2026/fig1"]
    assert (entry["scale"], entry["options"]) == ("quick", {"step": "paper"})
    default = tmp_path / "figures" / "arda2026-fig1" / "quick" / "paper" / "verdicts.json"
    content |= {"scale": "paper", "options": {"step": "paper"}}
    (tmp_path / "figures" / "arda2026-fig1" / "paper" / "verdicts.json").write_text(
        json.dumps(content)
    )
    for anchors in ("4", "64"):
        other = json.loads(default.read_text()) | {"options": {"step": "paper", "anchors": anchors}}
        (default.parent / anchors).mkdir()
        (default.parent / anchors / "verdicts.json").write_text(json.dumps(other))
    entry = verdicts.collect([tmp_path])["arda2026/fig1"]
    assert (entry["scale"], entry["readings_scale"], len(entry["readings"])) == (
        "paper",
        "quick",
        4,
    )
    default.unlink()
    (tmp_path / "figures" / "arda2026-fig1" / "paper" / "verdicts.json").unlink()
    assert verdicts.collect([tmp_path]) == {}  # nothing in the default reading


@pytest.mark.parametrize(("held", "says"), [(1, "holds with `step=code`"), (9, "does not with")])
def test_few_readings_are_named_and_the_default_too(held, says):
    entry = {"readings": [{"options": {"step": str(i)}, "verdicts": [
        {"claim": "a", "outcome": "confirmed" if (i >= 10 - held) else "no"}]}
        for i in range(10)]}  # fmt: skip
    entry["readings"][9]["options"]["step"] = "code"
    found = unconfirmed._where(entry, {"claim": "a"})
    assert says in found
    assert ("the default" in found) == (held == 9)


def test_the_number_of_claims_is_that_of_the_registry():
    count = f" {sum(len(claims.of_paper(key)) for key in papers)} claims"
    assert count in README
    assert count in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_table_of_papers_counts_what_is_registered():
    assert refuted.with_table(README) == README, "python -m tools.refuted"
    assert refuted.with_table(README.replace("| 1 | 5 | 5 |", "| 2 | 5 | 5 |")) == README


def test_verdicts_on_file_give_way_to_those_of_their_scale_or_a_larger_one():
    before = {"a": {"scale": "paper"}, "b": {"scale": "quick"}, "c": {"scale": "paper", "old": 1}}
    found = {"a": {"scale": "quick"}, "b": {"scale": "paper"}, "c": {"scale": "paper"}}
    expected = {"a": before["a"], "b": found["b"], "c": found["c"], "d": {"scale": "quick"}}
    assert verdicts.merged(before, {**found, "d": {"scale": "quick"}}) == expected
