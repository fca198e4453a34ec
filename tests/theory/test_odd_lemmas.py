"""Lemmas that nobody should write, and what is said of them: one line, and never a falsehood."""

from __future__ import annotations

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from headcount.core import BadArgument
from headcount.theory import Box, Reals, equality, falsify, given, judge, lemma, verify


def test_sides_and_hypotheses_may_be_integers() -> None:
    @lemma(given("whole", lambda x: jnp.round(x).astype(int), 1), x=Box(low=-1, high=1))
    def rounded(x: Any) -> Any:
        return 1 + jnp.round(x).astype(int), 1

    found = falsify(rounded, budget="small")
    assert (found.proved, found.worst_ratio) == (True, 2.0)
    assert verify(rounded).answer == "false"


def test_a_hypothesis_that_is_true_or_false_is_refused() -> None:
    """In ball arithmetic True is 2: compared with 1 it would fail."""

    @lemma(given("any sign", lambda x: x > 0, 1.0), x=Box(low=-1, high=1))
    def shifted(x: Any) -> Any:
        return x + 1, 1.0

    for decide in (verify, functools.partial(falsify, budget="small")):
        with pytest.raises(BadArgument, match="hypothesis 'any sign' is of type bool"):
            decide(shifted)


@pytest.mark.parametrize("threshold", ["1", None, math.nan, [1.0], 1j])
def test_a_threshold_that_is_no_number_is_refused(threshold: Any) -> None:
    with pytest.raises(BadArgument, match="no number for a threshold"):

        @lemma(given("odd", lambda x: x, threshold), x=Box(low=0, high=1))
        def bounded(x: Any) -> Any:
            return x, 1.0


def test_a_lemma_without_admissible_instances_has_not_survived() -> None:
    @lemma(given("never", lambda x: x + 5, 1.0), x=Box(low=0, high=3))
    def about_nothing(x: Any) -> Any:
        return 2.0 + x, 1.0

    found = falsify(about_nothing, budget="small")
    assert found.message.startswith("nothing is tested: none of")
    assert math.isnan(found.to_json()["worst_ratio"])
    assert "per_size" not in found.to_json()


def test_a_lemma_without_a_slope_is_refused_in_one_line() -> None:
    @lemma(x=Box(low=0, high=1))
    def doubled(x: Any) -> Any:
        return jax.lax.while_loop(lambda s: s < 1, lambda s: 2 * s, x + 0.01), 1.5

    for decide in (verify, functools.partial(falsify, budget="small")):
        with pytest.raises(BadArgument, match="Reverse-mode differentiation"):
            decide(doubled)


def test_an_equality_has_no_constant_to_tighten() -> None:
    @equality(x=Box(low=0, high=1))
    def circle(x: Any) -> Any:
        return jnp.sin(x) ** 2 + jnp.cos(x) ** 2, jnp.ones(())

    assert "the two sides agree to" in falsify(circle, budget="small").message


def test_a_counterexample_by_a_hair_is_seen_in_its_ratio() -> None:
    @lemma(x=Box(low=0, high=1))
    def tangent(x: Any) -> Any:
        return 1 + x, (1 - 1e-8) * jnp.exp(x)

    found = falsify(tangent, budget="small")
    assert found.proved
    assert "ratio 1 + " in found.message
    assert found.shown is not None
    assert "ratio 1 + " in found.shown.text


def test_a_number_that_is_no_unsigned_integer_is_told() -> None:
    @lemma(x=Reals())
    def wrapped(x: Any) -> Any:
        return jnp.abs(x) * jnp.uint32(-1), 1.0

    assert judge(wrapped, wrapped.instance(x=1.0)).message == (
        "a number does not fit: Python integer -1 out of bounds for uint32"
    )
