"""The opening sentence answers what was asked; tables and notes say where numbers come from."""

from __future__ import annotations

import functools
import json
import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from headcount import theory
from headcount.cli import _ntk, run
from headcount.cli._audit import _at_hyphens, _cells, _counted
from headcount.cli._compare import _nothing_promised
from headcount.cli._count import table_rows
from headcount.cli._explain import _told
from headcount.cli._flags import in_flags
from headcount.cli._in_words import in_short, training_needs
from headcount.cli._list import _with_words
from headcount.cli._meaning import meaning
from headcount.cli._unicode import unicode_of, unicode_words
from headcount.core import BadArgument, papers
from headcount.papers.deora2024.claims.proposition_3 import _unequal
from headcount.papers.deora2024.conditions import AT_HORIZON
from headcount.papers.wu2023.claims.proposition_1 import short
from headcount.theory import (
    Answer,
    Check,
    Outcome,
    Verdict,
    claims,
    errata_page,
    refuted_page,
)
from headcount.theory._forms import quotes_in
from headcount.theory._promise import Promised
from headcount.theory._shipped import read_shipped


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


def test_long_names_of_claims_break_behind_hyphens():
    assert _at_hyphens("lemma-5", 15) == "lemma-5"
    assert _at_hyphens("fact-3-semidefinite", 15) == "fact-3-\nsemidefinite"
    broken = _at_hyphens("separation-initialisation (printed)", 15)
    assert broken == "separation-\ninitialisation (printed)"


def test_a_search_that_gave_up_does_not_say_never(capsys):
    tiny = ["--n", "6", "--steps", "3", "--seeds", "0", "--most-width", "2"]
    assert run(["compare", "--papers", "deora2024", "--share", "0.0001", *tiny]) == 0
    assert "not reached" in capsys.readouterr().out
    given_up = theory.Answer("width", "training", "measured", None, "not reached up to width 2")
    assert training_needs(given_up) == "not reached"
    assert in_short("width", "at 3 steps", "a loss", [], given_up).endswith("did not get there.")


SHOWN = {
    r"\tfrac1n\sum_i\|\theta_i^2\|\le\sqrt{2\log(m/\delta')}": "1/n Σᵢ‖θᵢ²‖ ≤ √(2 log(m/δ′))",
    r"\tfrac1{2K}\sum_{k<K}a_k": "1/(2K)Σ_(k < K)aₖ",
    r"\sqrt T d R^3": "√T d R³",
    r"\sqrt{Td}R^3": "√(Td)R³",
    r"\widehat{\mathcal L}_n\geq\frac{a+b}c": "ℒ̂ₙ ≥ (a+b)/c",
    r"\left\{ x \in \mathbb{R}^d \right\}": "{ x ∈ ℝᵈ }",
    r"for $x$ with $\text{rank} \leq 2$": "for x with rank ≤ 2",
    r"K_{d_m}^{-1/2}": "K_(dₘ)^(-1/2)",
}


@pytest.mark.parametrize("latex", SHOWN)
def test_a_formula_in_characters(latex: str):
    assert unicode_of(latex) == SHOWN[latex]


def test_words_of_a_typewriter():
    said = "phi in Omega_rho, |f| <= sqrt(delta), alphabet, --rho, sigma-2-tanh"
    assert unicode_words(said) == "φ in Ω_ρ, |f| ≤ √(δ), alphabet, --rho, sigma-2-tanh"


def test_no_formula_or_quotation_is_left_in_latex():
    for name in claims:
        for text in (claims[name].latex, *(f.quotation for f in claims[name].forms.values())):
            shown = unicode_of(text)
            assert bool(shown) == bool(text)
            assert not set("\\$") & set(shown), (name, shown)


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


def test_errors_keep_the_words_of_python_where_there_is_no_flag():
    error = BadArgument("U", 3, "is bad", fix="use U=4 or T=2 or steps=5")
    assert in_flags(error, ["--steps", "--T"]) == "U = 3: is bad; use U=4 or --T 2 or --steps 5"
    assert in_flags(error, []) == str(error)
    assert in_flags(BadArgument("m", 7, "is odd", fix="use m=8"), ["--width"]) == (
        "--width 7: is odd; use --width 8"
    )


def test_both_ways_to_the_ends_of_the_spectrum_agree(monkeypatch):
    factor = np.random.default_rng(0).normal(size=(40, 60))
    kernel = factor @ factor.T
    dense = _ntk._extremes(kernel, 3)
    monkeypatch.setattr(_ntk, "MOST_DENSE", 10)
    for one, other in zip(dense, _ntk._extremes(kernel, 3), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10)
    assert dense[0][0] > dense[0][2] > dense[1][2] > dense[1][0]
    assert _ntk._extremes(kernel, 0) == ([], [])


REFUTED = [
    pytest.param(claim.id, name, id=f"{claim.id}:{name}")
    for claim in map(claims.__getitem__, claims)
    for name, form in claim.forms.items()
    if form.fails
]


FILES = {(c.claim, c.variant): path.name for path, c in read_shipped()}


@functools.cache
def pages():
    """The lines of the pages of errata and of refuted forms."""
    return errata_page().splitlines(), refuted_page().splitlines()


def on_screens(claim, form):
    """What the screens say of a refuted form: explain, recheck and falsify, errata, list."""
    errata = [line for line in pages()[0] if FILES[claim.id, form] in line]
    page = [line for line in pages()[1] if f"`{claim.id}`, {form} (" in line]
    told = [*_told(claim.forms[form]), *meaning(claim, form)]
    return {"told": told, "errata": errata, "refuted": page, "list": _with_words([claim.id])}


def contradicts(role, words):
    """Whether words on a screen call a form what its role forbids."""
    accused = any(re.search("false as printed|is false", line) for line in words)
    return accused != (role == "statement")


@pytest.mark.parametrize(("name", "form"), REFUTED)
def test_words_on_every_screen_are_those_of_the_role(name, form):
    claim = claims[name]
    own = claim.forms[form]
    assert own.role == "ours" or (own.defence and own.checked)
    assert own.role != "step" or own.becomes
    others = {f.role for key, f in claim.forms.items() if f.fails and key != form}
    for screen, words in on_screens(claim, form).items():
        assert words, screen
        if screen != "list" or not others:
            assert not contradicts(own.role, words), (screen, words)


@pytest.mark.parametrize("key", ["arda2026", "deora2024", "wu2023"])
def test_every_quotation_belongs_to_a_form(key):
    """A claim or form that is not there would be a quotation that nobody reads."""
    named = [f"{key}/{name}" for name in quotes_in(papers[key].quotes)]
    assert [name for name in named if name not in claims] == []
    assert all(claims[name].forms for name in named)


@pytest.mark.parametrize(
    ("direction", "lhs", "rhs", "cells"),
    [
        ("upper", 1.0, 4.0, ("1", "<= 4", "0.25")),
        ("lower", 1.0, 4.0, ("4", ">= 1", "0.25")),
        ("lower", -392.0, 4.0, ("4", ">= -392", "-")),
        ("equality", 2.0, 2.0, ("2", "= 2", "-")),
        ("upper", -1.0, 4.0, ("-1", "<= 4", "-")),
    ],
)
def test_cells_of_a_verdict(direction: str, lhs: float, rhs: float, cells: tuple[str, ...]) -> None:
    verdict = Verdict(
        "arda2026/lemma-1", "printed", Outcome.HOLDS, "", lhs, rhs, lhs / rhs, direction=direction
    )
    assert _cells(verdict)[2:5] == cells
