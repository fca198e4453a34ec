"""Head counting: inverted bounds against brute force, and a search that finds a known answer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from headcount.core import BadArgument
from headcount.papers.arda2026 import Setting
from headcount.theory import _count as count
from headcount.theory import _practice, claims, practice, theorem_answers
from headcount.training import TrainConfig

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


def test_a_target_must_be_positive():
    with pytest.raises(BadArgument, match="loss"):
        theorem_answers("arda2026", SETTING, -1.0, "width")


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
