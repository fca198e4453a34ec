"""Sizes are part of a lemma's domain: nobody searches, shrinks, judges or rechecks outside them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from headcount.core import BadArgument
from headcount.theory import (
    Box,
    Budget,
    Certificate,
    Parameters,
    Size,
    falsify,
    lemma,
    recheck,
)

LITTLE = Budget(random=48, restarts=4, steps=20)
T, few, m = Size("T", 3, 8), Size("T", 3, 4), Size("m", 2, 6)


@lemma(x=Box(T, low=0, high=1))
def few_entries(x):
    """The sum of at most 8 entries in [0, 1] is at most 8."""
    return jnp.sum(x), 8.0


@lemma(x=Box(few, low=0, high=1), y=Box(few, low=0, high=1))
def twice_too_large(x, y):
    """sum x <= (sum x)/2: false at every size."""
    return jnp.sum(x) + 0 * jnp.sum(y), jnp.sum(x) / 2


def forged(size: int) -> Certificate:
    """A certificate whose numbers are right, of an instance that the lemma does not speak of."""
    claimed = {"lhs": float(size), "rhs": 8.0, "ratio": size / 8}
    return Certificate(few_entries.id, "stated", "instance", claimed, {"x": np.ones(size)})


@pytest.mark.parametrize("size", [1, 2, 9, 50])
def test_a_certificate_outside_the_declared_sizes_is_refused(size: int) -> None:
    with pytest.raises(BadArgument, match=f"T = {size} is not from 3 to 8"):
        recheck(forged(size), few_entries)


def test_one_letter_is_one_size() -> None:
    with pytest.raises(BadArgument, match="where T is 3"):
        twice_too_large.instance(x=np.ones(3), y=np.ones(4))


def test_a_search_over_widths_ends_with_a_proof() -> None:
    own = Parameters("arda2026", 1, 1, Size("m", 2, 3), radius=0.5)
    odd_between = lemma(start=own)(lambda start: (jnp.sum(start.params.U**2), 0.0))
    found = falsify(odd_between, budget=LITTLE)
    assert [row.sizes for row in found.per_size] == [{"m": 2}]
    assert found.proved


def test_the_start_is_the_same_in_either_precision_and_inside_a_trace() -> None:
    drawn = {}
    for wide in (False, True):
        space = Parameters("arda2026", 2, 2, 4)
        with jax.enable_x64(wide):
            inside = jax.jit(lambda space=space: space.start({})[1].U)()
        drawn[wide] = np.asarray(inside), space.start({})[1].U
    np.testing.assert_array_equal(drawn[True][1], drawn[False][1])
    np.testing.assert_array_equal(drawn[True][0], drawn[True][1])
