"""Guesses of what a number is: products of roots, algebraic numbers, sums of a few constants.

A guess counts only where it explains many more digits than it has itself.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import mpmath

LEAST_DIGITS = 15
"""A number of fewer known digits is not looked at."""
_SPARE = 8
"""So many digits more than a formula's own numbers have must agree with it."""
_FACTORS = ("2", "3", "5", "7", "pi", "e", "ln 2")
_SUMS = (("sqrt 2",), ("sqrt 3",), ("sqrt 5",), ("pi",), ("e",), ("1/e",), ("ln 2",), ("1/pi",),
         ("erf 1", "1/(e sqrt pi)"), ("pi", "ln 2"), ("sqrt 2", "sqrt 3"))  # fmt: skip
_DEGREE, _LARGEST = 4, 2000


class ClosedForm(NamedTuple):
    """A formula, and to how many digits the number agrees with it."""

    text: str
    digits: int


def closed_form(value: str, digits: int) -> ClosedForm | None:
    """What a decimal may be, of which so many digits are known; None where nothing simple is.

    >>> closed_form("0.7698003589195010193455317073359127", 30)
    ClosedForm(text='4/(3 sqrt 3)', digits=30)
    """
    if digits < LEAST_DIGITS:
        return None
    mp = mpmath.mp.clone()
    mp.dps = digits + 15
    x = mp.mpf(value)
    if not x > 0:
        return None
    for text, formula, size in _guesses(mp, x, digits):
        apart = abs(formula / x - 1)
        agree = digits if apart == 0 else min(digits, int(-mp.log10(apart)))
        if agree >= digits - 2 and size + _SPARE <= agree:
            return ClosedForm(text, agree)
    return None


def _guesses(mp: Any, x: Any, digits: int) -> Iterator[tuple[str, Any, float]]:
    """Formulas with their values, and how many digits their own numbers have."""
    search = functools.partial(mp.pslq, tol=mp.mpf(10) ** (3 - digits), maxsteps=20_000)
    known = _constants(mp)
    ratio = search([x, mp.mpf(1)], maxcoeff=_LARGEST)
    if ratio:
        found = Fraction(-ratio[1], ratio[0])
        yield str(found), mp.mpf(found.numerator) / found.denominator, _size(ratio)
        return
    for names in (("2", "3", "5"), ("2", "3", "pi", "e"), ("2", "3", "5", "ln 2"), _FACTORS):
        found = search([mp.log(x), *(mp.log(known[name]) for name in names)], maxcoeff=60)
        if found and found[0]:
            powers = {n: Fraction(-k, found[0]) for n, k in zip(names, found[1:], strict=True)}
            made = mp.fprod(mp.root(known[n], p.denominator) ** p.numerator
                            for n, p in powers.items())  # fmt: skip
            yield _product(powers), made, _size(found)
    for sum_of in _SUMS:
        parts = [mp.mpf(1), *(known[name] for name in sum_of)]
        found = search([x, *parts], maxcoeff=_LARGEST)
        if found and found[0]:
            shares = [Fraction(-k, found[0]) for k in found[1:]]
            made = mp.fsum(part * s.numerator / s.denominator
                           for part, s in zip(parts, shares, strict=True))  # fmt: skip
            yield _sum(shares, ["", *sum_of]), made, _size(found)
    for degree in range(2, _DEGREE + 1):
        found = search([x**k for k in range(degree + 1)], maxcoeff=_LARGEST)
        if found and found[-1]:
            coefficients = [k if found[-1] > 0 else -k for k in reversed(found)]
            made = _root_near(mp, coefficients, x)
            if made is None:
                continue  # a double root: its square says the same of half the digits
            yield f"the root {mp.nstr(x, 6)} of {_polynomial(coefficients)}", made, _size(found)


def _root_near(mp: Any, coefficients: Sequence[int], x: Any) -> Any | None:
    """The simple root of a polynomial (highest power first) that begins with the digits of x."""
    degree = len(coefficients) - 1
    for _ in range(3):
        terms = [k * x ** (degree - j) for j, k in enumerate(coefficients)]
        steep = mp.fsum(term * (degree - j) for j, term in enumerate(terms))
        if abs(steep) < mp.mpf(10) ** -6 * max(map(abs, terms)):
            return None
        x = x * (1 - mp.fsum(terms) / steep)
    return x


def _constants(mp: Any) -> dict[str, Any]:
    known = {name: mp.mpf(name) for name in ("2", "3", "5", "7")}
    known |= {f"sqrt {k}": mp.sqrt(k) for k in (2, 3, 5)}
    known |= {"pi": +mp.pi, "e": +mp.e, "ln 2": +mp.ln2, "1/e": 1 / mp.e, "1/pi": 1 / mp.pi}
    return known | {"erf 1": mp.erf(1), "1/(e sqrt pi)": 1 / (mp.e * mp.sqrt(mp.pi))}


def _size(relation: Sequence[int]) -> float:
    return sum(len(str(abs(k))) for k in relation if k)


def _product(powers: dict[str, Fraction]) -> str:
    """Whole numbers before roots, above and below the line: 4/(3 sqrt 3)."""
    above, below = (_factors(powers, sign) for sign in (1, -1))
    top = " ".join(above) or "1"
    if not below:
        return top
    return f"{top}/({' '.join(below)})" if len(below) > 1 else f"{top}/{below[0]}"


def _factors(powers: dict[str, Fraction], sign: int) -> list[str]:
    """What stands on one side of the line: numbers, then names, then roots."""
    number, parts, radicands = 1, list[str](), dict[int, list[str]]()
    whole_radicands: dict[int, int] = {}
    for name, power in powers.items():
        if power * sign <= 0:
            continue
        whole, rest = divmod(abs(power), 1)
        if name.isdigit():
            number *= int(name) ** int(whole)
            if rest:
                own = int(name) ** rest.numerator
                whole_radicands[rest.denominator] = whole_radicands.get(rest.denominator, 1) * own
            continue
        parts += [_power(name, int(whole))] if whole else []
        if rest:
            radicands.setdefault(rest.denominator, []).append(_power(name, rest.numerator))
    for degree in sorted({*radicands, *whole_radicands}):
        inside = [str(whole_radicands[degree])] if degree in whole_radicands else []
        inside += radicands.get(degree, [])
        text = f"({' '.join(inside)})" if len(inside) > 1 or "^" in inside[0] else inside[0]
        parts.append(f"sqrt {text}" if degree == 2 else f"{text}^(1/{degree})")
    return [*([str(number)] if number > 1 else []), *parts]


def _power(name: str, power: int) -> str:
    if power == 1:
        return name
    return f"({name})^{power}" if " " in name else f"{name}^{power}"


def _sum(shares: Sequence[Fraction], names: Sequence[str]) -> str:
    terms = []
    for share, name in zip(shares, names, strict=True):
        if share:
            size = "" if abs(share) == 1 and name else str(abs(share))
            terms.append(("- " if share < 0 else "+ ") + f"{size} {name}".strip())
    return " ".join(terms).removeprefix("+ ")


def _polynomial(coefficients: Sequence[int]) -> str:
    powers = itertools.count(len(coefficients) - 1, -1)
    terms = []
    for k, power in zip(coefficients, powers, strict=False):
        if k:
            size = "" if abs(k) == 1 and power else str(abs(k))
            unknown = "" if power == 0 else "x" if power == 1 else f"x^{power}"
            terms.append(("- " if k < 0 else "+ ") + f"{size} {unknown}".strip())
    return " ".join(terms).removeprefix("+ ")
