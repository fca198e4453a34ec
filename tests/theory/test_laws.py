"""Laws of sizes: told where they explain the worst ratios found, never where the search failed."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import pytest

from headcount.theory import Budget, Reals, Size, falsify, lemma
from headcount.theory import _lemma_report as report
from headcount.theory._lemma_report import SizeRatio

FOUND = "of what the search found, the worst ratio"


def law(ratio: Any, values: Any = (1, 2, 4, 8), **others: int) -> tuple[str, ...]:
    return report.growth_of([SizeRatio({"T": T, **others}, ratio(T)) for T in values])


def test_powers_in_words() -> None:
    for exponent, words in (
        (0.11, "grows like T^0.11 (exponent +0.11, within 0.1 % for T = 1..8)"),
        (0.52, "grows like sqrt(T) (exponent +0.52, within 0.1 % for T = 1..8)"),
        (0.6, "grows like T^0.6 "),
        (-1.02, "falls like 1/T (exponent -1.02,"),
        (-0.7, "falls like 1/T^0.7 "),
        (2.01, "grows like T^2 "),
    ):
        (told,) = law(lambda T, e=exponent: 0.1 * T**e)
        assert told.startswith(f"{FOUND} {words}")
    assert law(lambda T: 0.7 * T**0.02) == (
        f"{FOUND} does not depend on T (within 4.3 % for T = 1..8)",
    )
    rows = [
        SizeRatio({"T": T, "d": d}, 3 * T**0.5 / d)
        for T, d in ((2, 2), (4, 2), (9, 3), (2, 7), (3, 4))
    ]
    exponents, missed = report._fit(rows, ["T", "d"])
    assert exponents == pytest.approx({"T": 0.5, "d": -1.0})
    assert missed == pytest.approx(0, abs=1e-12)
    assert ["sqrt(T)" in told for told in report.growth_of(rows)] == [True, False]
    assert "1/d" in report.growth_of(rows)[1]
    assert report.growth_of(rows[:4]) == ()
    endless = SizeRatio({"T": 1, "d": 1}, math.inf)
    assert report.growth_of([*rows, endless]) == ()
    assert report.growth_of(()) == ()


@pytest.mark.parametrize(
    ("ratios", "why"),
    [
        ({2: 0.176, 3: 0.096, 4: 0.068, 5: 0.120}, "a search that lost its way"),
        ({1: 0.373, 2: 0.476, 4: 0.483, 8: 0.486}, "a limit of 1/2"),
        ({2: 0.5, 3: 2 / 3, 5: 0.8, 8: 0.875}, "1 - 1/T"),
        ({2: 1.0, 4: 2.0, 8: 4.0}, "three points and two numbers of the law"),
        ({2: 1.0, 3: 1.0}, "two sizes"),
        ({1: 1.0, 2: 1.0, 4: 0.0, 8: 1.0}, "nothing found in between"),
        ({1: 1.0, 2: 1.0, 4: 1.0, 8: 0.0}, "nothing found at the end"),
        ({1: 1.0, 2: 1.05, 4: 1.03, 8: 1.08}, "growth of the size of its error"),
    ],
)
def test_a_law_that_does_not_explain_the_points_is_not_told(
    ratios: dict[int, float], why: str
) -> None:
    assert law(ratios.__getitem__, tuple(ratios)) == (), why


def test_small_sizes_may_be_left_out_of_a_law() -> None:
    """A lemma about differences says nothing of one token."""
    (told,) = law(lambda T: float(T > 1))
    assert told == f"{FOUND} does not depend on T (within 0.1 % for T = 2..8)"


@lemma(x=Reals(2), t=Reals(Size("k", 1, 4)))
def ignored_if_far(x, t):
    """Largest where all of t but one entry is far below zero: as large at every k."""
    length = len(t)
    most = 0.4 * jnp.exp(-jnp.sum((x - 1) ** 2))
    return jnp.where(jnp.all(t[1:] < -900), most, most / length), 1.0


def test_what_small_sizes_allow_larger_ones_allow_too():
    """Without embedding 1/k is found, a law that is not there."""
    found = falsify(ignored_if_far, budget=Budget(random=96, restarts=4, steps=40))
    assert [row.ratio for row in found.per_size] == pytest.approx([0.4] * 4, rel=2e-3)
    (law,) = found.growth
    assert "does not depend on k" in law
