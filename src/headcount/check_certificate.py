"""Check a portable certificate: `python check_certificate.py FILE`; it needs python-flint alone.

A certificate holds a domain, a point, hypotheses and both sides of an inequality as a program over
the real numbers, one operation a line. This file proves, in exact rationals and in balls, that the
point lies in the domain, that every hypothesis holds there, and that the left side exceeds the
right. It does not know whether the program is what the words of the statement say: compare them.
Exit code 0: proved; 1: refused; 2: not a certificate.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import re
import sys
from fractions import Fraction
from operator import mul
from typing import Any

import flint
from flint import arb, fmpq

PRECISIONS = (128, 256, 512, 1024, 2048)
MOST_BYTES, MOST_LINES, MOST_BITS = 10**7, 50_000, 4_000
AGREEMENT, MOST_GAMMA = fmpq(1, 10**12), 10**4  # of larger operands gamma may take for ever
SHORT, LISTED = 600, 60  # characters of a formula, and lines of a program, that are still shown
NUMBER = re.compile(r"-?\d{1,2000}(\.\d{1,2000})?(e-?\d{1,3})?(/[1-9]\d{0,2000})?", re.ASCII)
KEYS = {"format", "version", "statement", "domain", "sizes", "fixed", "point", "program"}
KEYS |= {"hypotheses", "relation", "entry", "lhs", "rhs", "seen", "fingerprint"}


class Refused(ArithmeticError):
    """Something in the file is not so."""


class NoCertificate(ValueError):
    """The file is of no such format."""


def fingerprint(content: dict[str, Any]) -> str:
    """Of everything but the statement's words: it finds damage, not forgery."""
    rest = {k: v for k, v in content.items() if k not in ("statement", "fingerprint")}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def number(text: Any) -> fmpq:
    """An exact decimal or rational."""
    if not isinstance(text, str) or not NUMBER.fullmatch(text):
        raise NoCertificate(f"{text!r} is no number")
    top, _, below = text.partition("/")
    value = Fraction(top) / int(below or 1)
    return fmpq(value.numerator, value.denominator)


def _rows(values: list[fmpq], shape: list[int], batch: int) -> list[list[fmpq]]:
    size = math.prod(shape[batch:])
    return [values[k : k + size] for k in range(0, len(values), size)]


def _dot(x: list[fmpq], y: list[fmpq]) -> fmpq:
    return sum(map(mul, x, y), fmpq(0))


def _orthonormal(a: list[list[fmpq]]) -> bool:
    pairs = itertools.product(enumerate(a), repeat=2)
    return all(_dot(x, y) == int(i == j) for (i, x), (j, y) in pairs)


def _semidefinite(a: list[list[fmpq]]) -> bool:
    """Symmetric elimination: no pivot is negative, and below a pivot of zero all is zero."""
    for k in range(len(a)):
        column = [row[k] for row in a[k:]]
        if column != a[k][k:] or column[0] < 0 or (column[0] == 0 and max(map(abs, column)) > 0):
            return False
        for i in range(k + 1, len(a)) if column[0] > 0 else ():
            factor = a[i][k] / column[0]
            a[i] = [x - factor * y for x, y in zip(a[i], a[k], strict=True)]
    return True


def inside(values: list[fmpq], shape: list[int], where: dict[str, Any]) -> bool:
    """Whether an array lies in its space."""
    has = {key: number(where[key]) for key in ("radius", "low", "high") if key in where}
    rows = _rows(values, shape, where.get("batch", 0))
    vectors = _rows(values, shape, len(shape) - 1)
    square, radius = len(shape) == 2 and shape[0] == shape[1], has.get("radius", fmpq(-1))
    tests = {
        "reals": lambda: True,
        "positive": lambda: all(x > 0 for x in values),
        "fraction": lambda: all(0 < x < 1 for x in values),
        "box": lambda: all(has["low"] <= x <= has["high"] for x in values),
        "integers": lambda: all(x.q == 1 and has["low"] <= x <= has["high"] for x in values),
        "signs": lambda: all(abs(x) == 1 for x in values),
        "ball": lambda: all(_dot(row, row) <= radius * abs(radius) for row in rows),
        "sphere": lambda: all(_dot(row, row) == radius * abs(radius) for row in rows),
        "simplex": lambda: min(values) >= 0 and all(sum(row, fmpq(0)) == 1 for row in vectors),
        "orthogonal": lambda: square and _orthonormal(vectors),
        "semidefinite": lambda: square and _semidefinite(vectors),
    }
    if where["in"] not in tests:
        raise NoCertificate(f"no space is called {where['in']!r}")
    return tests[where["in"]]()


def point_of(content: dict[str, Any]) -> dict[str, fmpq]:
    """The coordinates by name, after the domain was checked."""
    domain, sizes, known = content["domain"], content["sizes"], {}
    for name, (value, low, high) in sizes.items():
        if not all(type(k) is int for k in (value, low, high)) or not low <= value <= high:
            raise Refused(f"the size {name} = {value} is not from {low} to {high}")
    if set(content["point"]) != set(domain):
        raise NoCertificate("point and domain have other variables")
    for name, where in domain.items():
        if not name.isidentifier() or name == "inf":  # one called 1 would be read for the number
            raise NoCertificate(f"{name!r} is no name of a variable")
        shape, axes, batch = where["shape"], where["axes"], where.get("batch", 0)
        if type(batch) is not int or not 0 <= batch <= len(shape):
            raise NoCertificate(f"{name} has {len(shape)} axes, not {batch}")
        for axis, size in zip(axes, shape, strict=True):
            if type(size) is not int or size < 1 or sizes.get(axis, [size])[0] != size:
                raise Refused(f"{name} has {size} entries along {axis or 'an axis'}")
        values = [number(text) for text in content["point"][name]]
        if len(values) != math.prod(shape):
            raise Refused(f"{name} has {len(values)} numbers for the shape {shape}")
        if not inside(values, shape, where):
            raise Refused(f"{name} is not in its space: {described(where)}")
        for place, value in zip(itertools.product(*map(range, shape)), values, strict=True):
            known[f"{name}[{','.join(map(str, place))}]" if shape else name] = value
    return known


Value = tuple[Any, bool]  # an exact rational or a ball, and whether it cannot be negative
UNARY = {"exp", "log", "log1p", "expm1", "tanh", "sin", "cos", "tan", "asin", "acos", "atan"}
UNARY |= {"sinh", "cosh", "asinh", "acosh", "atanh", "erf", "erfc", "gamma", "lgamma"}
POSITIVE, ODD = {"exp", "cosh", "erfc", "acos", "acosh"}, {"tanh", "erf"}
PAIRS = ("add", "sub", "mul", "div", "max", "min", "either", "near", "atan2", "gammap", "gammaq")
COUNTS = dict.fromkeys(PAIRS, 2)


def ball_if_long(x: Any) -> Any:
    return arb(x) if isinstance(x, fmpq) and x.height_bits() > MOST_BITS else x


def ball(x: Any) -> arb:
    return x if isinstance(x, arb) else arb(x)


def apply(name: str, values: list[Value], same: bool) -> Value:
    """One operation; `same` says that both operands are the same line."""
    (x, above), (y, other) = values[0], values[-1]
    if len(values) == 2 and (isinstance(x, arb) or isinstance(y, arb)):
        x, y = ball(x), ball(y)
    if name == "near":
        return arb(x) + arb(0, 1) * arb(y), bool(x >= y >= 0)
    if name == "add":
        return ball_if_long(x + y), above and other
    if name == "sub":
        return (fmpq(0) if same and ball(x).is_finite() else ball_if_long(x - y)), same
    if name == "mul":
        product = ball_if_long(x * y)
        product = product.nonnegative_part() if same and isinstance(product, arb) else product
        return product, same or (above and other)
    if name == "div":
        return (ball_if_long(x / y) if y != 0 else arb.nan()), above and other
    if name == "max":
        return (max(x, y) if isinstance(x, fmpq) else x.max(y)), above or other
    if name == "min":
        return (min(x, y) if isinstance(x, fmpq) else x.min(y)), above and other
    if name == "either":
        return ball(x).union(ball(y)), above and other
    if name == "neg":
        return -x, False
    if name == "abs":
        return (abs(x) if isinstance(x, fmpq) else abs(x).nonnegative_part()), True
    if name == "sqrt":
        return _root(x, above), True
    if name == "atan2":
        return arb.atan2(ball(x), ball(y)), False
    if name in ("gammap", "gammaq"):  # the regularised incomplete gamma functions
        method = arb.gamma_lower if name == "gammap" else arb.gamma_upper
        sound = 0 < x <= MOST_GAMMA and 0 <= y <= MOST_GAMMA
        return (method(ball(y), ball(x), regularized=1) if sound else arb.nan()), True
    if name == "eigenvalue" and isinstance(x, fmpq) and x.q == 1:
        return eigenvalue(int(x.p), [ball(value) for value, _ in values[1:]]), False
    if name in UNARY:
        return getattr(ball(x), name)(), name in POSITIVE or (above and name in ODD)
    raise NoCertificate(f"no operation is called {name!r}")


def eigenvalue(k: int, lower: list[arb]) -> arb:
    """The k-th smallest eigenvalue of a symmetric matrix, of which the lower half is given."""
    size = (math.isqrt(8 * len(lower) + 1) - 1) // 2
    if size * (size + 1) != 2 * len(lower) or not 0 <= k < size:
        raise NoCertificate(f"{len(lower)} numbers are no matrix with an eigenvalue {k}")
    tiny = arb(2) ** (-flint.ctx.prec // 3)
    matrix, off = flint.arb_mat(size, size), size * tiny
    for i, j in itertools.product(range(size), repeat=2):
        x = lower[max(i, j) * (max(i, j) + 1) // 2 + min(i, j)]
        matrix[i, j] = x.mid() + (i == j) * i * tiny / size
        off += x.rad()
    try:  # by Weyl's inequality: the radii, and what draws equal ones apart, move none further
        found = [value.real + arb(0, 1) * off for value in matrix.eig(multiple=True)]
    except ValueError:  # more digits are needed
        return arb.nan()
    low, high = sorted(x.lower() for x in found)[k], sorted(x.upper() for x in found)[k]
    return low.union(high) if off.is_finite() else arb.nan()


def _root(x: Any, above: bool) -> Any:
    if isinstance(x, fmpq) and x >= 0:
        root = fmpq(*(math.isqrt(int(part)) for part in (x.p, x.q)))
        if root * root == x:
            return root
    x = ball(x)
    return (x.nonnegative_part() if above and x.contains(0) and not x.is_exact() else x).sqrt()


def compare(x: Any, relation: str, y: Any) -> bool | None:
    """A relation of two numbers; None where their balls leave it open."""
    if isinstance(x, arb) or isinstance(y, arb):
        x, y = ball(x), ball(y)
    if relation in (">", ">="):
        x, y, relation = y, x, relation.replace(">", "<")
    if relation == "<":
        return True if x < y else (False if x >= y else None)
    if relation == "<=":
        return True if x <= y else (False if x > y else None)
    equal = True if x == y else (False if x < y or x > y else None)
    if relation in ("=", "!="):
        return None if equal is None else equal == (relation == "=")
    raise NoCertificate(f"no relation is called {relation!r}")


class Program:
    """The lines of a certificate, run at one precision after another."""

    def __init__(self, content: dict[str, Any], point: dict[str, fmpq]) -> None:
        self.point, self.steps, self.checks = point, list[Any](), list[Any]()
        lines = content["program"]
        if not isinstance(lines, list) or len(lines) > MOST_LINES:
            raise NoCertificate(f"its program is no list of at most {MOST_LINES} lines")
        for line in lines:
            words = line.split(" ") if isinstance(line, str) else []
            if len(words) == 4 and words[0] == "check":
                self.checks.append((words[1], words[2], words[3]))
            elif len(words) > 2 and words[:2] == [f"#{len(self.steps)}", "="]:
                if words[2] != "eigenvalue" and len(words) != 3 + COUNTS.get(words[2], 1):
                    raise NoCertificate(f"{line!r} is no operation")
                self.steps.append((words[2], words[3:]))
            else:
                raise NoCertificate(f"{line!r} is no line of a program")
        used = {content["lhs"], content["rhs"], *(x for check in self.checks for x in check)}
        used |= {h[part] for h in content["hypotheses"] for part in ("value", "threshold")}
        used |= {name for _, operands in self.steps for name in operands}
        if lost := {f"#{k}" for k in range(len(self.steps))} - used:
            raise Refused(f"nothing takes {lost}: a line was lost or changed")

    def run(self) -> dict[str, Value]:
        """The value of every line, at the working precision."""
        known: dict[str, Value] = {name: (x, x >= 0) for name, x in self.point.items()}
        for k, (name, operands) in enumerate(self.steps):
            values = [read(operand, known) for operand in operands]
            known[f"#{k}"] = apply(name, values, operands[0] == operands[-1])
        return known


def read(name: Any, known: dict[str, Value]) -> Value:
    """A line, a coordinate or a number."""
    if name in known or name in ("inf", "-inf"):
        return known[name] if name in known else (arb(name), name == "inf")
    if isinstance(name, str) and re.match(r"[A-Za-z_#]", name):
        raise Refused(f"{name} is used before it is known")
    return (exact := number(name)), exact >= 0


def decide(content: dict[str, Any], known: dict[str, Value], checks: list[Any]) -> str | None:
    """What is still open; None when all is proved. What is wrong is refused."""
    for left, relation, right in checks:
        found = compare(read(left, known)[0], relation, read(right, known)[0])
        if found is None:
            return f"{left} {relation} {right}"
        if not found:
            raise Refused(f"a decision of the program does not hold: {left} {relation} {right}")
    stated = [(h["name"], h["value"], h["threshold"], h["seen"], "<=", True)
              for h in content["hypotheses"]]  # fmt: skip
    sides = content["lhs"], content["rhs"], content["seen"], content["relation"], False
    for name, left, right, seen, relation, wanted in (*stated, ("both sides", *sides)):
        pair = read(left, known)[0], read(right, known)[0]
        found = compare(pair[0], relation, pair[1])
        if found is None:
            return name
        if found != wanted:
            raise Refused(f"{name}: {shown(pair[0])} {relation} {shown(pair[1])} is {found}")
        said = [number(text) for text in seen]
        for value, one in zip(pair, said, strict=True):
            # To twelve digits; where a ball is wider, to twelve digits of the larger of the pair.
            sizes = (max(abs(one), AGREEMENT), max(*map(abs, said), AGREEMENT))
            off = [compare(abs(ball(value) - arb(one)), ">", AGREEMENT * size) for size in sizes]
            wrong = off[0] if off[0] is not None else off[1]
            if wrong is None:
                return f"the numbers of {name}"
            if wrong:
                raise Refused(f"{name}: the file states {one}, the program gives {shown(value)}")
    return None


def shown(x: Any) -> str:
    """A number for a reader."""
    return str(x) if isinstance(x, fmpq) and len(str(x)) < 20 else ball(x).str(15, radius=False)


def printable(line: str) -> str:
    """One line, whatever the file has in it: no name of a hypothesis may look like a sentence."""
    return "".join(c if c.isprintable() else "?" for c in line)


def described(where: dict[str, Any]) -> str:
    """A space in words."""
    keys = ("radius", "low", "high", "batch")
    return ", ".join([where["in"], *(f"{key} {where[key]}" for key in keys if where.get(key))])


def formulas(program: Program) -> dict[str, str]:
    """Each line as a formula; a long one is its number alone."""
    known: dict[str, str] = {}
    for k, (name, operands) in enumerate(program.steps):
        parts = [known.get(operand, operand) for operand in operands]
        sign = {"add": " + ", "sub": " - ", "mul": " * ", "div": " / "}.get(name)
        text = f"({sign.join(parts)})" if sign else f"{name}({', '.join(parts)})"
        known[f"#{k}"] = text if len(text) <= SHORT else f"#{k}"
    return known


def check(content: Any) -> list[str]:
    """What is proved, in sentences; `Refused` or `NoCertificate` where it is not."""
    if not isinstance(content, dict) or content.get("format") != "headcount-program":
        raise NoCertificate("it is no portable certificate")
    ours = content.get("version") == 1 and set(content) == KEYS
    if not ours or content["relation"] not in ("<=", "="):
        raise NoCertificate("it is of another version, or has other entries")
    if content["fingerprint"] != fingerprint(content):
        raise Refused("it is damaged: its fingerprint is another")
    program, still = Program(content, point_of(content)), None
    for bits in PRECISIONS:
        with flint.ctx.workprec(bits):
            known = program.run()
            if (still := decide(content, known, program.checks)) is None:
                return [*sentences(content, program, known), f"in balls of {bits} bits."]
    raise Refused(f"not decided at {PRECISIONS[-1]} bits: {still}")


def sentences(content: dict[str, Any], program: Program, known: dict[str, Value]) -> list[str]:
    """The theorem that was proved."""
    value = lambda name: shown(read(name, known)[0])  # noqa: E731
    left, right, relation = content["lhs"], content["rhs"], content["relation"]
    lines = [f"Not checked: that the program says: {content['statement'].get('words', '')}"]
    lines += ["Proved:", *(f"  size {n} = {v[0]}" for n, v in content["sizes"].items())]
    lines += [f"  fixed {name} = {given}" for name, given in content["fixed"].items()]
    for name, where in content["domain"].items():
        values = content["point"][name]
        more = ", ..." if len(values) > 8 else ""
        lines.append(f"  {name} = [{', '.join(values[:8])}{more}] lies in: {described(where)}")
    for h in content["hypotheses"]:
        lines.append(f"  hypothesis {h['name']}: {value(h['value'])} <= {value(h['threshold'])}")
    lines.append(f"  left side {value(left)} {'<>' if relation == '=' else '>'} {value(right)}")
    written = formulas(program)
    short = [written.get(side, side) for side in (left, right)]
    if any(side.startswith("#") for side in short) and len(content["program"]) <= LISTED:
        lines += [f"    {line}" for line in content["program"]]
    lines += [f"  left side = {short[0]}", f"  right side = {short[1]}"]
    return list(map(printable, lines))


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON in which no name stands twice: it would be read in two ways."""
    if len(found := dict(pairs)) < len(pairs):
        raise NoCertificate("a name stands in it twice")
    return found


def main(arguments: list[str]) -> int:
    """The command line."""
    try:
        with open(arguments[0], "rb") as file:
            text = file.read(MOST_BYTES)  # a longer file is no JSON
        print("\n".join(check(json.loads(text, object_pairs_hook=_once))))
        return 0
    except Refused as error:
        print(printable(f"refused: {error}"))
        return 1
    except (ArithmeticError, AttributeError, OSError, LookupError, RecursionError, TypeError,
            ValueError) as error:  # fmt: skip
        print(f"not a certificate: {error!r}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
