"""The toy figure of the engine's tests serves here as well."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from headcount import lab

sys.path.insert(0, str(Path(__file__).parents[1] / "lab"))

import toy_figure


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    lab.run_plan(lab.make_plan(toy_figure.figure, "smoke"), folder, workers=0)
    return folder


@pytest.fixture(scope="module")
def collected(folder: Path) -> lab.Collection:
    return lab.collect(lab.make_plan(toy_figure.figure, "smoke"), lab.Store(folder))
