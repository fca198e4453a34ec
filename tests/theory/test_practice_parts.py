"""Training's answers part by part: which seed decides, the grid of the answer, runs that die."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from headcount.cli._compare import _words
from headcount.core import BadArgument
from headcount.papers.arda2026 import Setting
from headcount.theory import (
    Answer,
    _compare,
    _practice,
    claims,
    compare,
    practice,
    theorem_answers,
)
from headcount.theory import _count as count
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


SETTING = Setting(d=2, m=8, n=10, T=3, rho=(0.01, 0.01, 0.01), nu=(0.01, 0.01, 0.01), tau=10**6)


@pytest.fixture
def up_to_a_septillion(monkeypatch):
    """Eight values per octave are asked to the end: up to 2^80 instead of 2^1000."""
    monkeypatch.setattr(count, "_LARGEST", 2**80)


def rhs(claim: str, setting: Setting, variant: str) -> float:
    return claims[claim].bound(setting, variant).rhs


@pytest.mark.usefixtures("up_to_a_septillion")
@pytest.mark.parametrize(
    ("question", "loss"), [("width", 2e-3), ("steps", 0.05), ("step-size", 0.05)]
)
def test_every_answer_is_where_the_bound_crosses_the_target(question, loss):
    answers = [a for a in theorem_answers("arda2026", SETTING, loss, question) if not a.taken]
    assert {a.source for a in answers} >= {"arda2026/theorem-1", "arda2026/theorem-1-average"}
    found = [a for a in answers if a.value is not None]
    assert found
    for answer in found:
        at, beyond = {
            "width": lambda v: (replace(SETTING, m=int(v)), replace(SETTING, m=int(v) - 2)),
            "steps": lambda v: (replace(SETTING, tau=int(v)), replace(SETTING, tau=int(v) - 1)),
            "step-size": lambda v: (replace(SETTING, eta=v), replace(SETTING, eta=1.001 * v)),
        }[question](answer.value)
        assert rhs(answer.source, at, answer.variant) <= loss
        assert rhs(answer.source, beyond, answer.variant) > loss


@pytest.mark.usefixtures("up_to_a_septillion")
def test_never_names_the_floor_of_the_bound():
    answers = theorem_answers(
        "arda2026", replace(SETTING, rho=(3.0,) * 3, nu=(3.0,) * 3), 1e-3, "steps"
    )
    assert all(a.value is None for a in answers)
    asked = [a for a in answers if "rule" not in a.note]
    assert all("no number of steps brings the bound below" in a.note for a in asked)


def _pretend(monkeypatch, min_loss):
    def trained(config):
        loss = np.array([min_loss(config) * f for f in (0.9, 1.0, 1.1)])
        return _practice.Trained(loss, np.ones(3), np.zeros(3, bool), np.zeros(3, bool))

    monkeypatch.setattr(_practice, "trained", trained)


@pytest.mark.parametrize(
    ("question", "law", "answer"),
    [
        ("width", lambda c: 1 / c.width, 38),
        ("steps", lambda c: 10 / c.steps, 371),
        ("step-size", lambda c: 0.01 if c.eta < 1.0 else 1.0, 1.0),
    ],
)
def test_the_search_finds_the_edge(monkeypatch, question, law, answer):
    _pretend(monkeypatch, law)
    config = TrainConfig.of({"rho": (3, 3, 3), "seeds": (0, 1, 2), "steps": 1000, "eta": 0.01})
    found = practice(config, 0.027, question, width_step=2)
    assert found.answer.value == pytest.approx(answer, rel=0.1 if question != "width" else 1e-9)
    for probe in found.probes:
        assert probe.reached == (np.median(probe.losses) <= 0.027)


def test_a_dip_in_the_losses_is_not_jumped_over(monkeypatch):
    """Losses that are not monotone in width: brute force says 20, bisection would say 48."""
    _pretend(monkeypatch, lambda c: 0.01 if c.width == 20 or c.width >= 48 else 1.0)
    config = TrainConfig.of({"rho": (3, 3, 3), "seeds": (0, 1, 2)})
    assert practice(config, 0.1, "width", width_step=2).answer.value == 20


def test_a_target_above_the_start_needs_no_training(monkeypatch):
    _pretend(monkeypatch, lambda c: 0.5)
    found = practice(TrainConfig.of({"rho": (3, 3, 3)}), 1.5, "width")
    assert found.answer.value is None
    assert "before the first step" in found.answer.note
    assert found.answer.shown == "nothing"


def test_a_width_that_is_not_reached_is_never(monkeypatch):
    _pretend(monkeypatch, lambda c: 1.0)
    found = practice(TrainConfig.of({"rho": (3, 3, 3)}), 0.1, "width", most_width=16)
    assert found.answer.value is None
    assert "not reached up to width 16" in found.answer.note
    assert found.answer.shown == "never"


def test_what_is_shown_still_is_an_answer():
    """A width is rounded up, a step size down, and a lower end down."""
    width, step = (count.Answer(q, "", "", 0.123451, "") for q in ("width", "step-size"))
    assert (width.shown, step.shown) == ("0.1235", "0.1234")
    assert count.Answer("width", "", "", None, "", beyond=99999.0).shown == "> 9.999e+04"
    assert count.Answer("width", "", "", None, "").shown == "never"


def test_a_whole_number_beyond_float64_is_not_made_smaller():
    heads = 2**60 + 1
    assert float(heads) < heads <= int(count._at_least(heads))
    assert count._at_least(2**60) == 2.0**60


PROBLEM = {"data": "dm1", "n": 6, "width": 4, "steps": 5, "seeds": (0,)}


INSIDE = {"data_options": {"noise": "bounded", "S": 0.9, "Z_mu": 0.05, "Z_nu": 0.05}}


@pytest.fixture
def no_inversion(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inverting a bound walks a thousand octaves of widths, and has tests of its own."""
    monkeypatch.setattr(_compare, "theorem_answers", lambda *problem, **given: [])


def test_the_target_is_a_share_of_each_papers_own_loss(no_inversion: None) -> None:
    keys = ("arda2026", "deora2024")
    answers = compare(PROBLEM, share=0.25, theory_only=True, keys=keys)
    found = {answer.paper: answer for answer in answers}
    assert tuple(found) == keys
    # f = 0 at both starts: labels +-1 give a squared error of 1, a logistic loss of log 2.
    assert found["arda2026"].start == pytest.approx(1.0)
    assert found["deora2024"].start == pytest.approx(0.6931471805599453, rel=1e-6)
    for answer in found.values():
        assert answer.target == pytest.approx(0.25 * answer.start)
        assert answer.training is None


def test_tokens_beyond_the_unit_ball_promise_nothing(no_inversion: None) -> None:
    (outside,) = compare(PROBLEM, theory_only=True, keys=("arda2026",))
    (seen,) = outside.promised.values()
    rule = "the run is one of projgd, the statement is about projsgd"
    told = [[check.failing for check in row.failing] for row in seen]
    assert all("the longest token has norm" in words[0] for words in told)
    assert all("dm1 has no option that brings them there" in words[0] for words in told)
    assert all(row.to_json()["bound"] is None for row in seen)
    (inside,) = compare({**PROBLEM, **INSIDE}, theory_only=True, keys=("arda2026",))
    (seen,) = inside.promised.values()
    assert {check.failing for row in seen for check in row.failing} == {rule}


def test_the_target_says_at_which_width_the_start_was(no_inversion: None) -> None:
    """Row 5: starts of wu2023 differ with the width; one loss is asked for at all of them."""
    answers = {
        width: compare({**PROBLEM, "width": width}, theory_only=True, keys=("deora2024",))[0]
        for width in (2, 4)
    }
    for width, found in answers.items():
        assert found.to_json()["width"] == width
        (head, *_) = _words(found)
        assert f"one target for all widths, {found.target:.4g}, 0.1 of the start" in head
        assert f"at width {width} (" in head


def test_training_answers_with_a_width_or_says_how_far_it_looked(no_inversion: None) -> None:
    (found,) = compare({**PROBLEM, **INSIDE}, share=1e-9, most_width=4, keys=("arda2026",))
    assert found.training is not None
    assert found.training.value is None
    assert "not reached up to width 4" in found.training.note
