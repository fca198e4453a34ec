"""Benchmarks judge what they measured: one form of targets, one line for each, an exit code."""

from __future__ import annotations

import ast
import json
import math
from pathlib import Path
from typing import Any

import pytest
from benchmarks import __main__ as command
from benchmarks._timing import target

FOLDER = Path(command.__file__).parent


@pytest.mark.parametrize(
    ("value", "limits", "met"),
    [
        (3.3, {"at_least": 3.3}, True),
        (3.2, {"at_least": 3.3, "aim": 1.0}, False),
        (1.1, {"at_most": 1.1}, True),
        (1.2, {"at_most": 1.1}, False),
        (1.0, {"at_least": 0.9, "at_most": 1.1}, True),
        (0.8, {"at_least": 0.9, "at_most": 1.1}, False),
        (math.nan, {"at_least": 0.0}, False),
        (math.nan, {"at_most": 0.0}, False),
    ],
)
def test_a_target_is_met_inside_its_limits_only(value: float, limits: Any, met: bool) -> None:
    assert target("x", value, **limits)["met"] is met


def test_a_target_needs_a_limit() -> None:
    with pytest.raises(ValueError, match="has no limit"):
        target("x", 1.0, aim=2.0)


def faked(monkeypatch: pytest.MonkeyPatch, value: float) -> None:
    result = {"name": "fake", "rows": [{"a": 1}], "targets": [target("speed", value, at_least=2)]}
    monkeypatch.setattr(command, "run", lambda name: result)
    monkeypatch.setattr(command.os, "environ", dict(command.os.environ))


@pytest.mark.parametrize(
    ("value", "arguments", "code", "word"),
    [
        (3.0, ["startup", "--strict"], 0, "met"),
        (1.0, ["startup", "--strict"], 1, "missed"),
        (1.0, ["startup"], 0, "missed"),
    ],
)
def test_the_run_ends_with_a_line_per_target(
    value: float,
    arguments: list[str],
    code: int,
    word: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    faked(monkeypatch, value)
    assert command.main(arguments) == code
    printed = capsys.readouterr()
    assert json.loads(printed.out)["targets"][0]["value"] == value
    last = printed.err.splitlines()[-1]
    assert last.split(None, 1) == [word, f"fake: speed = {value:g} (at least 2)"]


def test_a_broken_benchmark_fails_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "run", lambda name: {"name": name, "error": "it broke"})
    monkeypatch.setattr(command.os, "environ", dict(command.os.environ))
    assert command.main(["startup"]) == 1
    assert command.main(["no-such-benchmark"]) == 2


def test_long_benchmarks_run_only_when_named(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(command, "run", lambda name: asked.append(name) or {"name": name})
    monkeypatch.setattr(command.os, "environ", dict(command.os.environ))
    command.main([])
    assert asked == [name for name in command.names() if name not in command.ON_REQUEST]
    assert "power" not in asked


@pytest.mark.parametrize("name", command.names())
def test_every_benchmark_states_its_targets_in_the_one_form(name: str) -> None:
    tree = ast.parse((FOLDER / f"{name}.py").read_text(encoding="utf-8"))
    called = {
        node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert "target" in called
