"""Comparing results folders, and listening to sweeps."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from headcount import lab


class Messages(lab.Reporter):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    def message(self, text: str) -> None:
        """Kept."""
        self.messages.append(text)


class After(Messages):
    """Does something when so many trials are finished."""

    def __init__(self, count: int, then: Callable[[], None]) -> None:
        super().__init__()
        self.count, self.then = count, then

    def finished(self, sweep: lab.Sweep, trial: lab.Trial, answer: dict[str, Any]) -> None:
        """Counted."""
        self.count -= 1
        if self.count == 0:
            self.then()


def other_toy(folder: Path) -> str:
    """A PYTHONPATH on which the toy figure gives other numbers."""
    here = Path(__file__).parent
    place = folder / "elsewhere"
    place.mkdir()
    text = (here / "toy_figure.py").read_text()
    (place / "toy_figure.py").write_text(text.replace("np.exp(-2)", "np.exp(-3)"))
    return os.pathsep.join([str(place), os.environ.get("PYTHONPATH", "")])


def payloads(plan: lab.Plan, folder: Path) -> dict[str, dict[str, np.ndarray]]:
    """All stored numbers of a plan."""
    store = lab.Store(folder)
    return {
        address: stored.payload
        for address in plan.unique
        if (stored := store.read(address)) is not None
    }


def assert_same(plan: lab.Plan, one: Path, other: Path) -> None:
    """Both folders hold every trial, bit for bit the same."""
    a, b = payloads(plan, one), payloads(plan, other)
    assert set(a) == set(b) == set(plan.unique)
    for address in a:
        assert set(a[address]) == set(b[address])
        for name in a[address]:
            assert a[address][name].dtype == b[address][name].dtype
            assert a[address][name].tobytes() == b[address][name].tobytes(), (address, name)
