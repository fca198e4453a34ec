"""Float64 intervals: the interval of a box contains the balls of its points, for every rule."""

from __future__ import annotations

import inspect
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from programs_elementwise import GENERATORS as ELEMENTWISE
from programs_indexing import GENERATORS as INDEXING
from programs_structure import GENERATORS as STRUCTURE
from test_every_rule import seeded

from headcount.core import float64
from headcount.theory import _intervals as iv
from headcount.theory._interval_jaxpr import _BINARY, _MOVES, IntervalProgram
from headcount.theory._intervals import Interval
from headcount.theory.balls import RULES, BallProgram, Undecided, Unsupported

GENERATORS = {**ELEMENTWISE, **STRUCTURE, **INDEXING}
BITS = 120
OWN = {name[1:] for name, _ in inspect.getmembers(IntervalProgram, inspect.isfunction)}
HAVING_RULES = {*iv.FUNCTIONS, *_BINARY, *_MOVES, *(OWN & set(RULES))}
TRUTHS = {"and", "or", "not", "reduce_and", "reduce_or"}
"""Looked at below: the programs of the generator have truths that are known."""


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
    assert looked or name not in HAVING_RULES or name in TRUTHS


def test_every_rule_is_looked_at() -> None:
    assert len(HAVING_RULES) > 50
    assert set(GENERATORS) >= HAVING_RULES - {"copy_p", "one_minus_square"}  # of newer JAX


@pytest.mark.parametrize("name", sorted(TRUTHS))
def test_truths_that_are_open_stay_open(name: str) -> None:
    """For all nine pairs of no, open and yes: what each point of the box says lies between."""
    work = {
        "and": lambda t: t[0] & t[1],
        "or": lambda t: t[0] | t[1],
        "not": lambda t: ~t[0],
        "reduce_and": jnp.all,
        "reduce_or": jnp.any,
    }[name]
    with float64():
        program = IntervalProgram(lambda x: work(x > 0).astype(float), 2)
    ends = {0: (-2.0, -1.0), 1: (-1.0, 1.0), 2: (1.0, 2.0)}
    for pair in itertools.product(ends, repeat=2):
        low, high = (np.array([[ends[k][end] for k in pair]]) for end in (0, 1))
        seen, jumps = program(low, high)
        corners = itertools.product(*({a, b} for a, b in zip(low[0], high[0], strict=True)))
        values = {float(work(np.array(x) > 0)) for x in corners}
        assert (float(seen.lo[0]), float(seen.hi[0])) == (min(values), max(values)), pair
        assert bool(jumps[0]) == (len(values) == 2)


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


@pytest.mark.filterwarnings("ignore:invalid value")
def test_what_is_not_defined_on_all_of_a_box_has_no_bound() -> None:
    """sqrt, log and the like below their domain: neither end is known."""
    across = Interval(np.array([-1.0]), np.array([1.0]))
    for name in ("sqrt", "log"):
        found = iv.FUNCTIONS[name](across)
        assert np.isnan([found.lo, found.hi]).all()
    found = iv.FUNCTIONS["log1p"](Interval(np.array([-2.0]), np.array([1.0])))
    assert np.isnan([found.lo, found.hi]).all()
    assert iv.sqrt(Interval(across.lo, across.hi, True)).lo == 0  # what cannot be negative


@pytest.mark.filterwarnings("ignore:overflow")
def test_a_product_that_overflows_is_not_taken_for_exact() -> None:
    two, large = (Interval(np.array([x]), np.array([x])) for x in (2.0, 1.5e308))
    for found in (iv.mul(two, large), iv.div(large, Interval(1 / two.lo, 1 / two.lo))):
        assert found.lo < np.inf
        assert found.hi == np.inf
