"""Lemmas inside pytest: what holds passes, what fails shows its shrunk counterexample."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import pytest

from headcount.testing import assert_survives, assert_verified
from headcount.theory import Box, Constants, Reals, lemma


@lemma(x=Box(low=-1, high=1), c=Constants(true=1.0, false=0.5))
def cube(x: Any, c: Any) -> Any:
    """|x|^3 <= c |x|."""
    return jnp.abs(x) ** 3, c * jnp.abs(x)


def test_what_holds_passes() -> None:
    assert_survives(cube, "true")
    assert_verified(lemma(x=Box())(lambda x: (x**2, 1.5)))


def test_all_variants_are_asked_and_the_one_that_fails_is_shown() -> None:
    with pytest.raises(AssertionError) as caught:
        assert_survives(cube)
    text = str(caught.value)
    assert "the violation is proved" in text
    assert "Falsifying example: cube(\n    x=" in text
    assert "c = 0.5" in text
    assert "print(lhs, rhs, lhs > rhs)" in text  # and Python to paste


def test_what_is_not_proved_fails() -> None:
    with pytest.raises(AssertionError, match=r"Falsifying example: cube\(\n    x="):
        assert_verified(cube, "false")
    meeting = lemma(x=Box(low=-1, high=1))(lambda x: (jnp.abs(x), jnp.sin(jnp.abs(x)) * 1.2))
    with pytest.raises(AssertionError, match="open"):
        assert_verified(meeting, boxes=3)
    assert_survives(lemma(x=Reals())(lambda x: (jnp.abs(jnp.sin(x)), jnp.abs(x))))
