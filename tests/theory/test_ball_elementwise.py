"""Rules that act entry by entry: signs that are known, open cases, integers, truth values."""

from __future__ import annotations

import itertools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from ball_rules import apply, balls, counts, ends, floats, interval, middles, truths
from flint import arb

from headcount.theory.balls import FALSE, TRUE, UNKNOWN, Undecided, Value

NEVER = {
    **{name: getattr(jnp, name) for name in ("cosh", "exp", "exp2", "abs", "square")},
    **{"acos": jnp.arccos, "acosh": jnp.arccosh},
    **{"erfc": jax.lax.erfc, "logistic": jax.nn.sigmoid},
}
ODD = {
    **{name: getattr(jnp, name) for name in ("tanh", "sinh", "sign", "expm1", "log1p")},
    **{"atan": jnp.arctan, "asinh": jnp.arcsinh, "erf": jax.lax.erf, "cbrt": jnp.cbrt},
    **{"floor": jnp.floor, "ceil": jnp.ceil},
}
ANY_SIGN = {
    **ODD,
    **{name: getattr(jnp, name) for name in ("log", "log2", "sin", "cos", "tan")},
    **{name: getattr(jax.lax, name) for name in ("erf_inv", "lgamma", "digamma")},
    **{"neg": jnp.negative, "asin": jnp.arcsin, "atanh": jnp.arctanh},
}


def of_one(name: str, *balls: arb) -> arb:
    """The rule `name` on balls."""
    return apply(name, *(Value(np.array([ball], dtype=object)) for ball in balls)).array[0]


@pytest.mark.parametrize("name", [*ANY_SIGN, *NEVER])
def test_what_is_known_of_a_sign(name: str) -> None:
    """A root is cut at zero where the sign is known: it must not be claimed to be."""
    plain, known = (apply(name, floats(0.5, nonnegative=sign)) for sign in (False, True))
    assert plain.nonnegative is (name in NEVER)
    assert known.nonnegative is (name in NEVER or name in ODD)
    expected = float({**ANY_SIGN, **NEVER}[name](np.float64(0.5)))
    assert middles(plain) == [pytest.approx(expected, rel=1e-9, nan_ok=True)]


@pytest.mark.parametrize("name", sorted(ODD))
def test_functions_that_keep_the_sign_keep_it(name: str) -> None:
    assert of_one(name, arb(0.5)) >= 0
    assert of_one(name, arb(0)) >= 0


def test_elementary_functions_against_closed_forms() -> None:
    assert float(of_one("logistic", arb(2))) == pytest.approx(1 / (1 + math.exp(-2)), rel=1e-14)
    assert float(of_one("lgamma", arb(5))) == pytest.approx(math.log(24), rel=1e-14)
    assert float(of_one("lgamma", arb(-0.5))) == pytest.approx(math.log(2 * math.sqrt(math.pi)))

    def cube_root(x: arb) -> arb:
        return of_one("cbrt", x)

    assert [float(cube_root(arb(x))) for x in (8, -27)] == [pytest.approx(2), pytest.approx(-3)]
    assert cube_root(arb(0)) == 0
    assert float(cube_root(arb(8)).rad()) < 1e-15
    assert ends(cube_root(interval(-8, 27))) == (-2, 3)
    assert cube_root(interval(0, 27)).contains(0)
    assert ends(cube_root(interval(8, 27))) == (2, 3)
    assert cube_root(arb.nan()).is_nan()
    assert float(of_one("exp2", arb(3))) == pytest.approx(8, rel=1e-14)


def test_integers_stay_integers() -> None:
    for name, expected in (
        ("neg", [-3, 2]),
        ("abs", [3, 2]),
        ("sign", [1, -1]),
        ("square", [9, 4]),
    ):
        found = apply(name, counts(3, -2))
        assert found.array.dtype == np.int64
        assert found.array.tolist() == expected
    assert apply("integer_pow", counts(3, -2), y=3).array.tolist() == [27, -8]
    assert apply("integer_pow", counts(3, -2), y=0).array.tolist() == [1, 1]
    open_count = floats((2, 3))
    assert ends(apply("abs", open_count, of="i").array[0]) == (2, 3)


def test_roots_are_cut_only_where_the_sign_is_known() -> None:
    around = (-1e-9, 4.0)
    for name, least in (("sqrt", 0.0), ("rsqrt", 0.5)):
        assert not apply(name, floats(around)).array[0].is_finite()
        assert apply(name, floats(4.0)).nonnegative
        found = apply(name, floats(around, nonnegative=True)).array[0]
        assert float(found.lower()) == pytest.approx(least, abs=1e-6) or name == "rsqrt"
    assert middles(apply("rsqrt", floats(4.0, nonnegative=True))) == [0.5]
    assert ends(apply("sqrt", floats(around, nonnegative=True)).array[0]) == (0, 2)


def test_rounding_is_to_even_only() -> None:
    found = apply("round", floats(2.5, 3.5, -0.4), rounding_method=1)
    assert middles(found) == [2, 4, 0]
    assert not found.nonnegative
    assert apply("round", floats(2.5, nonnegative=True), rounding_method=1).nonnegative
    for method in (0, 2):
        with pytest.raises(NotImplementedError, match="ties to even"):
            apply("round", floats(2.5), rounding_method=method)


@pytest.mark.parametrize(
    ("exponent", "known", "sign"),
    [(2, False, True), (3, False, False), (3, True, True), (-2, False, True), (-1, False, False)],
)
def test_the_sign_of_a_power(exponent: int, known: bool, sign: bool) -> None:
    found = apply("integer_pow", floats(-2.0 if not known else 2.0, nonnegative=known), y=exponent)
    assert found.nonnegative is sign
    assert middles(found) == [(-2.0 if not known else 2.0) ** exponent]


def test_real_powers() -> None:
    def power(x: arb, y: arb) -> arb:
        return of_one("pow", x, y)

    assert power(arb(-2), arb(3)) == -8
    assert power(arb(9), arb(0.5)) == 3
    assert float(power(arb(9), arb(-1.5))) == pytest.approx(1 / 27, rel=1e-14)
    assert not power(arb(-9), arb(0.5)).is_finite()
    assert float(power(arb(2), arb(0.25))) == pytest.approx(2**0.25, rel=1e-14)
    assert power(arb(0), arb(0.25)) == 0
    from_zero = interval(0, 16).nonnegative_part()
    assert ends(power(from_zero, arb(0.25)))[1] == pytest.approx(2, abs=1e-6)
    assert power(from_zero, arb(0.25)).contains(0)
    assert not power(from_zero, arb(-0.25)).is_finite()
    # An exponent that is not known exactly takes the logarithm.
    wide = power(arb(2), interval(0.5, 1))
    assert ends(wide) == (pytest.approx(2**0.5, abs=0.1), pytest.approx(2, abs=0.1))
    below = floats((-1e-9, 1.0))
    assert not apply("pow", below, floats(0.25)).array[0].is_finite()
    cut = apply("pow", Value(below.array, True), floats(0.25))
    assert cut.array[0].is_finite()
    assert cut.nonnegative
    assert not apply("pow", floats(2.0), floats(0.25)).nonnegative


SIGNS = {
    "add": lambda x, y: x and y,
    "add_any": lambda x, y: x and y,
    "sub": lambda x, y: False,
    "mul": lambda x, y: x and y,
    "div": lambda x, y: x and y,
    "rem": lambda x, y: x,
    "max": lambda x, y: x or y,
    "min": lambda x, y: x and y,
    "atan2": lambda x, y: x,
}
VALUES: dict[str, Any] = {
    "add": (5.5, 8),
    "add_any": (5.5, 8),
    "sub": (1.5, 6),
    "mul": (7.0, 7),
    "div": (1.75, 7),
    "rem": (1.5, 0),
    "max": (3.5, 7),
    "min": (2.0, 1),
    "atan2": (math.atan2(3.5, 2.0), None),
}


@pytest.mark.parametrize("name", SIGNS)
def test_binary_rules(name: str) -> None:
    for first, second in itertools.product((True, False), repeat=2):
        found = apply(name, floats(3.5, nonnegative=first), floats(2.0, nonnegative=second))
        assert found.nonnegative is SIGNS[name](first, second), (first, second)
        assert middles(found) == [pytest.approx(VALUES[name][0])]
    if VALUES[name][1] is not None:
        whole = apply(name, counts(7), counts(1), into="i")
        assert whole.array.dtype == np.int64
        assert whole.array.tolist() == [VALUES[name][1]]


def test_integers_that_are_not_known() -> None:
    open_count, two = floats((6, 7)), counts(2)
    assert ends(apply("add", open_count, two, of="ii", into="i").array[0]) == (8, 9)
    assert ends(apply("mul", two, open_count, of="ii", into="i").array[0]) == (12, 14)
    for name in ("div", "rem"):
        for pair in ((open_count, two), (two, open_count)):
            with pytest.raises(Undecided, match=f"{name}: an integer is not known"):
                apply(name, *pair, of="ii", into="i")
    with pytest.raises(NotImplementedError, match="add of booleans"):
        apply("add", truths(TRUE), truths(TRUE))


def test_quotients_and_remainders_take_the_sign_of_c() -> None:
    pairs = [(7, 2), (-7, 2), (7, -2), (-7, -2)]
    first, second = (counts(*side) for side in zip(*pairs, strict=True))
    assert apply("div", first, second, into="i").array.tolist() == [3, -3, -3, 3]
    assert apply("rem", first, second, into="i").array.tolist() == [1, -1, 1, -1]
    x, y = (floats(*side) for side in zip(*pairs, strict=True))
    assert middles(apply("rem", x, y)) == [1, -1, 1, -1]
    assert ends(of_one("rem", interval(-0.5, 0.5), arb(1))) == (-1.5, 1.5)
    assert float(of_one("rem", arb(-0.5), arb(1))) == -0.5


def test_a_quantity_times_itself_is_a_square() -> None:
    x, other = floats((-1, 2)), floats((-1, 2))
    same, plain = apply("mul", x, x), apply("mul", x, other)
    assert same.nonnegative
    assert not plain.nonnegative
    assert float(same.array[0].lower()) >= 0 > float(plain.array[0].lower())
    assert apply("mul", counts(3), counts(4), into="i").array.tolist() == [12]


def test_incomplete_gamma_functions() -> None:
    """With a = 1 they are 1 - exp(-x) and exp(-x)."""
    for name, expected in (("igamma", 1 - math.exp(-0.5)), ("igammac", math.exp(-0.5))):
        found = apply(name, floats(1.0), floats(0.5))
        assert found.nonnegative
        assert middles(found) == [pytest.approx(expected, rel=1e-14)]
        assert apply(name, floats(0.0), floats(0.5)).array[0].is_nan()
        assert apply(name, floats(-1.0), floats(0.5)).array[0].is_nan()
    around = floats((-1e-12, 1e-12))
    cut = apply("igamma", floats(1.0), Value(around.array, True)).array[0]
    assert ends(cut) == (0, 0)


RELATIONS = {
    "lt": (TRUE, FALSE, FALSE),
    "le": (TRUE, TRUE, FALSE),
    "gt": (FALSE, FALSE, TRUE),
    "ge": (FALSE, TRUE, TRUE),
    "eq": (FALSE, TRUE, FALSE),
    "ne": (TRUE, FALSE, TRUE),
}


@pytest.mark.parametrize("name", RELATIONS)
def test_comparisons(name: str) -> None:
    expected = list(RELATIONS[name])
    assert apply(name, floats(1, 2, 3), floats(2, 2, 2), into="b").array.tolist() == expected
    assert apply(name, counts(1, 2, 3), counts(2, 2, 2), into="b").array.tolist() == expected
    open_entry = apply(name, floats((1, 3)), floats(2), into="b")
    assert open_entry.array.tolist() == [UNKNOWN]
    mixed = apply(name, floats(1, 2, 3), counts(2, 2, 2), of="ii", into="b")
    assert mixed.array.tolist() == expected


def test_a_quantity_equals_itself_unless_it_may_be_nan() -> None:
    x = Value(np.array([interval(1, 2), arb.nan(), arb("inf")], dtype=object))
    assert apply("eq", x, x, into="b").array.tolist() == [TRUE, UNKNOWN, UNKNOWN]
    assert apply("ne", x, x, into="b").array.tolist() == [FALSE, UNKNOWN, UNKNOWN]
    assert apply("lt", x, x, into="b").array[0] == UNKNOWN


def test_truth_values() -> None:
    pairs = list(itertools.product((FALSE, UNKNOWN, TRUE), repeat=2))
    x, y = (truths(*side) for side in zip(*pairs, strict=True))
    unlike = [UNKNOWN if UNKNOWN in pair else TRUE * (pair[0] != pair[1]) for pair in pairs]
    assert apply("and", x, y).array.tolist() == [min(pair) for pair in pairs]
    assert apply("or", x, y).array.tolist() == [max(pair) for pair in pairs]
    assert apply("xor", x, y).array.tolist() == unlike
    assert apply("ne", x, y).array.tolist() == unlike
    assert apply("eq", x, y).array.tolist() == [TRUE - value for value in unlike]
    assert apply("not", truths(FALSE, UNKNOWN, TRUE)).array.tolist() == [TRUE, UNKNOWN, FALSE]
    with pytest.raises(NotImplementedError, match="lt of booleans"):
        apply("lt", x, y)
    assert apply("and", counts(6), counts(3)).array.tolist() == [2]
    assert apply("or", counts(6), counts(3)).array.tolist() == [7]
    assert apply("xor", counts(6), counts(3)).array.tolist() == [5]
    assert apply("not", counts(6)).array.tolist() == [~6]
    with pytest.raises(Undecided, match="and: an index is not known"):
        apply("and", floats((6, 7)), counts(3), of="ii")


def test_what_is_finite() -> None:
    values = [arb(1), arb("inf"), arb("-inf"), arb.nan(), arb("0 +/- inf")]
    found = apply("is_finite", Value(np.array(values, dtype=object)), into="b")
    assert found.array.tolist() == [TRUE, FALSE, FALSE, UNKNOWN, UNKNOWN]


@pytest.mark.parametrize(
    ("signs", "known"),
    [
        ((True, False, True), True),
        ((False, True, True), True),
        ((True, True, False), False),
        ((False, False, True), False),
        ((True, False, False), False),
    ],
)
def test_clamping(signs: tuple[bool, bool, bool], known: bool) -> None:
    values = [
        Value(balls(*row), s) for row, s in zip(((0, 0), (-3, 9), (4, 4)), signs, strict=True)
    ]
    found = apply("clamp", *values, shape=(2,))
    assert middles(found) == [0, 4]
    assert found.nonnegative is known
    whole = apply("clamp", counts(0, 0), counts(-3, 9), counts(4, 4))
    assert whole.array.dtype == np.int64
    assert whole.array.tolist() == [0, 4]
    mixed = apply("clamp", counts(0), floats((3, 9)), counts(4), of="iii")
    assert ends(mixed.array[0]) == (3, 4)


def test_a_choice_by_truth_or_number() -> None:
    which, a, b = truths(FALSE, TRUE, UNKNOWN), floats(1, 2, 3), floats(11, 12, 13)
    found = apply("select_n", which, a, b)
    assert middles(found)[:2] == [1, 12]
    assert ends(found.array[2]) == (3, 13)
    assert not found.nonnegative
    positive = [Value(v.array, True) for v in (a, b)]
    assert apply("select_n", which, *positive).nonnegative
    whole = apply("select_n", truths(TRUE, FALSE), counts(1, 2), counts(5, 6))
    assert whole.array.tolist() == [5, 2]
    assert whole.array.dtype == np.int64
    mixed = apply("select_n", truths(TRUE, FALSE), floats((1, 2), 2), counts(5, 6), of="bii")
    assert middles(mixed) == [5, 2]
    several = apply("select_n", counts(2, 0, 1), *(floats(k, k, k) for k in (10, 20, 30)))
    assert middles(several) == [30, 10, 20]
    of_truth = apply("select_n", which, truths(TRUE, TRUE, TRUE), truths(FALSE, FALSE, TRUE))
    assert of_truth.array.tolist() == [TRUE, FALSE, TRUE]
    with pytest.raises(Undecided, match="select_n"):
        apply("select_n", floats((0, 1)), floats(1), floats(2), of="iff")
