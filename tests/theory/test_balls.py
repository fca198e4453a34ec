"""Balls: enclosures hold the exact value, comparisons never guess, the driver separates."""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import Any

import flint
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from ball_expressions import (
    EXACT,
    INPUTS,
    ROUNDED,
    WITH_JAX,
    Expression,
    OutOfRange,
    draw,
    guarded,
    with_numbers,
)
from dual_numbers import Dual, duals
from flint import arb
from mpmath_numbers import as_ball

from headcount.core import BadArgument
from headcount.theory.balls import (
    RULES,
    Ball,
    Order,
    Undecided,
    at_precision,
    enclose,
    equal,
    less,
    nearest,
    power,
    roughly,
    separate,
    whole,
)
from headcount.theory.slow import FLOATS, activation, balls, dot, norm, precise, softmax

BITS = 200
Case = tuple[Expression, list[float], mpmath.mpf]


@functools.cache
def cases(count: int, rounded: bool) -> list[Case]:
    """Random expressions with their inputs and their values to 130 digits."""
    rng = np.random.default_rng(7 + rounded)
    num = precise(130)
    reference = guarded(with_numbers(num))
    found: list[Case] = []
    while len(found) < count:
        expression = draw(rng, int(rng.integers(2, 6)), EXACT + ROUNDED if rounded else EXACT)
        inputs = rng.normal(size=INPUTS).tolist()
        try:
            value = expression.value(reference, [num.number(x) for x in inputs])
        except OutOfRange:
            continue
        found.append((expression, inputs, value))
    return found


def by_twin(expression: Expression, inputs: list[float]) -> arb:
    with balls(BITS) as num:
        found = expression.value(with_numbers(num), [num.number(x) for x in inputs])
    return found.arb


def by_jaxpr(expression: Expression, inputs: list[float], **more: int) -> arb:
    def function(x: Any) -> Any:
        return jnp.asarray(expression.value(WITH_JAX, x), dtype=jnp.float64)

    return enclose(function, np.array(inputs), bits=BITS, **more)


def misses(evaluate: Any, found: list[Case]) -> list[str]:
    """The expressions whose enclosure does not hold the 100-digit value."""
    missed = []
    for expression, inputs, value in found:
        ball = evaluate(expression, inputs)
        with at_precision(600):
            if not (ball.is_finite() and ball.overlaps(as_ball(value))):
                missed.append(f"{expression} at {inputs}: {ball.str(30)} against {value}")
    return missed


@pytest.mark.parametrize("evaluate", [by_twin, by_jaxpr])
@pytest.mark.parametrize("rounded", [False, True])
def test_enclosures_hold_the_value_of_random_expressions(evaluate: Any, rounded: bool) -> None:
    assert misses(evaluate, cases(500, rounded)) == []


@pytest.mark.parametrize(("evaluate", "rounded"), [(by_twin, True), (by_jaxpr, False)])
def test_enclosures_are_tight(evaluate: Any, rounded: bool) -> None:
    """Decimal strings are enclosed at full precision, exact constants are not widened."""
    accuracy = [evaluate(e, inputs).rel_accuracy_bits() for e, inputs, _ in cases(100, rounded)]
    assert np.mean(np.array(accuracy) > BITS - 40) > 0.95


def test_planted_exact_constants_are_caught() -> None:
    exact = functools.partial(by_jaxpr, ulps=0)
    assert len(misses(exact, cases(100, True))) > 10


@pytest.mark.parametrize("name", ["add", "mul", "exp", "div", "tanh"])
def test_planted_rounding_without_a_radius_is_caught(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = RULES[name]

    def middle(equation: Any, *values: Any) -> Any:
        result = rule(equation, *values)
        return type(result)(np.vectorize(arb.mid, otypes=[object])(result.array))

    monkeypatch.setitem(RULES, name, middle)
    assert misses(by_jaxpr, cases(100, False))


def test_the_precision_outside_is_untouched() -> None:
    before = flint.ctx.prec
    with balls(1000) as num:
        assert flint.ctx.prec == 1000
        with pytest.raises(Undecided):
            num.whole(num.pi)
    assert flint.ctx.prec == before
    with pytest.raises(BadArgument, match="bits"), at_precision(3):
        pass


def test_numbers_are_exact_and_strings_are_decimals() -> None:
    with balls(BITS) as num:
        assert num.number(0.1).arb.is_exact()
        assert num.number(np.float64(0.1)) == num.number(0.1)
        assert num.number(np.int64(3)) == 3
        decimal = num.number("0.02").arb
        with at_precision(2 * BITS):
            assert decimal.contains(arb(1) / 50)
        assert not decimal.contains(arb(0.02))
        assert num.number(2**300 + 1).arb.is_exact()
        for bad in (float("nan"), "nan"):
            with pytest.raises(BadArgument, match="is not a number"):
                num.number(bad)


@pytest.mark.parametrize(
    ("value", "short"),
    [
        *((short, True) for short in (0.0, -3.0, 0.375, 1e6, 2.0**-1074, 1048575.0)),
        *((long, False) for long in (0.1, 1e-3, math.pi, 1048577.0, 1e-300)),
    ],
)
def test_short_constants_are_those_of_twenty_bits(value: float, short: bool) -> None:
    radius = enclose(lambda: value, bits=100).rad()
    assert (radius == 0) is short


def test_a_rounded_constant_is_widened_to_hold_what_it_stands_for() -> None:
    for ulps, held in ((0, False), (1, True)):
        ball = enclose(lambda x: 0.1 * x, np.float64(3.0), bits=BITS, ulps=ulps)
        with at_precision(2 * BITS):
            assert ball.contains(arb(3) / 10) is held


def test_overlapping_balls_are_never_ordered_silently() -> None:
    wide, other = Ball(arb(1, 0.5)), Ball(arb(1.25, 0.5))
    for decide in (
        lambda: wide < other,
        lambda: wide <= other,
        lambda: wide > other,
        lambda: wide == other,
        lambda: wide != other,
        lambda: max(wide, other),
        lambda: min([wide, other]),
        lambda: bool(Ball(arb(0, 1))),
        lambda: round(wide),
    ):
        with pytest.raises(Undecided):
            decide()
    assert wide < 2
    assert Ball(arb(2)) > wide
    assert Ball(arb(1)) >= 1
    assert Ball(arb(3)) == 3
    assert max(wide, Ball(arb(4))) == 4
    assert round(Ball(arb(2.6))) == 3


def test_a_ball_does_not_turn_into_a_float_and_refuses_rounded_floats() -> None:
    ball = Ball(arb(1))
    with pytest.raises(TypeError):
        math.sqrt(ball)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"0\.1 is rounded"):
        ball * 0.1
    with pytest.raises(TypeError):
        ball + "1"
    assert 0.5 * ball == ball / 2
    assert np.float64(0.5) * ball == ball * np.float64(0.5)
    assert 3 - ball == 2
    assert 1 / Ball(arb(4)) == 0.25


def test_extremes_and_cuts_enclose() -> None:
    with balls(BITS) as num:
        wide, other = Ball(arb(1, 0.5)), Ball(arb(1.25, 0.5))
        for found, low, high in (
            (num.largest([wide, other]), 0.75, 1.75),
            (num.smallest([wide, other]), 0.5, 1.5),
            (num.positive_part(Ball(arb(0, 1))), 0, 1),
            (num.absolute(Ball(arb(-0.5, 1))), 0, 1.5),
            (num.root(Ball(arb(0, 4))), 0, 2),
            (num.between(Ball(arb(1)), Ball(arb(3))), 1, 3),
        ):
            assert found.arb.contains(arb(low))
            assert found.arb.contains(arb(high))
            assert float(found.arb.rad()) <= (high - low) / 2 + 1e-8
        assert num.sqrt(Ball(arb(0, 4))).arb.is_nan()
        assert num.whole(num.number(7)) == 7
    assert FLOATS.positive_part(-1.0) == 0
    assert FLOATS.root(-1e-30) == 0
    with pytest.raises(ValueError, match="not a whole number"):
        FLOATS.whole(2.5)


def test_squares_and_norms_stay_nonnegative_near_zero() -> None:
    with balls(BITS) as num:
        tiny = num.number(1) / 3 * 3 - 1
        assert tiny.arb.contains(arb(0))
        assert not tiny.arb.is_exact()
        for square in (tiny * tiny, tiny**2, tiny**4):
            assert square.arb >= 0
        for found in (norm(num, [tiny, tiny]), num.root(dot([tiny], [tiny]))):
            assert found.arb.is_finite()
            assert float(found.arb.upper()) < 1e-50


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 4, 7, -2])
def test_powers_hold_every_power_of_the_ball(exponent: int) -> None:
    for middle, radius in ((0.0, 1.0), (0.5, 1.0), (-2.0, 0.25)):
        ball = power(arb(middle, radius), exponent)
        for point in np.linspace(middle - radius, middle + radius, 7):
            if exponent >= 0 or abs(middle) > radius:
                assert ball.contains(power(arb(point), exponent))
        if exponent > 0 and exponent % 2 == 0:
            assert ball >= 0
    assert not power(arb(0, 1), -2).is_finite()


def test_division_by_a_ball_around_zero_is_not_finite_and_no_exception() -> None:
    with balls(BITS) as num:
        for zero in (num.number(0), Ball(arb(0, 1))):
            assert not (1 / zero).arb.is_finite()
            with pytest.raises(Undecided):
                assert 1 / zero < 5
            with pytest.raises(Undecided):
                num.roughly(1 / zero)
    assert not enclose(lambda x: x / (x - x), np.float64(2.0)).is_finite()


def test_rounding_and_whole_numbers() -> None:
    for value in (-2.5, -0.5, 0.5, 1.5, 2.5, 2.4, 1e17):
        assert nearest(arb(value)) == round(Fraction(value))
    both = nearest(arb(2.5, 0.1))
    assert both.contains(arb(2))
    assert both.contains(arb(3))
    with pytest.raises(Undecided):
        whole(arb(2.5))
    with pytest.raises(Undecided):
        whole(arb(2, 1e-9))
    assert roughly(arb(2, 1)) == 2


def test_three_valued_relations_treat_nan_as_unknown() -> None:
    nan, one = arb.nan(), arb(1)
    assert less(nan, one) == less(one, nan) == equal(nan, nan) == 1
    assert (less(arb(0), one), less(one, arb(0)), less(one, one)) == (2, 0, 0)
    assert (equal(one, one), equal(one, arb(2)), equal(arb(1, 1), one)) == (2, 0, 1)


def test_softmax_and_activations_run_on_balls_and_hold_the_reference() -> None:
    exact = precise(130)
    z = [0.3, -1.7, 40.0, 39.9]
    with balls(BITS) as num:
        found = softmax(num, [num.number(x) for x in z])
        reference = softmax(exact, [exact.number(x) for x in z])
        pairs = list(zip(found, reference, strict=True))
        for name in ("tanh", "erf", "sin", "arctan", "erf-normal", "50*tanh(0.02*x)"):
            here, there = activation(num, name), activation(exact, name)
            pairs += list(zip(here.bounds, there.bounds, strict=True))
            for part in ("value", "slope", "curvature"):
                x = (num.number(0.7), exact.number(0.7))
                pairs.append((getattr(here, part)(x[0]), getattr(there, part)(x[1])))
    with at_precision(600):
        for ball, value in pairs:
            assert ball.arb.overlaps(as_ball(value))
            assert float(ball.arb.rad()) < 1e-55 * (1 + abs(float(value)))


def test_dual_numbers_give_the_derivative_of_random_expressions() -> None:
    num = precise(130)
    along, step = with_numbers(duals(num)), num.number("1e-50")
    checked = 0
    for expression, inputs, _ in cases(300, False):
        if any(word in str(expression) for word in ("abs", "max", "min")):
            continue
        at = [num.number(x) for x in inputs]
        slope = expression.value(along, [Dual(at[0], num.number(1)), *at[1:]])
        if not isinstance(slope, Dual):
            continue
        low, high = (
            expression.value(with_numbers(num), [at[0] + sign * step, *at[1:]]) for sign in (-1, 1)
        )
        quotient = (high - low) / (2 * step)
        assert abs(slope.slope - quotient) < 1e-40 * (1 + abs(quotient)) ** 3, str(expression)
        checked += 1
    assert checked > 20
    with pytest.raises(TypeError, match="no derivative"):
        duals(num).largest([1, 2])


def test_the_precision_rises_until_the_sides_separate() -> None:
    def sides(bits: int) -> tuple[Ball, Ball]:
        with balls(bits) as num:
            near = num.number(1) / 3 + num.number("1e-60")
            return near, num.number(1) / 3

    found = separate(sides)
    assert (found.order, found.bits) == (Order.ABOVE, 256)
    assert separate(lambda bits: sides(bits)[::-1]).order is Order.BELOW
    capped = separate(sides, highest=128)
    assert (capped.order, capped.bits, capped.reason) == (
        Order.UNDECIDED,
        128,
        "the enclosures overlap",
    )


def test_equality_needs_exact_balls_and_failures_have_a_reason() -> None:
    assert separate(lambda bits: (arb(2), arb(2))).order is Order.EQUAL
    third = separate(lambda bits: (arb(1) / 3 * 3, arb(1)), highest=256)
    assert (third.order, third.bits) == (Order.UNDECIDED, 256)
    infinite = separate(lambda bits: (arb(1) / arb(0, 1), arb(1)), highest=64)
    assert infinite.reason == "left not finite"

    def undecided(bits: int) -> tuple[arb, arb]:
        raise Undecided("while: the condition is not known")

    assert separate(undecided, highest=64).reason == "while: the condition is not known"
    late = separate(lambda bits: undecided(bits) if bits < 200 else (arb(1), arb(0)))
    assert (late.order, late.bits) == (Order.ABOVE, 256)
