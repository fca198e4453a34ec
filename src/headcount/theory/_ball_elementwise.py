"""Rules for primitives that act entry by entry: arithmetic, elementary functions, logic."""

from __future__ import annotations

from collections.abc import Callable
from operator import methodcaller, neg
from typing import Any

import numpy as np
from flint import arb

from . import _ball_array as arrays
from ._ball_array import Balls, as_balls, is_certain, mapped
from ._ball_value import Equation, Rule, Value, every, kind_of
from ._balls import (
    FALSE,
    TRUE,
    UNKNOWN,
    Undecided,
    absolute,
    angle,
    larger,
    nearest,
    nonnegative,
    power,
    smaller,
    square,
    whole,
)
from ._balls import root as root_of


def _logistic(x: arb) -> arb:
    return 1 / (1 + (-x).exp())


def _log_gamma(x: arb) -> arb:
    """log |Gamma(x)|, JAX's lgamma."""
    return x.lgamma() if x > 0 else abs(x.gamma()).log()


def _cube_root(x: arb) -> arb:
    """Monotone, so the ends suffice; `arb`'s own root is undefined where zero is possible."""
    if not x.is_finite():
        return x.root(3)
    return arrays.hull(_cube_root_of(x.lower()), _cube_root_of(x.upper()))


def _cube_root_of(end: arb) -> arb:
    if end == 0:
        return end
    return end.root(3) if end > 0 else -((-end).root(3))


_ANY_SIGN: dict[str, Callable[[arb], arb]] = {
    "neg": neg,
    "log": methodcaller("log"),
    "log1p": methodcaller("log1p"),
    "log2": lambda x: x.log() / arb.const_log2(),
    "expm1": methodcaller("expm1"),
    "tanh": methodcaller("tanh"),
    "sin": methodcaller("sin"),
    "cos": methodcaller("cos"),
    "tan": methodcaller("tan"),
    "asin": methodcaller("asin"),
    "atan": methodcaller("atan"),
    "sinh": methodcaller("sinh"),
    "asinh": methodcaller("asinh"),
    "atanh": methodcaller("atanh"),
    "erf": methodcaller("erf"),
    "erf_inv": methodcaller("erfinv"),
    "lgamma": _log_gamma,
    "digamma": methodcaller("digamma"),
    "cbrt": _cube_root,
    "floor": methodcaller("floor"),
    "ceil": methodcaller("ceil"),
    "sign": methodcaller("sgn"),
    "one_minus_square": lambda x: 1 - square(x),
}
_NEVER_NEGATIVE: dict[str, Callable[[arb], arb]] = {
    "exp": methodcaller("exp"),
    "exp2": lambda x: (x * arb.const_log2()).exp(),
    "acos": methodcaller("acos"),
    "cosh": methodcaller("cosh"),
    "acosh": methodcaller("acosh"),
    "erfc": methodcaller("erfc"),
    "logistic": _logistic,
    "abs": absolute,
    "square": square,
}
_ODD = {"tanh", "atan", "sinh", "asinh", "erf", "sign", "cbrt", "expm1", "log1p", "floor", "ceil"}
"""Of these, functions that map [0, inf) into itself."""
_ON_INTEGERS: dict[str, Callable[[Any], Any]] = {
    "neg": np.negative,
    "abs": np.abs,
    "sign": np.sign,
    "square": np.square,
    "one_minus_square": lambda x: 1 - np.square(x),
}


def _unary(name: str, function: Callable[[arb], arb], never_negative: bool) -> Rule:
    apply = mapped(function)
    on_integers = _ON_INTEGERS.get(name)

    def rule(equation: Equation, x: Value) -> Value:
        sign = never_negative or (name in _ODD and x.nonnegative)
        if kind_of(equation.invars[0]) != "f" and is_certain(x.array) and on_integers:
            return Value(on_integers(x.array), sign)
        return Value(apply(as_balls(x.array)), sign)

    return rule


_root, _reciprocal_root = mapped(methodcaller("sqrt")), mapped(methodcaller("rsqrt"))
_safe_root = mapped(root_of)
_safe_reciprocal_root = mapped(lambda x: nonnegative(x).rsqrt())
_nonnegative = mapped(nonnegative)
_nearest = mapped(nearest)


def _sqrt(equation: Equation, x: Value) -> Value:
    """Below zero the root is undefined; rounding below zero is cut off where the sign is known."""
    return Value((_safe_root if x.nonnegative else _root)(x.array), True)


def _rsqrt(equation: Equation, x: Value) -> Value:
    return Value((_safe_reciprocal_root if x.nonnegative else _reciprocal_root)(x.array), True)


def _round(equation: Equation, x: Value) -> Value:
    if int(equation.params["rounding_method"]) != 1:
        raise NotImplementedError("round: only ties to even")
    return Value(_nearest(x.array), x.nonnegative)


def _integer_pow(equation: Equation, x: Value) -> Value:
    exponent = equation.params["y"]
    sign = exponent % 2 == 0 or x.nonnegative
    if kind_of(equation.invars[0]) != "f" and is_certain(x.array) and exponent >= 0:
        return Value(x.array**exponent, sign)
    return Value(mapped(lambda v: power(v, exponent))(as_balls(x.array)), sign)


_MOST_FACTORS = 2**20
"""A larger exponent goes through the logarithm: the recursion ends at a depth of 20."""


def real_power(x: arb, y: arb) -> arb:
    """x^y for x >= 0, and for any x where y is known to be a whole number."""
    few = y.is_exact() and abs(y) <= _MOST_FACTORS
    if few and y.is_integer():
        return power(x, whole(y))
    if few and (2 * y).is_integer():
        return power(x.sqrt(), whole(2 * y))
    if y > 0 and not x > 0 and x >= 0:
        return arrays.hull(arb(0), (y * x.upper().log()).exp() if x.upper() > 0 else arb(0))
    return (y * x.log()).exp()


_real_power = mapped(real_power, 2)


def _pow(equation: Equation, x: Value, y: Value) -> Value:
    base = _nonnegative(x.array) if x.nonnegative else as_balls(x.array)
    return Value(_real_power(base, as_balls(y.array)), x.nonnegative)


def _arithmetic(name: str, on_balls: Callable[..., Balls], on_integers: Any, sign: Rule) -> Rule:
    """A binary operation; `sign` tells from both values whether the result can be negative."""

    def rule(equation: Equation, x: Value, y: Value) -> Value:
        kind = kind_of(equation.outvars[0])
        if kind == "f":
            return Value(arrays.boxed(on_balls(x.array, y.array)), sign(x, y))
        if kind == "b":
            raise NotImplementedError(f"{name} of booleans")
        if is_certain(x.array) and is_certain(y.array):
            return Value(np.asarray(on_integers(x.array, y.array)))
        if name in ("div", "rem"):
            raise Undecided(f"{name}: an integer is not known")
        return Value(arrays.boxed(on_balls(as_balls(x.array), as_balls(y.array))), sign(x, y))

    return rule


def _both(x: Value, y: Value) -> bool:
    return x.nonnegative and y.nonnegative


def _either(x: Value, y: Value) -> bool:
    return x.nonnegative or y.nonnegative


def _quotient(x: Any, y: Any) -> Any:
    """Rounded towards zero; of a division by zero JAX makes the number with all bits set."""
    floor, rest = x // y, np.remainder(x, y)
    upwards = (rest != 0) & ((x < 0) != (y < 0))
    return np.where(y == 0, np.invert(np.zeros_like(x)), floor + upwards)


def _rest(x: Any, y: Any) -> Any:
    return np.where(y == 0, x, np.fmod(x, y))


_squares = mapped(square)
_plain_product = _arithmetic("mul", np.multiply, np.multiply, _both)


def _mul(equation: Equation, x: Value, y: Value) -> Value:
    """A product; the product of a quantity with itself is a square."""
    if x is y and kind_of(equation.outvars[0]) == "f":
        return Value(_squares(x.array), True)
    return _plain_product(equation, x, y)


def _polynomial(equation: Equation, x: Value, *coefficients: Value) -> Value:
    """Horner's scheme; the constant comes first."""
    add, values = RULES["add"], (x, *coefficients)
    value = coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        value = add(equation, _plain_product(equation, value, x), coefficient)
    return Value(np.broadcast_to(value.array, equation.outvars[0].aval.shape), every(values))


def _remainder(x: arb, y: arb) -> arb:
    """x - y trunc(x / y), the sign of x."""
    quotient = x / y
    steps = quotient.floor() if quotient >= 0 else quotient.ceil()
    if not (quotient >= 0 or quotient <= 0):
        steps = arrays.hull(quotient.floor(), quotient.ceil())
    return x - y * steps


def _gamma_rule(method: str) -> Rule:
    """igamma or igammac: the regularised incomplete gamma functions of a > 0 at x >= 0."""
    inside = lambda a, x: a > 0 and x >= 0  # noqa: E731
    apply = mapped(
        lambda a, x: getattr(x, method)(a, regularized=1) if inside(a, x) else arb.nan(), 2
    )

    def rule(equation: Equation, a: Value, x: Value) -> Value:
        return Value(apply(a.array, _nonnegative(x.array) if x.nonnegative else x.array), True)

    return rule


def _comparison(relation: Callable[[Balls, Balls], Balls], on_integers: Any) -> Rule:
    def rule(equation: Equation, x: Value, y: Value) -> Value:
        kind = kind_of(equation.invars[0])
        if kind == "b":
            return Value(_truth_comparison(equation.primitive.name, x.array, y.array))
        if kind != "f" and is_certain(x.array) and is_certain(y.array):
            return Value(arrays.truth_of(on_integers(x.array, y.array)))
        if x is y and equation.primitive.name in ("eq", "ne"):
            same = np.vectorize(methodcaller("is_finite"), otypes=[bool])(as_balls(x.array))
            verdict = TRUE if equation.primitive.name == "eq" else FALSE
            return Value(np.where(same, verdict, UNKNOWN).astype(np.int8))
        return Value(relation(as_balls(x.array), as_balls(y.array)))

    return rule


def _truth_comparison(name: str, x: Balls, y: Balls) -> Balls:
    if name not in ("eq", "ne"):
        raise NotImplementedError(f"{name} of booleans")
    unlike = _exclusive(x, y)
    return unlike if name == "ne" else (TRUE - unlike).astype(np.int8)


def _exclusive(x: Balls, y: Balls) -> Balls:
    open_entries = (x == UNKNOWN) | (y == UNKNOWN)
    return np.where(open_entries, UNKNOWN, np.where(x == y, FALSE, TRUE)).astype(np.int8)


def _logical(on_truth: Any, on_integers: Any) -> Rule:
    def rule(equation: Equation, x: Value, y: Value) -> Value:
        if kind_of(equation.invars[0]) == "b":
            return Value(on_truth(x.array, y.array))
        wanted_by = equation.primitive.name
        pair = (arrays.integers(v.array, wanted_by) for v in (x, y))
        return Value(on_integers(*pair))

    return rule


def _not(equation: Equation, x: Value) -> Value:
    if kind_of(equation.invars[0]) == "b":
        return Value((TRUE - x.array).astype(np.int8))
    return Value(np.invert(arrays.integers(x.array, "not")))


def _is_finite(equation: Equation, x: Value) -> Value:
    def finite(value: arb) -> int:
        if value.is_finite():
            return TRUE
        return FALSE if value.is_exact() and not value.is_nan() else UNKNOWN

    return Value(np.vectorize(finite, otypes=[np.int8])(x.array))


def _clamp(equation: Equation, low: Value, x: Value, high: Value) -> Value:
    if kind_of(equation.outvars[0]) != "f" and all(is_certain(v.array) for v in (low, x, high)):
        clipped = np.minimum(np.maximum(x.array, low.array), high.array)
        return Value(clipped)
    above = mapped(larger, 2)(as_balls(x.array), as_balls(low.array))
    sign = every((low, high)) or (x.nonnegative and high.nonnegative)
    return Value(mapped(smaller, 2)(above, as_balls(high.array)), sign)


def _select_n(equation: Equation, which: Value, *cases: Value) -> Value:
    chosen = which.array
    if kind_of(equation.invars[0]) == "b":
        chosen = np.where(chosen == UNKNOWN, -1, chosen // TRUE)
    else:
        chosen = arrays.integers(chosen, "select_n")
    parts = [case.array for case in cases]
    if kind_of(equation.outvars[0]) == "b":
        return Value(arrays.selected_truth(chosen, parts))
    return Value(arrays.selected(chosen, arrays.of_one_kind(parts)), every(cases))


def _flipped(relation: Callable[[Balls, Balls], Balls]) -> Callable[[Balls, Balls], Balls]:
    return lambda x, y: relation(y, x)


def _negated(relation: Callable[[Balls, Balls], Balls]) -> Callable[[Balls, Balls], Balls]:
    return lambda x, y: (TRUE - relation(x, y)).astype(np.int8)


_less, _equals = arrays.less_than, arrays.equals
_greater = _flipped(_less)

RULES: dict[str, Rule] = {
    **{name: _unary(name, f, False) for name, f in _ANY_SIGN.items()},
    **{name: _unary(name, f, True) for name, f in _NEVER_NEGATIVE.items()},
    "sqrt": _sqrt,
    "rsqrt": _rsqrt,
    "round": _round,
    "integer_pow": _integer_pow,
    "pow": _pow,
    "add": _arithmetic("add", np.add, np.add, _both),
    "add_any": _arithmetic("add_any", np.add, np.add, _both),
    "sub": _arithmetic("sub", np.subtract, np.subtract, lambda x, y: False),
    "mul": _mul,
    "polynomial": _polynomial,
    "div": _arithmetic("div", np.true_divide, _quotient, _both),
    "rem": _arithmetic("rem", mapped(_remainder, 2), _rest, lambda x, y: x.nonnegative),
    "max": _arithmetic("max", mapped(larger, 2), np.maximum, _either),
    "min": _arithmetic("min", mapped(smaller, 2), np.minimum, _both),
    "atan2": _arithmetic("atan2", mapped(angle, 2), None, lambda x, y: x.nonnegative),
    "igamma": _gamma_rule("gamma_lower"),
    "igammac": _gamma_rule("gamma_upper"),
    "lt": _comparison(_less, np.less),
    "gt": _comparison(_greater, np.greater),
    "le": _comparison(_negated(_greater), np.less_equal),
    "ge": _comparison(_negated(_less), np.greater_equal),
    "eq": _comparison(_equals, np.equal),
    "ne": _comparison(_negated(_equals), np.not_equal),
    "and": _logical(np.minimum, np.bitwise_and),
    "or": _logical(np.maximum, np.bitwise_or),
    "xor": _logical(_exclusive, np.bitwise_xor),
    "not": _not,
    "is_finite": _is_finite,
    "clamp": _clamp,
    "select_n": _select_n,
}
