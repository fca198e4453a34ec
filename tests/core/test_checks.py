"""Every check: what passes, and the one clear message for what does not."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from headcount import core
from headcount.core import BadArgument, FixedQuery, HeadcountError, LastToken, seeded_query
from headcount.papers import arda2026

NAN_DATA = np.array([[[1.0, np.nan]]])


@pytest.mark.parametrize(
    ("check", "arguments", "message"),
    [
        ("check_positive", ("eta", 0), "eta = 0: must be a finite number > 0; set eta > 0"),
        (
            "check_positive",
            ("eta", math.nan),
            "eta = nan: must be a finite number > 0; set eta > 0",
        ),
        ("check_positive", ("eta", True), "eta = True: must be a finite number > 0; set eta > 0"),
        ("check_nonnegative", ("rho", -1.5), "rho = -1.5: must be a finite number >= 0; "),
        ("check_nonnegative", ("rho", math.inf), "rho = inf: must be a finite number >= 0; "),
        ("check_fraction", ("delta", 1), "delta = 1: must lie in (0, 1); for example delta=0.05"),
        ("check_fraction", ("delta", "x"), "delta = 'x': must lie in (0, 1); "),
        ("check_count", ("m", 0), "m = 0: must be a whole number >= 1; use m=1 or more"),
        ("check_count", ("m", 2.0), "m = 2.0: must be a whole number >= 1; use m=1 or more"),
        ("check_count", ("m", True), "m = True: must be a whole number"),
        ("check_choice", ("pooling", "max", ("sum", "mean")), "pooling = 'max': is not a known "),
        ("check_finite", ("x", NAN_DATA), "x = 'array of shape (1, 1, 2)': has 1 NaN or infinite"),
        ("check_shape", ("y", np.ones(3), (4,)), "y = 'array of shape (3,)': must have shape (4)"),
        ("check_shape", ("y", np.ones(3), (3, None)), "must have shape (3, any)"),
        ("check_samples", (np.ones((2, 3)), np.ones(2)), "must have shape (any, any, any)"),
        ("check_samples", (np.ones((0, 3, 1)), np.ones(0)), "is empty; give n, T, d >= 1"),
        ("check_samples", (np.ones((2, 3, 1)), np.ones(3)), "y = 'array of shape (3,)'"),
        ("check_samples", (NAN_DATA, np.ones(1)), "has 1 NaN or infinite entries; clean"),
        ("check_samples", (np.ones((1, 1, 1)), [np.inf]), "y = 'array of shape (1,)': has 1 NaN"),
    ],
)
def test_bad_arguments_have_one_clear_message(check, arguments, message):
    with pytest.raises(BadArgument) as caught:
        getattr(core, check)(*arguments)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, HeadcountError)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("check", "arguments", "value"),
    [
        ("check_positive", ("eta", np.float32(0.5)), 0.5),
        ("check_nonnegative", ("rho", 0), 0.0),
        ("check_fraction", ("delta", 0.05), 0.05),
        ("check_count", ("m", np.int64(3)), 3),
        ("check_choice", ("pooling", "sum", ("sum", "mean")), "sum"),
        ("check_samples", (np.ones((2, 3, 4)), [0, 1]), (2, 3, 4)),
        ("check_finite", ("x", [1, 2]), None),
        ("check_shape", ("x", np.ones((2, 5)), (None, 5)), None),
    ],
)
def test_good_arguments_pass(check, arguments, value):
    assert getattr(core, check)(*arguments) == value


@pytest.mark.parametrize("query", [LastToken(), lambda X: X[0], FixedQuery((0.5, 0.5))])
def test_good_queries_pass(query):
    assert arda2026.PooledAttention(2, 4, query=query).query is query


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: arda2026.PooledAttention(2, 4, query=3), "query = 3: is not callable"),
        (
            lambda: arda2026.PooledAttention(2, 4, query=FixedQuery((0.5,))),
            "query = (0.5,): has 1 entries; give 2",
        ),
        (lambda: arda2026.Setting(d=2, m=0, n=3), "m = 0: must be a whole number >= 2"),
        (
            lambda: arda2026.Setting(d=2, m=7, n=3),
            "m = 7: must be even: paired initialisation mirrors every head; use m=8",
        ),
    ],
)
def test_queries_and_paired_widths_are_checked_where_they_are_given(make, message):
    with pytest.raises(BadArgument, match=f"^{re.escape(message)}"):
        make()


def test_long_values_are_cut_in_messages():
    error = BadArgument("x", "a" * 500, "is long", fix="shorten it")
    assert len(str(error)) < 130
    assert error.value == "a" * 500


def test_queries():
    X = np.array([[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_array_equal(LastToken()(X), [3, 4])
    np.testing.assert_array_equal(FixedQuery((0.6, -0.8))(X), [0.6, -0.8])
    assert FixedQuery((0.5, 0.5))(X.astype("float32")).dtype == "float32"
    drawn = seeded_query(5, 1)
    assert drawn == seeded_query(5, 1) != seeded_query(5, 2)
    assert math.sqrt(sum(v * v for v in drawn.vector)) == pytest.approx(1, abs=1e-12)
    for bad in [(1.0, 0.1), (math.nan,)]:
        with pytest.raises(BadArgument, match="has norm above 1"):
            FixedQuery(bad)


def test_registry_names_near_misses():
    registry = core.Registry("model")
    registry.register("transformer", 1)
    assert registry["transformer"] == 1
    assert list(registry.items()) == [("transformer", 1)]
    assert "transformer" in registry
    assert len(registry) == 1
    with pytest.raises(BadArgument, match=r"model = 'transformr': is not known; did you mean"):
        registry["transformr"]
    with pytest.raises(BadArgument, match=r"model = 'zzz': is not known; known: transformer"):
        registry["zzz"]
    with pytest.raises(RuntimeError, match="registered twice"):
        registry.register("transformer", 2)


def test_a_long_value_is_cut_but_a_path_is_shown_whole() -> None:
    path = "/home/" + "deep/" * 30 + "config.toml"
    assert path in str(BadArgument("config", path, "is not TOML", fix="mend it"))
    for endless in ("x" * 10_000, list(range(10_000))):
        assert len(str(BadArgument("x", endless, "is long", fix="cut it"))) < 350
