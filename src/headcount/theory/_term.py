"""Numbers that remember how they were computed: the ball interpreter makes a program of them.

A `Term` stands where a ball would: it has the ball, and the line of the program that gives it.
Running a jaxpr on terms writes its operations down one by one; a decision that the balls make
(which branch, how many steps) becomes a line that whoever runs the program has to check.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb, fmpq, fmpz

from ..core import BadArgument
from ._balls import fraction

MOST_LINES = 20_000
"""A longer program is not written: nobody could look at it, and a check would take minutes."""
MOST_BITS = 4_000
"""Of a rational number that is kept exactly."""


class Tape:
    """The lines of a program, each written once: (operation, operands)."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, tuple[Any, ...]]] = []
        self.checks: dict[tuple[str, Any, Any], None] = {}
        self._known: dict[tuple[str, tuple[Any, ...]], Term] = {}

    def input(self, name: str, value: Fraction) -> Term:
        """A coordinate of the point."""
        return Term(self, name, None, fmpq(value.numerator, value.denominator))

    def constant(self, ball: arb) -> Term:
        """A number of the program: exact, or somewhere within a radius."""
        if not ball.is_finite():
            name = "nan" if not ball.is_exact() else "inf" if ball > 0 else "-inf"
            return Term(self, name, ball, None, constant=True)
        if ball.is_exact():
            exact = fraction(ball)
            return self.number(fmpq(exact.numerator, exact.denominator))
        middle = float(ball.mid())
        radius = f"{float(ball.rad().upper()) + math.ulp(middle):.2g}"
        inside = arb(middle, 2 * float(radius))
        return self._line("near", (repr(middle), f"{1.1 * float(radius):.2g}"), inside, None)

    def number(self, exact: fmpq) -> Term:
        """A rational number, which needs no line."""
        return Term(self, shown(exact), None, exact, constant=True)

    def apply(self, name: str, ball: Callable[[], arb], exact: fmpq | None, *operands: Any) -> Term:
        """One operation; of two that are alike there is one line."""
        terms = [self.lifted(x) for x in operands]
        if exact is not None and all(term.constant for term in terms):
            return self.number(exact)
        names = tuple(term.name for term in terms)
        key = name, tuple(sorted(names)) if name in ("add", "mul", "max", "min") else names
        known = self._known.get(key)
        return known if known is not None else self._line(*key, ball(), exact)

    def _line(self, name: str, operands: tuple[Any, ...], ball: arb, exact: fmpq | None) -> Term:
        key = name, operands
        if key not in self._known:
            if len(self.lines) >= MOST_LINES:
                fix = "choose an instance of smaller sizes"
                raise BadArgument("program", MOST_LINES, "has more lines than this", fix=fix)
            self.lines.append(key)
            self._known[key] = Term(self, f"#{len(self.lines) - 1}", ball, exact)
        return self._known[key]

    def lifted(self, value: Any) -> Term:
        """A ball or a whole number as a term; terms stay as they are."""
        return value if isinstance(value, Term) else self.constant(arb(value))

    def check(self, relation: str, x: Any, y: Any) -> None:
        """Write down that a decision was made."""
        left, right = self.lifted(x), self.lifted(y)
        if not (left.constant and right.constant):
            self.checks[relation, left.name, right.name] = None

    def written(self, outputs: Sequence[Term]) -> tuple[list[str], list[str]]:
        """The lines on which outputs and checks depend, renumbered, and the outputs' names."""
        wanted = [f"#{k}" in used for used in [self._used(outputs)] for k in range(len(self.lines))]
        kept = [k for k, needed in enumerate(wanted) if needed]
        new = {f"#{k}": f"#{place}" for place, k in enumerate(kept)}
        text = [
            f"{new[f'#{k}']} = {self.lines[k][0]} "
            + " ".join(new.get(name, name) for name in self.lines[k][1])
            for k in kept
        ]
        text += [f"check {new.get(x, x)} {r} {new.get(y, y)}" for r, x, y in self.checks]
        return text, [new.get(term.name, term.name) for term in outputs]

    def _used(self, outputs: Iterable[Term]) -> set[str]:
        used = {term.name for term in outputs}
        used.update(name for _, x, y in self.checks for name in (x, y))
        for k in reversed(range(len(self.lines))):
            if f"#{k}" in used:
                used.update(self.lines[k][1])
        return used


def shown(value: fmpq) -> str:
    """A rational as a decimal if it is a short one, else as a quotient."""
    p, q = int(value.p), int(value.q)
    for places in range(1, 20):
        if q == 1 or 10**places % q:
            continue
        digits = str(abs(p) * (10**places // q)).rjust(places + 1, "0")
        return f"{'-' if p < 0 else ''}{digits[:-places]}.{digits[-places:]}"
    return str(p) if q == 1 else f"{p}/{q}"


def exact_root(value: fmpq) -> fmpq | None:
    """The square root where it is rational."""
    if value < 0:
        return None
    p, q = (math.isqrt(int(part)) for part in (value.p, value.q))
    return fmpq(p, q) if p * p == value.p and q * q == value.q else None


def _unary(name: str) -> Callable[[Term], Term]:
    return lambda self: self.tape.apply(name, lambda: getattr(self.ball, name)(), None, self)


class Term:
    """A ball, or an exact rational, with the line that computes it."""

    __slots__ = ("_ball", "constant", "exact", "name", "tape")
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self, tape: Tape, name: str, ball: arb | None, exact: fmpq | None, constant: bool = False
    ) -> None:
        if exact is not None and exact.height_bits() > MOST_BITS:
            ball, exact = arb(exact), None
        self.tape, self.name, self.exact, self.constant = tape, name, exact, constant
        self._ball = ball

    @property
    def ball(self) -> arb:
        """The enclosure at the working precision."""
        return self._ball if self._ball is not None else arb(self.exact)

    exp, log, log1p, expm1, tanh = map(_unary, ("exp", "log", "log1p", "expm1", "tanh"))
    sin, cos, tan, asin, acos, atan = map(_unary, ("sin", "cos", "tan", "asin", "acos", "atan"))
    sinh, cosh, asinh, acosh, atanh = map(_unary, ("sinh", "cosh", "asinh", "acosh", "atanh"))
    erf, erfc, gamma, lgamma = map(_unary, ("erf", "erfc", "gamma", "lgamma"))

    def sqrt(self) -> Term:
        root = None if self.exact is None else exact_root(self.exact)
        ball = self.ball if self.exact is not None else self.ball.nonnegative_part()
        return self.tape.apply("sqrt", ball.sqrt, root, self)

    def rsqrt(self) -> Term:
        return 1 / self.sqrt()

    def _binary(
        self, name: str, x: Any, y: Any, work: Callable[[Any, Any], Any], *, real: bool = False
    ) -> Any:
        if not isinstance(y, (Term, arb, int, fmpz)) or not isinstance(x, (Term, arb, int, fmpz)):
            return NotImplemented
        left, right = self.tape.lifted(x), self.tape.lifted(y)
        p, q = left.exact, right.exact
        unknown = p is None or q is None or real or (name == "div" and q == 0)
        exact = None if unknown else work(p, q)
        return self.tape.apply(name, lambda: work(left.ball, right.ball), exact, left, right)

    def __add__(self, other: Any) -> Any:
        if _is(other, 0):
            return self
        return self._binary("add", self, other, lambda x, y: x + y)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        if _is(other, 0):
            return self
        return self._binary("sub", self, other, lambda x, y: x - y)

    def __rsub__(self, other: Any) -> Any:
        if _is(other, 0):
            return -self
        return self._binary("sub", other, self, lambda x, y: x - y)

    def __mul__(self, other: Any) -> Any:
        if _is(other, 1):
            return self
        if _is(other, 0) and self.is_finite():
            return self.tape.number(fmpq(0))
        if self.constant and isinstance(other, Term) and not other.constant:
            return other * self
        return self._binary("mul", self, other, lambda x, y: x * y)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return self if _is(other, 1) else self._binary("div", self, other, lambda x, y: x / y)

    def __rtruediv__(self, other: Any) -> Any:
        return self._binary("div", other, self, lambda x, y: x / y)

    def __neg__(self) -> Term:
        exact = None if self.exact is None else -self.exact
        return self.tape.apply("neg", lambda: -self.ball, exact, self)

    def __abs__(self) -> Term:
        exact = None if self.exact is None else abs(self.exact)
        return self.tape.apply("abs", lambda: abs(self.ball), exact, self)

    def atan2(self, other: Any) -> Any:
        return self._binary("atan2", self, other, lambda x, y: arb.atan2(arb(x), arb(y)), real=True)

    def gamma_lower(self, a: Any, regularized: int = 1) -> Any:
        """The regularised incomplete gamma function P(a, x)."""
        return self._binary("gammap", a, self, lambda a, x: _incomplete(a, x)[0], real=True)

    def gamma_upper(self, a: Any, regularized: int = 1) -> Any:
        """The other one, Q(a, x) = 1 - P(a, x)."""
        return self._binary("gammaq", a, self, lambda a, x: _incomplete(a, x)[1], real=True)

    def max(self, other: Any) -> Term:
        return self._extreme("max", other, max, arb.max)

    def min(self, other: Any) -> Term:
        return self._extreme("min", other, min, arb.min)

    def _extreme(self, name: str, other: Any, exactly: Any, on_balls: Any) -> Term:
        y = self.tape.lifted(other)
        if y.name == self.name or y.name == _NEUTRAL[name]:
            return self
        if self.name == _NEUTRAL[name]:
            return y
        exact = None if self.exact is None or y.exact is None else exactly(self.exact, y.exact)
        return self.tape.apply(name, lambda: on_balls(self.ball, y.ball), exact, self, y)

    def union(self, other: Any) -> Term:
        """One of two numbers, where no one knows which."""
        y = self.tape.lifted(other)
        return self.tape.apply("either", lambda: self.ball.union(y.ball), None, self, y)

    def nonnegative_part(self) -> Term:
        """The same number: whoever runs the program finds its sign again."""
        return self

    def floor(self) -> Term:
        return self._whole(lambda ball: ball.floor())

    def ceil(self) -> Term:
        return self._whole(lambda ball: ball.ceil())

    def _whole(self, rounded: Callable[[arb], arb]) -> Term:
        found = rounded(self.ball)
        if not found.is_exact():
            return self.tape.apply("either", lambda: found, None, found.lower(), found.upper())
        self.tape.check("<", found - 1, self)
        self.tape.check("<", self, found + 1)
        return self.tape.constant(found)

    def sgn(self) -> Term:
        sign = self.ball.sgn()
        if sign.is_exact():
            self.tape.check({-1: "<", 0: "=", 1: ">"}[int(float(sign.mid()))], self, 0)
            return self.tape.constant(sign)
        return self.tape.number(fmpq(-1)).union(1)

    def _compared(self, other: Any, relation: str, work: Callable[[Any, Any], bool]) -> bool:
        y = self.tape.lifted(other)
        if y.name == self.name:
            return work(0, 0)
        exact = self.exact is not None and y.exact is not None
        found = bool(work(self.exact, y.exact) if exact else work(self.ball, y.ball))
        if found:
            self.tape.check(relation, self, y)
        return found

    def __lt__(self, other: Any) -> bool:
        return self._compared(other, "<", lambda x, y: x < y)

    def __gt__(self, other: Any) -> bool:
        return self._compared(other, ">", lambda x, y: x > y)

    def __le__(self, other: Any) -> bool:
        return self._compared(other, "<=", lambda x, y: x <= y)

    def __ge__(self, other: Any) -> bool:
        return self._compared(other, ">=", lambda x, y: x >= y)

    def __eq__(self, other: object) -> bool:
        return self._compared(other, "=", lambda x, y: x == y)

    def overlaps(self, other: Any) -> bool:
        """Whether two numbers may be equal; that they are not is written down."""
        y = self.tape.lifted(other)
        if self.exact is not None and y.exact is not None:
            meet = self.exact == y.exact
        else:
            meet = self.ball.overlaps(y.ball)
        if not meet:
            self.tape.check("!=", self, y)
        return meet

    def is_exact(self) -> bool:
        return self.exact is not None or self.ball.is_exact()

    def is_finite(self) -> bool:
        return self.exact is not None or self.ball.is_finite()

    def is_nan(self) -> bool:
        return self.exact is None and self.ball.is_nan()

    def is_integer(self) -> bool:
        return self.ball.is_integer()

    def contains(self, other: Any) -> bool:
        return self.ball.contains(other)

    def lower(self) -> arb:
        raise NotImplementedError("its outcome has no line in a program of real numbers")

    upper = lower

    def mid(self) -> arb:
        return self.ball.mid()

    def unique_fmpz(self) -> Any:
        return self.ball.unique_fmpz()

    def str(self, *options: Any, **more: Any) -> str:
        return self.ball.str(*options, **more)


_NEUTRAL = {"max": "-inf", "min": "inf"}


def _incomplete(a: Any, x: Any) -> tuple[arb, arb]:
    return arb(x).gamma_lower(arb(a), regularized=1), arb(x).gamma_upper(arb(a), regularized=1)


def eigenvalues_of_terms(
    matrix: Any, tape: Tape, eigenvalues: Callable[[Any], Sequence[arb]]
) -> list[Term]:
    """The eigenvalues of a symmetric matrix of terms, smallest first: each is one line."""
    terms = [[tape.lifted(x) for x in row] for row in matrix]
    if len(terms) == 1:
        return terms[0]
    lower = [x for k, row in enumerate(terms) for x in row[: k + 1]]
    found = eigenvalues(np.array([[x.ball for x in row] for row in terms], dtype=object))

    def line(k: int, ball: arb) -> Term:
        return tape.apply("eigenvalue", lambda: ball, None, k, *lower)

    return [line(k, ball) for k, ball in enumerate(found)]


def _is(value: Any, number: int) -> bool:
    if isinstance(value, Term):
        return value.constant and value.exact == number
    return isinstance(value, (int, arb)) and not isinstance(value, bool) and arb(value) == number
