"""What the README shows is what works."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from headcount.cli import run
from headcount.theory import claims, errata

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
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


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)]+)\)", README))
def test_links_lead_somewhere(link):
    assert (Path(__file__).parents[1] / link).exists()


@pytest.mark.parametrize("key", ["arda2026", "deora2024", "wu2023"])
def test_the_table_counts_what_is_registered(key):
    (row,) = re.findall(rf"^\| `{key}` \| (\d+) \| (\d+) \| (\d+) \|", README, flags=re.MULTILINE)
    own = claims.of_paper(key)
    false = sum(any(form.fails for form in claim.variants.values()) for claim in own)
    notes = sum(str(name).startswith(f"{key}/") for name in errata)
    assert tuple(map(int, row)) == (len(own), false, notes)
