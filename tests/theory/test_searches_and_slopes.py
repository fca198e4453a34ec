"""Budgets, one-dimensional searches, derivatives by dual numbers, what a reader has to read."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from dual_numbers import Dual, duals

from headcount.theory.slow import FLOATS, softmax

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
