"""Slopes that proofs may use: those of a function's own steps, and of rules that are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from headcount.theory import Box, lemma, verify

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


def test_loops_have_slopes_by_forward_mode_alone() -> None:
    """A rule over a loop of open length gives a slope to the search; the proof uses the loop's."""

    def doubled(x: Any) -> Any:
        return lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, 2 * s[1]), (0, x))[1]

    own = with_rule(doubled, lambda x, slope: (doubled(x[0]), 8 * slope[0]))
    assert verify(lemma(x=Box(low=0, high=1))(lambda x: (own(x), 8 * x))).answer == "proved"
