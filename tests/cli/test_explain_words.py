"""What explain, recheck, audit and compare say of an example on file: words an author accepts."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from headcount.cli import run
from headcount.cli._audit import _counted
from headcount.cli._compare import _nothing_promised
from headcount.cli._unicode import unicode_words
from headcount.papers.deora2024.claims.proposition_3 import _unequal
from headcount.papers.deora2024.conditions import AT_HORIZON
from headcount.papers.wu2023.claims.proposition_1 import short
from headcount.theory import Check, Outcome, claims, explain, falsify
from headcount.theory._promise import Promised

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
    statement = unicode_words(claims[told.split()[0]].statement)  # as explain writes it
    assert f"What is compared: {statement[:40]}" in told
    assert "\\frac" not in told


def test_a_search_speaks_as_the_recheck_does() -> None:
    found = falsify(claims["deora2024/eq-3"], "printed", budget="small")
    assert found.message.startswith("the inequality is proved: ratio ")


def test_outcomes_are_counted_in_grammar() -> None:
    outcomes = [Outcome.HOLDS] * 2 + [Outcome.VACUOUS, Outcome.NOT_APPLICABLE]
    rows = [SimpleNamespace(outcome=o, variant="v", claim="deora2024/x") for o in outcomes]
    report: Any = SimpleNamespace(verdicts=rows, paper="deora2024")
    assert _counted(report, True) == "4 claims: 2 hold, 1 holds vacuously, 1 not applicable"


def test_equalities_fail_in_the_papers_quantities() -> None:
    """Never "1.89 where at most 1e-09 is allowed", nor "inf times as large"."""
    assert _unequal(np.float64(0.5), np.float64(1.25)).startswith("Z_mu = 0.5 and Z_nu = 1.25")
    assert AT_HORIZON.told is not None
    assert AT_HORIZON.told(0.1, 5) == "eps = 0.1, the corollary takes 1/K = 0.2"
    assert short("(2)", np.inf) == "(2) asks for a left side above 0, as its right side is"
    assert "times as large" in short("(2)", 3.0)
    asked = {h.name: h for name in CLAIMS for h in claims[name].hypotheses}
    for name in ("|theta_*|^2 = 2", "no unit changes sign", "Z_mu = Z_nu"):
        assert asked[name].told is not None, name


CLAIMS = ("deora2024/proposition-7", "wu2023/lemma-14-smooth", "deora2024/proposition-3")


def test_a_failing_hypothesis_is_told_once_for_all_seeds() -> None:
    """Three seeds gave three times the same sentence, with other numbers."""

    def seed(heads: str) -> tuple[Promised, ...]:
        wide = Check("heads", 2.0, 1.0, f"H = 16, (74) asks H >= {heads}")
        rule = Check("rule", 1.0, 0.0, "the run is one of projgd")
        return tuple(Promised("p/t", form, 1.0, (wide, rule)) for form in ("a", "b"))

    answer: Any = SimpleNamespace(promised={0: seed("8"), 1: seed("9"), 4: seed("7")})
    assert _nothing_promised(answer) == [
        "H = 16, (74) asks H >= 8 (seed 0; other numbers for seeds 1, 4); so nothing is promised "
        "by t (a), t (b)",
        "the run is one of projgd (seeds 0, 1, 4); so nothing is promised by t (a), t (b)",
    ]
    answer.promised = {0: seed("8")}
    assert _nothing_promised(answer)[0].startswith("H = 16, (74) asks H >= 8; so nothing")
