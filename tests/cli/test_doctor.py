"""What `headcount doctor` says is so."""

from __future__ import annotations

import importlib.metadata
import json
import shlex
import tomllib
from pathlib import Path

import pytest

from headcount.cli import run
from headcount.lab import figures

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]


def test_extras_are_those_of_the_package(said):
    known = PROJECT["optional-dependencies"]
    commands = {name: extra["command"] for name, extra in said()[1]["extras"].items()}
    assert {name: shlex.split(line.split(" install ")[1]) for name, line in commands.items()} == {
        name: known[name] for name in known if name not in ("dev", "docs", "browser")
    }


@pytest.fixture
def said(monkeypatch, capsys, tmp_path):
    def ask(**environment: str) -> tuple[int, dict]:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # nothing was downloaded there
        for name in ("HEADCOUNT_DATA", "HEADCOUNT_MODEL"):
            monkeypatch.delenv(name, raising=False)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        code = run(["doctor", "--json"])
        return code, json.loads(capsys.readouterr().out)

    return ask


def test_what_is_missing_comes_with_its_command(said):
    code, found = said()
    assert (code, found["problems"]) == (0, [])
    assert found["float64"]
    assert found["devices"]
    for row in found["data"].values():
        assert row["unlocks"]
        assert set(row["unlocks"]) <= set(figures)
        assert row["at_hand"] == (row["where"] is not None)
    images = found["data"]["mnist"]
    assert not images["at_hand"]
    _, _, figure, _, chosen = images["command"].split()
    option, value = chosen.split("=")
    assert value in figures[figure].options[option]


def test_what_does_not_work_is_a_failure(said, tmp_path, monkeypatch):
    code, found = said(HEADCOUNT_DATA=str(tmp_path / "nowhere"))
    assert code == 1
    assert len(found["problems"]) == 1
    assert "is not a folder" in found["problems"][0]
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: ["jax>=99.1", "none-such"])
    code, found = said()
    assert code == 1
    assert [problem.split(":")[1] for problem in found["problems"]] == [" needs 99.1", " needs "]


def test_data_that_lie_elsewhere_are_no_failure(said, tmp_path):
    code, found = said(HEADCOUNT_DATA=str(tmp_path))
    assert (code, found["problems"]) == (0, [])


def test_commands_are_not_wrapped(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "40")
    version = importlib.metadata.version
    monkeypatch.setattr(
        importlib.metadata, "version", lambda name: "0" if name == "tokenizers" else version(name)
    )
    assert run(["doctor"]) == 0
    told = capsys.readouterr().out.splitlines()
    command = "-m pip install 'safetensors>=0.5' 'tokenizers>=0.21'"
    assert any(line.endswith(command) for line in told)
