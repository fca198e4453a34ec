"""Fixtures of the engine's tests: the toy figure, small plans, a log of calls."""

from __future__ import annotations

from pathlib import Path

import pytest
import toy_figure

from headcount import lab


@pytest.fixture
def plan() -> lab.Plan:
    """The toy figure at smoke scale: three widths, four seeds."""
    return lab.make_plan(toy_figure.figure, "smoke")


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    """A function that tells which trials were computed, in every process."""
    log = tmp_path / "calls.log"
    monkeypatch.setenv("TOY_LOG", str(log))
    return lambda: log.read_text().split() if log.exists() else []
