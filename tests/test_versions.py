"""The rows of `make versions` come from pyproject.toml and nowhere else."""

from __future__ import annotations

import re

import pytest
from tools import versions


def test_the_lowest_versions_are_the_declared_bounds() -> None:
    lowest, newest = (versions.requirements(row) for row in versions.ROWS)
    assert len(lowest) == len(newest) > 20
    pinned = {r for r in lowest if "==" in r}
    assert {r.replace("==", ">=") for r in pinned} <= set(newest)
    assert {re.split("[<>=]", r)[0] for r in set(lowest) - pinned} == set(versions.RUNNERS)
    declared = versions.declared()["dependencies"]
    assert {d.replace(">=", "==") for d in declared} <= pinned  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", versions.TESTS)
def test_the_named_tests_are_there(name: str) -> None:
    assert list((versions.ROOT / "tests").glob(name))


def test_a_python_that_is_not_here_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(versions.shutil, "which", lambda name: None)
    assert versions.python_of("newest") == versions.sys.executable
    assert "is not here: newest versions on" in capsys.readouterr().out
