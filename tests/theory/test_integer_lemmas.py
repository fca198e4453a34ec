"""False statements about integers and other types, which were once proved, and what is unknown."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from headcount.theory import Box, certify, falsify, lemma, recheck, verify

Function = Any


def at_most_one(function: Function) -> Any:
    """The lemma that a function of x in [0, 1] is at most 1."""

    @lemma(x=Box(low=0, high=1))
    def small(x: Any) -> Any:
        return jnp.asarray(function(x), float), 1.0

    return small


def whole(x: Any, dtype: str) -> Any:
    return lax.convert_element_type(x, np.dtype(dtype))


FALSE: dict[str, Function] = {
    "a narrowing cast": lambda x: -whole(whole(127.0 + 2 * x, "int32"), "int8"),
    "a negative number without a sign": lambda x: whole(whole(-2 * x, "int32"), "uint8"),
    "a sum in eight bits": lambda x: -lax.cumsum(whole(100.0 + x * np.ones(2), "int8"))[1],
    "a quotient by zero": lambda x: 3 + lax.div(whole(x, "int32"), np.int32(0)),
    "a remainder by zero": lambda x: lax.rem(np.int32(5), whole(x / 2, "int32")),
    "a wrapped product": lambda x: -whole(127.0 + x, "int16") * whole(300.0 + x, "int16"),
}


@pytest.mark.parametrize("name", FALSE)
def test_integers_prove_nothing_false(name: str) -> None:
    """Each is above 1 somewhere; nowhere did the interpreter see it."""
    assert max(float(FALSE[name](jnp.asarray(x))) for x in (0.0, 0.6, 1.0)) > 1
    assert verify(at_most_one(FALSE[name]), boxes=100).answer in ("false", "open")


REFUSED: dict[str, tuple[Function, str]] = {
    "complex": (lambda x: 2 * jnp.abs(x.astype(complex)), "convert_element_type: to complex128"),
    "float32": (lambda x: 2 * x.astype(jnp.float32).astype(float), "numbers of type float32"),
    "unknown": (lambda x: 2 * lax.cumlogsumexp(x[None])[0], "cumlogsumexp has no rule"),
    "a scatter of a function": (
        lambda x: -jnp.ones(2).at[0].apply(jnp.negative)[0] * 2 * x + 4 * x,
        "scatter of a function",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_enclosure_is_told_by_name_everywhere(name: str) -> None:
    function, told = REFUSED[name]
    twice = at_most_one(function)
    assert told in verify(twice).message
    instance = twice.instance_class(x=np.float64(1.0))
    assert told in recheck(certify(twice, instance, "stated"), twice).message


def test_an_unknown_primitive_does_not_stop_a_search() -> None:
    found = falsify(at_most_one(REFUSED["unknown"][0]), budget="small")
    assert found.violated
    assert "cumlogsumexp has no rule" in found.message
