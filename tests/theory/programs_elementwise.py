"""Random programs around primitives that act entry by entry."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
from jax import lax
from programs import INTEGERS, MP, Generator, Program, edges, seen_as

Unary = tuple[Callable[[Any], Any], Callable[[Any], Any] | None, float, float, tuple[float, ...]]


def entrywise(function: Callable[..., Any], count: int = 1) -> Callable[..., Any]:
    """A function of mpmath numbers on arrays; where it is undefined, NaN."""

    def guarded(*numbers: Any) -> Any:
        try:
            value = function(*numbers)
        except (ValueError, ZeroDivisionError):
            return MP.nan
        return value if isinstance(value, MP.mpf) else MP.nan

    return np.frompyfunc(guarded, count, 1)


def _log_gamma(x: Any) -> Any:
    return MP.log(abs(MP.gamma(x)))


def _cube_root(x: Any) -> Any:
    return MP.sign(x) * MP.cbrt(abs(x))


UNARY: dict[str, Unary] = {
    "log": (lax.log, MP.log, 0.3, 9, (0.0, -1.0, 1e-300, 1e300)),
    "log1p": (lax.log1p, lambda x: MP.log(1 + x), -0.6, 9, (0.0, -1.0, -2.0, 1e-200)),
    "expm1": (lax.expm1, MP.expm1, -3, 3, (0.0, 1e-200, -800.0, 800.0)),
    "exp": (lax.exp, MP.exp, -3, 3, (0.0, 800.0)),
    "exp2": (lax.exp2, lambda x: MP.mpf(2) ** x, -3, 3, (0.0, 2000.0)),
    "tanh": (lax.tanh, MP.tanh, -3, 3, (0.0, 1e300)),
    "sin": (lax.sin, MP.sin, -5, 5, (0.0,)),
    "cos": (lax.cos, MP.cos, -5, 5, (0.0,)),
    "tan": (lax.tan, MP.tan, -1, 1, (0.0,)),
    "asin": (lax.asin, MP.asin, -0.7, 0.7, (1.0, -1.0, 1.5)),
    "acos": (lax.acos, MP.acos, -0.7, 0.7, (1.0, -1.0, -1.5)),
    "atan": (lax.atan, MP.atan, -5, 5, (0.0, 1e300)),
    "sinh": (lax.sinh, MP.sinh, -3, 3, (0.0,)),
    "cosh": (lax.cosh, MP.cosh, -3, 3, (0.0,)),
    "asinh": (lax.asinh, MP.asinh, -5, 5, (0.0,)),
    "acosh": (lax.acosh, MP.acosh, 1.3, 9, (1.0, 0.5)),
    "atanh": (lax.atanh, MP.atanh, -0.7, 0.7, (0.0, 1.0, -2.0)),
    "erf": (lax.erf, MP.erf, -3, 3, (0.0, 30.0)),
    "erfc": (lax.erfc, MP.erfc, -3, 3, (0.0, 20.0)),
    "erf_inv": (lax.erf_inv, MP.erfinv, -0.7, 0.7, (0.0, 1.0, -2.0)),
    "lgamma": (lax.lgamma, _log_gamma, 0.3, 9, (1.0, -0.5, -2.7, 0.0)),
    "digamma": (lax.digamma, MP.digamma, 0.3, 9, (1.0, -0.5, -3.0)),
    "cbrt": (lax.cbrt, _cube_root, -9, 9, (0.0, -27.0)),
    "sqrt": (lax.sqrt, MP.sqrt, 0.3, 9, (0.0, -1.0)),
    "rsqrt": (lax.rsqrt, lambda x: 1 / MP.sqrt(x), 0.3, 9, (-1.0, 1e-300)),
    "logistic": (lax.logistic, lambda x: 1 / (1 + MP.exp(-x)), -5, 5, (0.0, -800.0)),
    "square": (lax.square, lambda x: x * x, -3, 3, (0.0, 1e200)),
    "neg": (lax.neg, None, -3, 3, (0.0,)),
    "abs": (lax.abs, None, -3, 3, (0.0,)),
    "floor": (lax.floor, None, -3, 3, (2.0, -1.0)),
    "ceil": (lax.ceil, None, -3, 3, (2.0, -1.0)),
    "sign": (lax.sign, None, -3, 3, (0.0,)),
    "is_finite": (lax.is_finite, None, -3, 3, (1e300,)),
    "round": (
        lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN),
        None,
        *(-3, 3),
        (0.5, 1.5, -2.5),
    ),
}
if hasattr(lax, "one_minus_square"):
    UNARY["one_minus_square"] = (lax.one_minus_square, lambda x: 1 - x * x, -2, 2, (1.0, -1.0))
if hasattr(lax, "log2"):
    UNARY["log2"] = (lax.log2, lambda x: MP.log(x, 2), 0.3, 9, (0.0, -1.0, 1e-300, 0.125))
ON_INTEGERS = {"neg", "abs", "sign", "square", "one_minus_square"}


def _unary(name: str, rng: np.random.Generator) -> Iterator[Program]:
    function, number, low, high, special = UNARY[name]
    exact = entrywise(number) if number else None
    yield Program(function, (rng.uniform(low, high, (2, 2)),), exact, radius=0.2)
    yield Program(function, (rng.uniform(low, high, 1),), exact, radius=1e-9)
    yield Program(function, (np.array(special),), exact, radius=0.0)
    yield Program(function, (rng.uniform(low, high, 2),), exact, radius=2.0)
    if name not in ON_INTEGERS:
        return
    for dtype in (t for t in INTEGERS if t[0] == "i" or name != "abs"):
        yield Program(function, (edges(rng, dtype, 6),))
        open_one = lambda x, dtype=dtype: function(seen_as(dtype, x))  # noqa: E731
        yield Program(open_one, (rng.uniform(20, 100, 2),), radius=20.0)


def _remainder(x: Any, y: Any) -> Any:
    quotient = x / y
    return x - y * (MP.floor(quotient) if quotient >= 0 else MP.ceil(quotient))


def _add_any(x: Any, y: Any) -> Any:
    return jax.vjp(lambda z: (z, z), x)[1]((x, y))[0]


def _power(x: Any, y: Any) -> Any:
    return MP.power(x, y)


FLOATS = (1.0, -1.0, 0.0, 2.5, -3.0, 1e10)
BINARY: dict[str, tuple[Any, Any, bool]] = {
    "add": (lax.add, lambda x, y: x + y, True),
    "sub": (lax.sub, lambda x, y: x - y, True),
    "mul": (lax.mul, lambda x, y: x * y, True),
    "add_any": (_add_any, lambda x, y: x + y, False),
    "div": (lax.div, lambda x, y: x / y, True),
    "rem": (lax.rem, _remainder, True),
    "max": (lax.max, None, True),
    "min": (lax.min, None, True),
    "atan2": (lax.atan2, MP.atan2, False),
    "lt": (lax.lt, None, True),
    "le": (lax.le, None, True),
    "gt": (lax.gt, None, True),
    "ge": (lax.ge, None, True),
    "eq": (lax.eq, None, True),
    "ne": (lax.ne, None, True),
    "and": (lax.bitwise_and, None, True),
    "or": (lax.bitwise_or, None, True),
    "xor": (lax.bitwise_xor, None, True),
}
"""The function, the same of mpmath numbers, and whether it takes integers, too."""


def _binary(name: str, rng: np.random.Generator) -> Iterator[Program]:
    function, number, whole = BINARY[name]
    exact = entrywise(number, 2) if number else None
    logical = name in ("and", "or", "xor")
    if not logical:
        x, y = rng.uniform(-3, 3, (2, 3, 2))
        yield Program(function, (x, y), exact, radius=0.2)
        yield Program(function, (x, np.abs(y) + 1.0), exact, radius=0.2)
        pairs = np.array([(a, b) for a in FLOATS for b in FLOATS]).T
        yield Program(function, (pairs[0], pairs[1]), exact)
        yield Program(lambda x: function(x, x), (x,), exact and (lambda x: exact(x, x)), radius=2.0)
    for dtype in INTEGERS if whole else ():
        yield Program(function, (edges(rng, dtype, 12), edges(rng, dtype, 12)))
        open_one = lambda x, y, t=dtype: function(seen_as(t, x), seen_as(t, y))  # noqa: E731
        yield Program(open_one, (rng.uniform(0, 9, 2), rng.uniform(1, 30, 2)), radius=1.0)
    if logical or name in ("eq", "ne"):
        truths = np.array([(a, b) for a in (True, False) for b in (True, False)]).T
        yield Program(function, (truths[0], truths[1]))
        open_truth = lambda x, y: function(seen_as("bool", x), seen_as("bool", y))  # noqa: E731
        yield Program(open_truth, (rng.normal(size=6), rng.normal(size=6)), radius=0.5)


def _not(rng: np.random.Generator) -> Iterator[Program]:
    for dtype in ("bool", *INTEGERS):
        yield Program(lax.bitwise_not, (edges(rng, dtype, 6),))
    yield Program(lambda x: lax.bitwise_not(lax.gt(x, 0.0)), (rng.normal(size=5),), radius=0.5)


def _pow(rng: np.random.Generator) -> Iterator[Program]:
    exact = entrywise(_power, 2)
    yield Program(lax.pow, (rng.uniform(0.3, 4, 3), rng.uniform(-2, 2, 3)), exact, radius=0.2)
    yield Program(lax.pow, (np.zeros(2), np.array([0.3, 2.0])), exact)
    for y in (0.5, 2.0, 3.0, -1.0, -2.5, 0.25, 2e7):
        power = lambda x, y=y: lax.pow(x, np.full(x.shape, y))  # noqa: E731
        here = entrywise(lambda x, y=y: _power(x, y))
        yield Program(power, (rng.uniform(0.5, 3, 2),), here, radius=0.3)
        if abs(y) < 9:
            yield Program(power, (rng.uniform(-1, 1, 2),), here, radius=0.5)
    for dtype in ("int8", "uint8", "int32", "int64"):
        counts = rng.integers(0, 6, 3).astype(dtype)
        yield Program(lax.pow, (rng.uniform(-2, 2, 3), counts), exact, radius=0.2)


def _integer_pow(rng: np.random.Generator) -> Iterator[Program]:
    for y in (0, 1, 2, 3, 5, 8, -1, -2, -3):
        power = functools.partial(lax.integer_pow, y=y)
        exact = entrywise(lambda x, y=y: x**y)
        yield Program(power, (rng.uniform(-3, 3, 3),), exact, radius=0.4)
        yield Program(power, (np.array([0.0, 1.0, -2.0]),), exact)
    for dtype in INTEGERS:
        power = functools.partial(lax.integer_pow, y=int(rng.integers(0, 9)))
        yield Program(power, (edges(rng, dtype, 6),))
        open_one = lambda x, p=power, t=dtype: p(seen_as(t, x))  # noqa: E731
        yield Program(open_one, (rng.uniform(0, 4, 2),), radius=1.0)


def _polynomial(rng: np.random.Generator) -> Iterator[Program]:
    exact = lambda x, *coefficients: sum(c * x**k for k, c in enumerate(coefficients))  # noqa: E731
    horner = lambda x, *coefficients: lax.polynomial(x, coefficients)  # noqa: E731
    for shapes in (((3,), (3,)), ((2, 1), (1, 3), (2, 3), (2, 1)), ((), (), ())):
        drawn = tuple(np.asarray(rng.normal(size=shape)) for shape in shapes)
        yield Program(horner, (rng.uniform(-2, 2, shapes[0]), *drawn), exact, radius=0.1)
        fixed = lambda x: horner(x, 0.5, -1.0, *range(4))  # noqa: E731
        here = lambda x: exact(x, 0.5, -1, *range(4))  # noqa: E731
        yield Program(fixed, (rng.uniform(-2, 2, shapes[0]),), here, radius=0.1)
    for dtype in INTEGERS:
        yield Program(horner, tuple(edges(rng, dtype, 6) for _ in range(4)))
        open_one = lambda x, t=dtype: horner(seen_as(t, x), *np.arange(3, dtype=t))  # noqa: E731
        yield Program(open_one, (rng.uniform(0, 5, 2),), radius=1.0)


def _incomplete_gamma(name: str, rng: np.random.Generator) -> Iterator[Program]:
    from_zero = name == "igamma"
    function = lax.igamma if from_zero else lax.igammac

    def value(a: Any, x: Any) -> Any:
        if a <= 0 or x < 0:
            return MP.nan
        ends = (0, x) if from_zero else (x, MP.inf)
        return MP.gammainc(a, *ends, regularized=True)

    exact = entrywise(value, 2)
    yield Program(function, (rng.uniform(0.5, 4, 2), rng.uniform(0.4, 5, 2)), exact, radius=0.2)
    yield Program(function, (np.array([2.0, 1.0, 0.5]), np.array([-1.0, 0.5, 0.2])), exact)
    yield Program(function, (np.array([1.0]), np.array([0.1])), exact, radius=0.3)


def _clamp(rng: np.random.Generator) -> Iterator[Program]:
    yield Program(lax.clamp, (np.float64(-0.5), rng.normal(size=4), np.float64(0.6)), radius=0.2)
    for dtype in INTEGERS:
        low, high = sorted(edges(rng, dtype, 2))
        yield Program(lax.clamp, (low, edges(rng, dtype, 6), high))
        middle = lambda x, t=dtype: lax.clamp(np.array(3, t), seen_as(t, x), np.array(9, t))  # noqa: E731
        yield Program(middle, (rng.uniform(0, 12, 3),), radius=2.0)


def _select(rng: np.random.Generator) -> Iterator[Program]:
    for dtype in ("float64", "bool", "int8", "uint32", "int64"):
        cases = lambda x, t=dtype: [seen_as(t, x * k) for k in (1.0, 4.0, 0.5)]  # noqa: E731
        by_truth = lambda w, x, c=cases: lax.select_n(lax.gt(w, 0.0), *c(x)[:2])  # noqa: E731
        yield Program(by_truth, (rng.normal(size=4), rng.uniform(1, 3, 4)), radius=0.5)
        by_number = lambda w, x, c=cases: lax.select_n(w, *c(x))  # noqa: E731
        which = rng.integers(0, 3, 4).astype(np.int32)
        yield Program(by_number, (which, rng.uniform(1, 3, 4)), radius=0.5)
        by_one = lambda w, x, c=cases: lax.select_n(w, *c(x)[:2])  # noqa: E731
        yield Program(by_one, (np.array(True), rng.uniform(1, 3, 4)), radius=0.5)


def _convert(rng: np.random.Generator) -> Iterator[Program]:
    kinds = ("float64", "bool", *INTEGERS)
    for before in kinds:
        for after in (t for t in kinds if t != before):
            into = lambda x, t=after: lax.convert_element_type(x, np.dtype(t))  # noqa: E731
            small = rng.uniform(20, 100, 3)
            seen = lambda x, f=into, t=before: f(seen_as(t, x))  # noqa: E731
            yield Program(seen, (small,), radius=9.0)
            whole = np.frompyfunc(MP.mpf, 1, 1) if after == "float64" else None
            if before != "float64":
                yield Program(into, (edges(rng, before, 6),), whole)
        narrow = lambda x, t=before: seen_as("int8", seen_as("int32", x))  # noqa: E731
        yield Program(narrow, (rng.uniform(100, 300, 4),), radius=40.0)
    yield Program(functools.partial(seen_as, "int32"), (rng.uniform(-3, 3, 6),), radius=0.9)


GENERATORS: dict[str, Generator] = {
    **{name: functools.partial(_unary, name) for name in UNARY},
    **{name: functools.partial(_binary, name) for name in BINARY},
    **{name: functools.partial(_incomplete_gamma, name) for name in ("igamma", "igammac")},
    "not": _not,
    "pow": _pow,
    "integer_pow": _integer_pow,
    "clamp": _clamp,
    "select_n": _select,
    "convert_element_type": _convert,
}
if hasattr(lax, "polynomial"):
    GENERATORS["polynomial"] = _polynomial
