"""Streams, blocks of parameters, valid JSON, numbers on their safe side."""

from __future__ import annotations

import json
import math

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount.core import BadArgument, stream
from headcount.core import _tree as tree
from headcount.core._attention import HeadFeatures
from headcount.core._files import json_text
from headcount.core._keys import substream
from headcount.core._rounding import round_down, round_up
from headcount.theory._frequency import clopper_pearson


def test_a_stream_of_two_names_is_a_stream_of_a_stream():
    whole, parts = stream(3, "a", "b"), substream(stream(3, "a"), "b")
    assert np.array_equal(jax.random.key_data(whole), jax.random.key_data(parts))


def test_blocks_of_every_container():
    point = HeadFeatures(1, 2, 3)
    assert tree.blocks(point) == {"phi_c": 1, "phi_u": 2, "w_left": 3}
    assert tree.with_blocks(point, {"phi_u": 5}).phi_u == 5
    assert tree.blocks({"a": 1}) == {"a": 1}
    assert tree.with_blocks({"a": 1, "b": 2}, {"a": 3}) == {"a": 3, "b": 2}
    assert tree.blocks((4, 5)) == {"0": 4, "1": 5}
    assert tree.with_blocks((4, 5), {"1": 6}) == (4, 6)
    assert tree.blocks(7) == {"params": 7}
    assert tree.with_blocks(7, {"params": 8}) == 8


few = settings(max_examples=25, deadline=None, derandomize=True, database=None)


def numbers(size):
    """Floats of a size; hypothesis likes the ends, zeros and equal ones."""
    return st.floats(-size, size, allow_subnormal=False)


@few
@given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_binomial_intervals_hold_the_share_and_mirror(pair):
    k, n = pair
    low, high = clopper_pearson(k, n, 0.95)
    assert 0 <= low <= k / n <= high <= 1
    mirrored = clopper_pearson(n - k, n, 0.95)
    assert mirrored.low == pytest.approx(1 - high, abs=1e-12)
    wider = clopper_pearson(k, n, 0.999)
    assert wider.low <= low
    assert wider.high >= high
    with pytest.raises(BadArgument, match="successes"):
        clopper_pearson(n + 1, n)


@few
@given(st.lists(st.floats(width=64), max_size=6))
def test_json_is_always_valid(values):
    read = json.loads(json_text({"values": values}))["values"]
    for value, back in zip(values, read, strict=True):
        assert back == value if math.isfinite(value) else back is None


@few
@given(numbers(1e6).filter(lambda v: v != 0), st.integers(1, 6))
def test_rounded_numbers_stay_on_their_side(value, digits):
    assert float(round_down(value, digits)) <= value <= float(round_up(value, digits))


@pytest.mark.parametrize(
    ("value", "up", "down"),
    [
        (112.01, "113", "112"),
        (-0.12345, "-0.123", "-0.124"),
        (0.0, "0", "0"),
        (1e-9, "1e-9", "1e-9"),
    ],
)
def test_shown_numbers_are_on_the_safe_side(value: float, up: str, down: str) -> None:
    assert float(round_up(value)) == pytest.approx(float(up), rel=1e-12)
    assert float(round_down(value)) == pytest.approx(float(down), rel=1e-12)
    assert round_up(float("inf")) == "inf"
