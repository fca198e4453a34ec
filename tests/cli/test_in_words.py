"""The opening sentence answers what was asked; tables and notes say where numbers come from."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headcount.cli import run
from headcount.cli._count import table_rows, without_repetition
from headcount.cli._in_words import in_short
from headcount.theory import Answer


def answer(value: float | None, name: str = "theorem-1", form: str = "printed", **more: Any) -> Any:
    values: dict[str, Any] = {"note": "note", "printed": form == "printed", **more}
    question = values.pop("question", "width")
    return Answer(question, f"toy/{name}", form, value, **values)


ENDLESS = "endlessly many steps; at twice this width 6.91e+16 suffice"


def told(*answers: Any, question: str = "width", training: Any = None) -> str:
    return in_short(question, "at 400 steps", "a loss of 0.01", answers, training)


def test_what_was_asked_comes_first_and_what_is_printed_before_what_is_ours() -> None:
    """It used to be our sharp width for endlessly many steps, where 400 were given."""
    shown = told(
        answer(None, form="sharp"),
        answer(1.911e15, form="sharp", taken=ENDLESS),
        answer(None),
        answer(8.161e15, taken=ENDLESS),
    )
    assert shown == (
        "For a loss of 0.01 at 400 steps no width suffices. With other numbers of steps 8.161e+15 "
        f"would do (theorem-1 as printed, with {ENDLESS}); 1.911e+15 (theorem-1 in our form "
        f"'sharp', with {ENDLESS})."
    )


def test_a_width_for_the_given_steps_is_the_answer() -> None:
    both = [answer(62.0), answer(12.0, form="sharp")]
    assert told(*both) == (
        "For a loss of 0.01 at 400 steps a width of 62 suffices (theorem-1 as printed); 12 "
        "(theorem-1 in our form 'sharp')."
    )
    assert "sharp" not in told(answer(62.0), answer(70.0, form="sharp"))
    more = told(answer(62.0), answer(70.0, taken=ENDLESS))
    assert "other numbers of steps" not in more  # the given ones do better
    assert "(v2)" not in (named := told(answer(62.0, form="v2", printed=True)))
    assert "as printed in v2" in named
    tie = told(answer(62.0, "eq-44"), answer(62.0))
    assert "(theorem-1 as printed)" in tie


def test_a_vacuous_goal_is_called_so() -> None:
    shown = told(answer(62.0, trivial=81.0), answer(36.0, taken=ENDLESS, trivial=81.0))
    assert "A loss of 0.01 is a vacuous goal: at most 81 is known without any theorem." in shown
    assert "other numbers" not in shown


def test_where_nothing_applies_the_hypothesis_is_told() -> None:
    failing = answer(None, applies=False, note="not applicable: (2) asks for more", beyond=4096.0)
    assert told(failing) == (
        "For a loss of 0.01 at 400 steps no theorem applies up to width 4096: (2) asks for more."
    )
    odd = answer(None, applies=False, note="not applicable: more", beyond=267350.9)
    assert "up to width 2.673e+05: more" in told(odd)  # as the table below it has it
    trained = Answer("width", "training", "measured", 12.0, "")
    assert told(failing, training=trained).endswith(" Training needs 12.")
    missed = Answer("width", "training", "measured", None, "")
    assert told(failing, training=missed).endswith(" Training did not get there.")


def test_other_questions() -> None:
    steps = told(answer(371.2, question="steps"), question="steps")
    assert "371.2 steps suffice (theorem-1 as printed)" in steps
    sizes = [answer(v, form=f, question="step-size") for v, f in ((0.2, "printed"), (0.4, "sharp"))]
    largest = told(*sizes, question="step-size")
    assert "the largest step size that suffices is 0.2 (theorem-1 as printed); 0.4" in largest


def test_rows_say_each_thing_once() -> None:
    rows = [*table_rows([
        answer(5.0, "eq-44"), answer(None, "other", applies=False, note="no"),
        answer(None, "other", "sharp", applies=False, note="no"), answer(5.0),
        answer(3.0, taken=ENDLESS, note="free"), answer(5.0, "third"),
    ])]  # fmt: skip
    assert rows == [
        ("other", "printed, sharp", "-", "no"),
        ("theorem-1", "printed", "5", "note"),
        ("", "", "3", "free"),
        ("third", "printed", "5", "note"),
        ("eq-44", "all", "5", "as third"),
    ]


COUNT = ["count", "--n", "20", "--theory-only", "--json"]


def counted(capsys: pytest.CaptureFixture[str], *flags: str) -> dict[str, Any]:
    assert run([*COUNT, *flags]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_step_size_is_a_hypothesis_of_theorem_1(capsys: pytest.CaptureFixture[str]) -> None:
    """Row 1: the number belongs to (44), which is for any step size."""
    shown = counted(capsys, "--loss", "100000", "--ask", "step-size", "--width", "1024")
    of = {(a["source"], a["variant"]): a for a in shown["theorems"]}
    display, theorem = of["arda2026/eq-44", "printed"], of["arda2026/theorem-1", "printed"]
    assert display["value"] > 0.1
    assert theorem["value"] is None
    assert not theorem["applies"]
    assert "the theorem has one step size of its own: its bound is" in theorem["note"]
    shown = counted(capsys, "--loss", "0.01", "--eta", "0.2", "--steps", "400")
    of = {(a["source"], a["variant"], a["taken"] != ""): a for a in shown["theorems"]}
    note = of["arda2026/theorem-1", "printed", False]["note"]
    assert "eta = 0.2, the theorem asks tau^(-1/2) = 0.05; (44) is for any step size" in note
    assert of["arda2026/eq-44", "printed", False]["applies"]


@pytest.mark.parametrize("rule", ["projgd", "projsgd"])
def test_a_statement_about_another_rule_does_not_answer(
    rule: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Row 10: Proposition 1 is about ProjSGD, Theorem 1 about ProjGD."""
    shown = counted(capsys, "--loss", "1e5", "--optimiser", rule, "--ask", "steps")
    applies = {a["source"] for a in shown["theorems"] if a["applies"]}
    other = {"projgd": "proposition-1", "projsgd": "theorem-1"}[rule]
    assert f"arda2026/{other}" not in applies
    assert applies


def test_numbers_of_several_seeds_say_so(capsys: pytest.CaptureFixture[str]) -> None:
    """Rows 2 and 3: every seed is asked; a condition for every training set is checked on these."""
    flags = [
        "--model",
        "deora2024",
        "--steps",
        "50",
        "--seeds",
        "0:2",
        "--gap",
        "0.5",
        "--ask",
        "steps",
    ]
    shown = counted(capsys, *flags)
    for one in shown["theorems"]:
        assert one["seeds"] == [0, 1]
        assert len(one["per_seed"]) == 2
        assert "for every training set and were checked on these samples alone" in one["note"]


def test_a_remark_in_every_row_stands_once_below_the_table():
    rows = [("a", "printed", "never", f"below {k}; for every set; seed 0") for k in (1, 2, 3)]
    kept, remarks = without_repetition([*rows, ("b", "all", "same", "as a")])
    assert remarks == ["for every set", "seed 0"]
    assert [row[3] for row in kept] == ["below 1", "below 2", "below 3", "as a"]
    assert without_repetition(rows[:2]) == (rows[:2], [])
    same = [(*row[:3], "at 400 steps") for row in rows]
    assert without_repetition(same) == (same, [])
