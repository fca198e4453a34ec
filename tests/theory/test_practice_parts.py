"""Training's answers part by part: which seed decides, the grid of the answer, runs that die."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from headcount.core import BadArgument
from headcount.theory import Answer, _practice
from headcount.training import TrainConfig


def pretend(monkeypatch: pytest.MonkeyPatch, losses: Any, start: Any = (1.0, 1.0, 1.0)) -> None:
    def trained(config: Any) -> Any:
        found, never = np.nan_to_num(losses(config), nan=np.inf), np.zeros(3, bool)
        return _practice.Trained(found, np.array(start), never, never)

    monkeypatch.setattr(_practice, "trained", trained)


CONFIG = {"rho": (3, 3, 3), "seeds": (0, 1, 2), "steps": 64}


def test_the_median_seed_decides_and_nan_is_no_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, lambda c: (0.0, 0.5 if c.width >= 6 else 0.7, math.nan))
    told: list[str] = []
    found = _practice.practice(
        TrainConfig.of(CONFIG), 0.5, "width", width_step=2, most_width=8, progress=told.append
    )
    assert found.answer == Answer(
        "width", "training", "measured", 6.0, "3 seeds, tried upwards: every multiple of 2"
    )
    assert [p.value for p in found.probes] == [2, 4, 6]
    assert [p.reached for p in found.probes] == [False, False, True]
    assert found.probes[0].losses == (0.0, 0.7, math.inf)
    assert told[0] == "width 2: median smallest loss 0.7"
    pretend(monkeypatch, lambda c: (math.nan, 0.1, math.nan))
    missed = _practice.practice(TrainConfig.of(CONFIG), 0.5, "width", most_width=2)
    assert missed.answer.value is None
    assert missed.answer.note == "3 seeds, not reached up to width 2"


def test_a_loss_that_is_met_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, lambda c: (0.1,) * 3, start=(0.2, 0.5, 9.0))
    config = TrainConfig.of(CONFIG)
    for loss, met in ((0.5, True), (0.49, False)):
        note = _practice.practice(config, loss, "width").answer.note
        assert ("the loss is 0.5 before the first step" in note) is met


@pytest.mark.parametrize(
    ("question", "field", "kind"), [("steps", "steps", int), ("step-size", "eta", float)]
)
def test_the_right_field_is_changed(
    question: str, field: str, kind: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    def losses(config: TrainConfig) -> tuple[float, ...]:
        seen.append(getattr(config, field))
        return (0.1,) * 3

    pretend(monkeypatch, losses)
    found = _practice.practice(TrainConfig.of(CONFIG), 0.5, question)
    assert found.answer.value == seen[0]
    assert all(type(value) is kind for value in seen)
    for bad in ({"loss": 0.0}, {"question": "x"}, {"most_width": 1, "width_step": 2}):
        values: Any = {"loss": 0.5, "question": question, **bad}
        with pytest.raises(BadArgument):
            _practice.practice(
                TrainConfig.of(CONFIG), values.pop("loss"), values.pop("question"), **values
            )


def test_inside_the_cell_of_the_answer() -> None:
    asked: list[float] = []

    def reaches(value: float) -> bool:
        asked.append(value)
        return value >= 200

    found, note = _practice._search_width(reaches, 1, 1000)
    assert note.endswith("then four per octave: a smaller one between them may do")  # row 6
    grid = asked[: next(k for k, v in enumerate(asked) if v >= 200) + 1]
    failed, reached = grid[-2], grid[-1]
    step = (reached - failed) // 8
    assert found == next(v for v in range(int(failed) + 1, 10**6, int(step)) if v >= 200)
    assert asked[len(grid)] == failed + 1
    assert grid[15:18] == [16, 19, 23]


def fared(monkeypatch: pytest.MonkeyPatch, diverges: Any, dies: Any) -> None:
    """Two seeds; the loss stays at 1, runs fail where the functions of a configuration say so."""

    def trained(config: Any) -> Any:
        failed = np.array([diverges(config), False]), np.array([False, dies(config)])
        return _practice.Trained(np.ones(2), np.full(2, 2.0), *failed)

    monkeypatch.setattr(_practice, "trained", trained)


def test_runs_that_diverge_or_die_are_told_with_a_step_that_helps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Row 4: it is the step size, not the width, and the user reads so."""
    config = TrainConfig.of({"rho": (3, 3, 3), "seeds": (0, 1), "eta": 0.8})
    fared(monkeypatch, lambda c: c.eta > 0.1, lambda c: c.eta > 0.3)
    found = _practice.practice(config, 0.5, "width", most_width=2)
    assert found.answer.note == (
        "2 seeds, not reached up to width 2; of 4 runs 2 diverged and 2 died (all outputs are zero "
        "at the end): with a step of 0.05 (now 0.8) none does at width 2"
    )
    assert [(p.diverged, p.died) for p in found.probes] == [(1, 1), (1, 1)]
    fared(monkeypatch, lambda c: True, lambda c: False)
    found = _practice.practice(config, 0.5, "width", most_width=1)
    assert "; of 2 runs 1 diverged; steps down to 1.2e-05 do not help at width 1" in (
        found.answer.note
    )
    fared(monkeypatch, lambda c: False, lambda c: False)
    found = _practice.practice(config, 0.5, "width", most_width=1)
    assert found.answer.note == "2 seeds, not reached up to width 1"


def test_a_dead_encoder_is_seen() -> None:
    """wu2023 at a step of 30: of three narrow encoders two die and one diverges."""
    small = {"model": "wu2023", "n": 4, "width": 2, "steps": 60, "seeds": (0, 1, 2)}
    alive = _practice.trained(TrainConfig.of({**small, "eta": 1e-3}))
    assert not np.any(alive.died | alive.diverged)
    failed = _practice.trained(TrainConfig.of({**small, "eta": 30.0}))
    assert list(failed.died) == [True, False, True]
    assert list(failed.diverged) == [False, True, False]
