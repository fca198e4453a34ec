"""Float64 intervals: the interval of a box contains the balls of its points, for every rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flint import arb
from jax import lax
from programs_elementwise import GENERATORS as ELEMENTWISE
from programs_structure import GENERATORS as STRUCTURE
from test_every_rule import seeded

from headcount.core import float64
from headcount.theory import _intervals as iv
from headcount.theory._interval_jaxpr import IntervalProgram
from headcount.theory._intervals import Interval
from headcount.theory._slopes import by_known_rules
from headcount.theory.balls import BallProgram, Undecided, Unsupported, at_precision, hull

GENERATORS = {**ELEMENTWISE, **STRUCTURE}
BITS = 120
HAVING_RULES = {*iv.FUNCTIONS, "add", "sub", "mul", "div", "max", "min", "lt", "ge", "reshape"}
HAVING_RULES |= {"transpose", "reduce_sum", "reduce_max", "dot_general", "integer_pow", "pow"}


def flat(program: Any) -> tuple[Any, Any]:
    """A program as a function of one array of all its numbers, and its centre."""
    shapes = [np.shape(x) for x in program.arguments]
    sizes = np.cumsum([0, *(int(np.prod(shape)) for shape in shapes)])

    def function(x: Any) -> Any:
        parts = [
            x[a:b].reshape(shape) for a, b, shape in zip(sizes[:-1], sizes[1:], shapes, strict=True)
        ]
        found = jax.tree.leaves(program.function(*parts))
        return [jax.lax.convert_element_type(leaf, float) for leaf in found]

    return function, np.concatenate([np.ravel(x) for x in program.arguments])


def misses(function: Any, centre: Any, radius: float, rng: np.random.Generator) -> list[Any]:
    """Entries of a ball at a point of a box that lie outside the box's interval."""
    program = IntervalProgram(function, len(centre))
    low, high = np.repeat((centre - radius)[None], 3, 0), np.repeat((centre + radius)[None], 3, 0)
    boxes, _ = program(low, high)
    found = []
    for _ in range(3):
        point = np.clip(rng.uniform(low[0], high[0]), low[0], high[0])
        at_point, _ = program(point[None], point[None])
        balls = BallProgram(function, point)(BITS)
        for interval, narrow, ball in zip(boxes, at_point, balls, strict=True):
            for place, exact in np.ndenumerate(np.asarray(ball, dtype=object)):
                for seen in (interval, narrow):
                    ends = [
                        np.broadcast_to(e, (len(e), *np.shape(ball))) for e in (seen.lo, seen.hi)
                    ]
                    a, b = (float(end[(0, *place)]) for end in ends)
                    if exact.is_finite() and (exact < a or exact > b):  # NaN says nothing
                        found.append((place, a, b, exact))
    return found


@pytest.mark.parametrize("name", GENERATORS)
def test_an_interval_holds_the_balls_of_its_points(name: str) -> None:
    rng, looked = seeded(name), 0
    for program in list(GENERATORS[name](rng))[:12]:
        if any(np.asarray(x).dtype != np.float64 for x in program.arguments):
            continue
        if not any(x.size for x in program.arguments):
            continue
        function, centre = flat(program)
        try:
            for radius in (0.0, program.radius or 1e-3, 0.3):
                assert misses(function, centre, radius, rng) == []
                looked += 1
        except (Unsupported, Undecided):
            continue
    assert looked or name not in HAVING_RULES


@pytest.mark.parametrize("name", [n for n in iv.FUNCTIONS if n not in ("neg", "abs", "square")])
def test_functions_hold_for_arguments_of_all_sizes(name: str) -> None:
    rng = seeded(name)
    values = rng.choice([-1, 1], 300) * 10.0 ** rng.uniform(-12, 2.5, 300)
    if name in ("log", "sqrt", "log1p"):
        values = np.abs(values)
    function = {"cos": jnp.cos, "sin": jnp.sin, "erf": jax.scipy.special.erf,
                "logistic": jax.nn.sigmoid, "log": jnp.log, "sqrt": jnp.sqrt}.get(name)  # fmt: skip
    function = function or getattr(jnp, {"atan": "arctan", "asinh": "arcsinh"}.get(name, name))
    found, _ = IntervalProgram(lambda x: function(x), 1)(values[:, None], values[:, None])
    for k, value in enumerate(values):
        ball = BallProgram(lambda x: function(x), np.array([value]))(BITS)[0]
        if ball.is_finite():
            assert not ball < found.lo[k, 0], value
            assert not ball > found.hi[k, 0], value


def test_sums_are_exact_where_they_can_be_and_directed_elsewhere() -> None:
    one = Interval(np.array([1.0]), np.array([1.0]))
    tiny = Interval(np.array([1e-30]), np.array([1e-30]))
    total = iv.add(one, tiny)
    assert total.lo == 1.0
    assert total.hi == np.nextafter(1.0, 2.0)
    assert iv.add(one, one).lo == iv.add(one, one).hi == 2.0
    third = iv.div(one, Interval(np.array([3.0]), np.array([3.0])))
    assert third.lo < third.hi


def test_of_a_select_that_is_open_both_cases_count_and_its_slope_is_not_trusted() -> None:
    with float64():
        program = IntervalProgram(lambda x: jnp.where(x[0] > 0, 2.0, 5.0 + x[0]), 1)
    found, jumps = program(np.array([[-1.0], [1.0]]), np.array([[1.0], [2.0]]))
    assert found.lo.tolist() == [2.0, 2.0]
    assert found.hi.tolist() == [6.0, 2.0]
    assert jumps.tolist() == [True, False]


def test_a_product_that_underflows_is_not_taken_for_zero() -> None:
    small, large = (Interval(np.array([2.0**k]), np.array([2.0**k])) for k in (-600, 600))
    for found in (iv.mul(small, small), iv.square(small), iv.div(small, large)):
        assert found.hi > 0
    nothing = Interval(np.zeros(1), np.zeros(1), True)
    assert iv.mul(small, nothing).hi == 0


Rule = Callable[[Any, Any], Any]


def with_rule(function: Callable[[Any], Any], rule: Rule) -> Any:
    """The function with a rule of its own for forward mode."""
    own = jax.custom_jvp(function)
    own.defjvp(rule)
    return own


softplus_of_the_reader = with_rule(
    lambda x: jnp.logaddexp(x, 0.0), lambda x, slope: (jnp.logaddexp(x[0], 0.0), 9 * slope[0])
)


def test_a_rule_of_jax_on_another_function_is_made_up() -> None:
    """Identity is of rule and function together: relu's rule is no slope of |x|."""
    own = jax.custom_jvp(jnp.abs)
    own.defjvp(jax.nn.relu.jvp)
    box = [np.array(hull(arb(-2), arb(-1)), dtype=object)]
    for function, expected in ((own, -1.0), (jax.nn.relu, 0.0)):
        slope = jax.jacfwd(by_known_rules(function, 1.0))
        assert float(BallProgram(slope, 1.0)(64, box)) == expected


def slope_on(function: Callable[..., Any], low: float, high: float) -> tuple[float, float]:
    """The ends of the slope's enclosure on an interval."""
    with float64():
        slope = jax.jacfwd(by_known_rules(function, 1.0))
        found = BallProgram(slope, 1.0)(96, [np.array(hull(arb(low), arb(high)), dtype=object)])
    return float(found.lower()), float(found.upper())


def test_rules_that_are_known_say_more_than_the_steps() -> None:
    """softplus = max(x, 0) + log1p(exp(-|x|)): its steps have a kink at zero, its rule has none."""
    for function in (jax.nn.softplus, softplus_of_the_reader):
        low, high = slope_on(function, -0.125, 0.125)
        assert 0.35 < low < 0.5 < high < 0.65
    by_steps = lambda x: jnp.maximum(x, 0.0) + jnp.log1p(jnp.exp(-jnp.abs(x)))  # noqa: E731
    assert slope_on(by_steps, -0.125, 0.125)[1] > 0.9
    assert slope_on(jax.nn.relu, 0.5, 1.0) == (1.0, 1.0)
    assert slope_on(lambda x: jnp.sum(jnp.logaddexp(x * jnp.ones(3), 0.0)), 2.0, 2.0)[
        0
    ] == pytest.approx(3 / (1 + np.exp(-2.0)))


@pytest.mark.parametrize(("function", "sign"), [(lax.erf, 1), (lax.erfc, -1)])
def test_slopes_of_erf_are_those_of_exp(function: Callable[[Any], Any], sign: int) -> None:
    """Newer versions of JAX compute exp(-x^2) from the operand's bits, and zero beyond 28."""
    formulas = (lambda x: 1, lambda x: -2 * x, lambda x: 4 * x * x - 2)
    slope: Callable[..., Any] = lambda x: jnp.sum(jax.vmap(function)(x * jnp.ones(2)))  # noqa: E731
    for formula in formulas:
        slope = jax.jacfwd(by_known_rules(slope, 1.0))
        for x in (-31.25, -1.5, 0.0, 0.7, 27.5):
            ball = BallProgram(slope, x)(200)
            with at_precision(400):
                point = arb(x)
                exact = sign * 4 / arb.pi().sqrt() * formula(point) * (-point * point).exp()
                assert abs(ball - exact) <= 1e-15 * abs(exact)
                assert float(jax.jit(slope)(x)) == pytest.approx(float(exact), 1e-11, 1e-300)


def test_a_slope_of_erf_on_an_interval_is_as_narrow_as_exp() -> None:
    """2 / sqrt(pi) exp(-x^2) between 1/2 and 3/4."""
    low, high = slope_on(lax.erf, 0.5, 0.75)
    assert (low, high) == pytest.approx((0.6429, 0.8788), abs=0.05)
