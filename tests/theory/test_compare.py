"""All papers beside each other: own losses, shares of the start, hypotheses that fail."""

from __future__ import annotations

import pytest

from headcount.cli._compare import _words
from headcount.core import BadArgument
from headcount.theory import Answer, _compare, compare

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


def test_a_share_is_a_fraction() -> None:
    with pytest.raises(BadArgument, match="share"):
        compare(PROBLEM, share=1.5)


@pytest.mark.parametrize(
    ("value", "beyond", "shown"),
    [(128.0, None, "128"), (None, None, "never"), (None, 4096.0, "> 4096")],
)
def test_how_an_answer_is_shown(value: float | None, beyond: float | None, shown: str) -> None:
    assert Answer("width", "claim", "printed", value, "", beyond).shown == shown
