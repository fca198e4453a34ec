"""Budgets, one-dimensional searches, derivatives by dual numbers, what a reader has to read."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from dual_numbers import Dual, duals

from headcount.core import BadArgument
from headcount.theory import Budget, Kind, Outcome, Sides, _practice
from headcount.theory._falsify import BUDGETS, budget_of
from headcount.theory._shrink import _digits, _entry, _replaced, _rounder
from headcount.theory._verdict import decide
from headcount.theory.slow import FLOATS, softmax
from headcount.theory.slow_sides import ROUNDING


@pytest.mark.parametrize(
    ("evaluations", "budget"),
    [
        (10, Budget(8, 1, 2)),
        (200, Budget(40, 1, 160)),
        (400, Budget(80, 2, 160)),
        (4999, Budget(999, 24, 166)),
        (5000, Budget(1000, 24, 166, sizes=1)),
        (10**6, Budget(200000, 24, 33333, sizes=3)),
    ],
)
def test_a_budget_in_evaluations(evaluations: int, budget: Budget) -> None:
    """A fifth of them drawn, the rest climbed in up to 24 ascents; sizes from 5,000 on."""
    assert budget_of(evaluations) == budget == budget_of(str(evaluations))
    assert budget_of(budget) is budget
    assert budget_of("small") == BUDGETS["small"]
    with pytest.raises(BadArgument, match="budget"):
        budget_of(9)
    for asked in (10, 1000, 50_000):
        assert 0.5 <= budget_of(str(asked)).evaluations / asked <= 1.01


class Asked:
    """What a search asks, and where it is told that the target is reached."""

    def __init__(self, reached: Any) -> None:
        self.reached, self.values = reached, []

    def __call__(self, value: float) -> bool:
        self.values.append(value)
        return bool(self.reached(value))


def test_steps_are_tried_on_a_grid_of_factor_root_two_then_inside() -> None:
    never = Asked(lambda k: False)
    assert _practice._search_steps(never, 100) == (None, "not reached within 100 steps")
    assert never.values == [1, 2, 3, 4, 6, 9, 12, 18, 25, 35, 50, 71, 100]
    late = Asked(lambda k: k >= 80)
    assert _practice._search_steps(late, 100)[0] == 81.0
    assert late.values[-4:] == [72, 75, 78, 81]
    assert _practice._search_steps(Asked(lambda k: True), 100)[0] == 1.0


def test_step_sizes_are_tried_downwards_then_inside_the_last_factor() -> None:
    never = Asked(lambda eta: False)
    value, note = _practice._search_step_size(never)
    assert value is None
    assert "from 10000 down to 1.8e-08" in note
    np.testing.assert_allclose(never.values, 1e4 / 2.0 ** np.arange(40))
    assert _practice._search_step_size(Asked(lambda eta: True))[0] == 1e4
    found = Asked(lambda eta: eta <= 6000.0)
    value, note = _practice._search_step_size(found)
    inside = np.geomspace(1e4, 5e3, 9)[1:-1]
    assert value == pytest.approx(next(eta for eta in inside if eta <= 6000))
    assert note.endswith("then to within 10 %")
    low = Asked(lambda eta: eta <= 5000.0)
    assert _practice._search_step_size(low)[0] == pytest.approx(5000.0)


FUNCTIONS = {
    "exp": math.exp,
    "log": math.log,
    "sqrt": math.sqrt,
    "root": math.sqrt,
    "tanh": math.tanh,
    "sin": math.sin,
    "cos": math.cos,
    "atan": math.atan,
    "erf": math.erf,
    "erfc": math.erfc,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_slopes_of_dual_numbers_against_differences(name: str) -> None:
    num, function, x, h = duals(FLOATS), FUNCTIONS[name], 0.7, 1e-5
    found = getattr(num, name)(Dual(x, 3.0))
    assert found.value == pytest.approx(function(x))
    assert found.slope == pytest.approx(3 * (function(x + h) - function(x - h)) / (2 * h), rel=1e-8)
    plain = getattr(num, name)(x)
    assert (plain.value, plain.slope) == (pytest.approx(function(x)), 0)


def test_arithmetic_of_dual_numbers_against_differences() -> None:
    def expression(x: Any, y: Any) -> Any:
        return (2 - x) * y / (1 + x) - (x - y) * 3 + (4 / y - x / 5) * -x + y**3

    x, y, dx, dy, h = 0.7, 1.3, 2.0, -1.5, 1e-5
    found = expression(Dual(x, dx), Dual(y, dy))
    assert found.value == pytest.approx(expression(x, y))
    ends = (expression(x + s * h * dx, y + s * h * dy) for s in (1, -1))
    assert found.slope == pytest.approx(next(ends) / (2 * h) - next(ends) / (2 * h), rel=1e-8)
    with pytest.raises(TypeError, match="no derivative"):
        duals(FLOATS).absolute(Dual(x, dx))


def test_the_slow_softmax_does_not_overflow() -> None:
    np.testing.assert_allclose(softmax(FLOATS, [1000.0, 1000.0 + math.log(3)]), [0.25, 0.75])


def test_what_there_is_to_read() -> None:
    values = (0.0, 1.0, -1.0, 2.0, 0.5, 10.0, 0.25, 1.25e-7, 120.5, 0.01, 1e4)
    assert [_digits(x) for x in values] == [0, 1, 1, 2, 2, 2, 3, 6, 5, 2, 4]
    fields = {"x": np.array([0.25, 3.0])}
    assert _replaced("x", np.sign, fields)["x"].tolist() == [1.0, 1.0]  # type: ignore[index]
    assert _replaced("x", lambda v: v + 0.0, fields) is None
    assert _entry("x", (0,), 0.5, fields)["x"].tolist() == [0.5, 3.0]  # type: ignore[index]
    assert _entry("x", (1,), 7.0, fields) is None
    assert list(_rounder(0.0)) == list(_rounder(math.inf)) == []
    assert list(_rounder(-2.6))[:4] == [0.0, -1.0, -3.0, -0.5]


@pytest.mark.parametrize(
    ("lhs", "rhs", "outcome", "words"),
    [
        (3.0, 2.0, Outcome.VIOLATED, "left side 3 against 2: ratio 1.5"),
        (2.0, 2.0, Outcome.HOLDS, "left side 2 against 2: ratio 1"),
        (2.0 * (1 + 0.5 * ROUNDING), 2.0, Outcome.HOLDS, "up to rounding"),
        (2.0 * (1 + 1.5e-9), 2.0, Outcome.VIOLATED, "ratio 1 + 1.49e-09"),
    ],
)
def test_the_words_of_a_verdict(lhs: float, rhs: float, outcome: Outcome, words: str) -> None:
    claim: Any = type("C", (), {"id": "toy/words", "kind": Kind.DETERMINISTIC, "lower": False})
    verdict = decide(claim, "printed", Sides(lhs, rhs), (), lhs / rhs)
    assert verdict.outcome is outcome
    assert words in verdict.message
