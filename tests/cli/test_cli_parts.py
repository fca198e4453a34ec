"""Names, formulas, cells and errors as a screen shows them; the ends of a spectrum."""

from __future__ import annotations

import numpy as np
import pytest

from headcount import theory
from headcount.cli import _ntk, run
from headcount.cli._audit import _at_hyphens, _cells
from headcount.cli._flags import in_flags
from headcount.cli._in_words import in_short, training_needs
from headcount.cli._unicode import unicode_of, unicode_words
from headcount.core import BadArgument
from headcount.theory import (
    Outcome,
    Verdict,
    claims,
)


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
