"""Charts of spaces, and verification in more variables."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from headcount.theory import Box, lemma, verify


@lemma(a=Box(3, low=0.2, high=1), b=Box(2))
def five_variables(a: Any, b: Any) -> Any:
    """A geometric mean times a tanh beside a sum."""
    return jnp.prod(a) ** 2 * jnp.tanh(b[0] * b[1]) ** 2, 0.1 + jnp.sum(a) / 3


@lemma(a=Box(6))
def six_variables(a: Any) -> Any:
    """False in a corner alone."""
    return jnp.sum(a**3), 5.9


def test_five_variables_are_proved_and_six_refuted() -> None:
    proved = verify(five_variables)
    assert (proved.answer, proved.touching) == ("proved", False)
    false = verify(six_variables)
    assert false.answer == "false"
    assert np.sum(np.array(false.instance["a"]) ** 3) > 5.9


def test_the_same_lemma_a_little_stronger_is_not_proved() -> None:
    """A bound that is missed by one part in a hundred, at one point of five dimensions."""
    top = 1.0 * math.tanh(1) ** 2
    own = lemma(a=Box(3, low=0.2, high=1), b=Box(2))(
        lambda a, b: (jnp.prod(a) ** 2 * jnp.tanh(b[0] * b[1]) ** 2, 0.99 * top)
    )
    assert verify(own).answer == "false"
