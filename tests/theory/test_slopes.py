"""Slopes that proofs may use: those of a function's own steps, and of rules that are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flint import arb
from jax import lax

from headcount.core import float64
from headcount.theory import Box, lemma, verify
from headcount.theory._slopes import by_known_rules
from headcount.theory.balls import BallProgram, at_precision, hull

Rule = Callable[[Any, Any], Any]


def with_rule(function: Callable[[Any], Any], rule: Rule) -> Any:
    """The function with a rule of its own for forward mode."""
    own = jax.custom_jvp(function)
    own.defjvp(rule)
    return own


def false_rule(primals: Any, tangents: Any) -> Any:
    """The slope 1.2 of a function that is exp."""
    return jnp.exp(primals[0]), 1.2 * tangents[0]


def for_reverse(function: Callable[[Any], Any]) -> Any:
    """The function with a made-up rule for reverse mode, which has none for forward mode."""
    own = jax.custom_vjp(function)
    own.defvjp(lambda x: (function(x), x), lambda kept, slope: (-100.0 * slope,))
    return own


exp_of_the_reader = with_rule(jnp.exp, false_rule)
exp_by_parts = jax.custom_jvp(jnp.exp)
exp_by_parts.defjvps(lambda slope, found, x: 1.2 * slope)  # JAX makes the rule of it, in its file
softplus_of_the_reader = with_rule(
    lambda x: jnp.logaddexp(x, 0.0), lambda x, slope: (jnp.logaddexp(x[0], 0.0), 9 * slope[0])
)
MADE_UP: dict[str, Any] = {
    "by a rule": exp_of_the_reader,
    "by parts": exp_by_parts,
    "compiled": jax.jit(exp_of_the_reader),
    "kept for later": jax.checkpoint(exp_of_the_reader),
    "for reverse mode": for_reverse(jnp.exp),
    "in a rule": with_rule(jnp.exp, lambda x, slope: (exp_by_parts(x[0]), 1.2 * slope[0])),
    "in a branch": lambda x: lax.cond(x > -1, exp_of_the_reader, jnp.sin, x),
    "in a loop": lambda x: lax.fori_loop(0, 1, lambda k, y: exp_of_the_reader(y), x),
    "mapped": lambda x: jax.vmap(exp_of_the_reader)(jnp.stack([x, x]))[0],
}


@pytest.mark.parametrize("name", MADE_UP)
def test_a_made_up_slope_proves_nothing(name: str) -> None:
    """exp(x) <= 1 + 1.2 x fails at 1; with the slope 1.2 for exp it would be proved."""
    own = lemma(x=Box(low=0, high=1))(lambda x: (MADE_UP[name](x), 1 + 1.2 * x))
    found = verify(own)
    assert found.answer == "false"
    x = found.instance["x"]
    assert np.exp(x) > 1 + 1.2 * x


@pytest.mark.parametrize("name", MADE_UP)
def test_the_steps_behind_a_made_up_slope_prove_what_is_true(name: str) -> None:
    """1 + x <= exp(x), which meet at zero, by the slope of exp itself."""
    own = lemma(x=Box(low=0, high=1))(lambda x: (1 + x, MADE_UP[name](x)))
    found = verify(own)
    assert (found.answer, found.touching) == ("proved", False)


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


def test_loops_have_slopes_by_forward_mode_alone() -> None:
    """A rule over a loop of open length gives a slope to the search; the proof uses the loop's."""

    def doubled(x: Any) -> Any:
        return lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, 2 * s[1]), (0, x))[1]

    own = with_rule(doubled, lambda x, slope: (doubled(x[0]), 8 * slope[0]))
    assert verify(lemma(x=Box(low=0, high=1))(lambda x: (own(x), 8 * x))).answer == "proved"


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
