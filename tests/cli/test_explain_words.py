"""What explain, recheck, audit and compare say of an example on file: words an author accepts."""

from __future__ import annotations

from typing import Any

import pytest

from headcount.cli import run
from headcount.theory import claims, explain, falsify

Capture = pytest.CaptureFixture[str]


def tightest(name: str) -> dict[str, Any]:
    return {one["variant"]: one for one in explain(claims[name]).to_json()["tightest"]}


def test_a_counterexample_on_file_is_the_hardest_instance() -> None:
    """It said "counterexample known" and, two lines on, "largest known left/right: 1, holds"."""
    found = tightest("deora2024/lemma-18")
    assert found["printed"]["ratio"] == pytest.approx(4)
    assert found["printed"]["outcome"] == "violated"
    assert found["corrected"]["outcome"] == "holds"


def test_what_is_outside_the_hypotheses_is_no_instance() -> None:
    """The form `corrected` had "nan, not applicable"; an informal rate is not violated."""
    found = tightest("deora2024/corollary-2-heads")
    assert set(found) == {"printed"}
    assert found["printed"]["outcome"] == "exceeded"


def test_an_equality_has_a_difference_and_an_assumption_is_not_met(capsys: Capture) -> None:
    assert run(["explain", "wu2023/theorem-3-mixed"]) == 0
    shown = capsys.readouterr().out
    assert "largest known relative difference: 0.05" in shown
    assert "left/right" not in shown
    assert run(["explain", "deora2024/assumption-3"]) == 0
    shown = capsys.readouterr().out
    assert "Example on file: not met by the Gaussian noise of App. G." in shown
    assert "the right side is zero, not met" in shown
    assert "ounterexample" not in shown


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("deora2024-assumption-3-gaussian", "the inequality is proved: 0.0124193307 > 0\n"),
        ("arda2026-subgaussian-tail-implied", "the inequality is proved"),
        ("deora2024-fact-2-printed", "the violation is proved: 0.25 > 0.234375, ratio 1.06666667"),
    ],
)
def test_only_what_is_asserted_can_be_violated(
    name: str, said: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert run(["recheck", name]) == 0
    told = capsys.readouterr().out
    assert said in told
    assert f"What is compared: {claims[told.split()[0]].statement[:40]}" in told


def test_a_search_speaks_as_the_recheck_does() -> None:
    found = falsify(claims["deora2024/eq-3"], "printed", budget="small")
    assert found.message.startswith("the inequality is proved: ratio ")
