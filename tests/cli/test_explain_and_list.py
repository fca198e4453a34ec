"""`explain` in characters of a terminal, `list` by paper, sizes as flags."""

from __future__ import annotations

import json

import pytest
from rich.cells import cell_len

from headcount.cli import run
from headcount.theory import claims


def test_explain_shows_unicode_and_with_latex_one_line_to_copy(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    latex = claims["arda2026/lemma-5"].latex
    assert run(["explain", "arda2026/lemma-5"]) == 0
    told = capsys.readouterr().out
    assert "\\" not in told
    assert "√(2 log(2n/δ)/m)" in told
    assert max(map(cell_len, told.splitlines())) <= 60
    assert run(["explain", "arda2026/lemma-5", "--latex"]) == 0
    assert f"  {latex}\n" in capsys.readouterr().out


def test_list_is_grouped_by_paper(capsys):
    assert run(["list"]) == 0
    everything = capsys.readouterr().out
    assert "Finite-Time Analysis of Gradient Descent" in everything
    assert run(["list", "--paper", "wu2023"]) == 0
    one = capsys.readouterr().out
    assert one.strip() in everything
    assert "wu2023/lemma-14" in one
    assert claims["wu2023/lemma-14"].title in one
    assert "arda2026" not in one
    assert run(["list", "--paper", "wu2023", "--json"]) == 0
    names = json.loads(capsys.readouterr().out)
    assert set(names) == {"models", "figures", "claims", "facts"}
    assert all(n.startswith("wu2023/") for n in names["claims"] + names["figures"] + names["facts"])


@pytest.mark.parametrize("command", ["train", "audit", "ntk", "count", "compare"])
def test_sizes_are_asked_alike(command, capsys):
    """No data law has a negative number of tokens: the flag is known, and blamed."""
    more = {"count": ["--loss", "0.1"]}.get(command, [])
    assert run([command, "--T", "-1", "--d", "4", "--n", "8", *more]) == 2
    assert "--T -1" in capsys.readouterr().err


def test_sizes_reach_the_data(capsys):
    assert run(["train", "--T", "7", "--d", "3", "--pool", "8", "--dry-run", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)["plan"]
    assert (plan["T"], plan["d"]) == (7, 3)


def test_one_loss_is_the_target_of_all_papers(capsys):
    line = (
        "compare --papers arda2026 --theory-only --n 6 --width 4 --steps 5 --T 10 --d 6 --loss 0.3"
    )
    assert run([*line.split(), "--seeds", "0", "--json"]) == 0
    (answer,) = json.loads(capsys.readouterr().out)["papers"]
    assert answer["target"] == 0.3
    assert run([*line.split(), "--share", "0.1"]) == 2
    assert "--loss 0.3: and --share are two targets" in capsys.readouterr().err
