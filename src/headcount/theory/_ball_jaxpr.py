"""A JAX function in ball arithmetic: its jaxpr, evaluated on enclosures.

The arguments are exact float64 values. A constant of the program is taken as exact when it is an
integer or has at most `SHORT_BITS` significant bits (0.5, 1e6, 2^-30); any other constant (0.1,
sqrt(2) computed by Python, an array that the function closes over) stands for a real number that
was rounded, and is widened by `ulps` units in its last place. The enclosure then contains the
value of the function in exact arithmetic, provided that no constant is further off than that.

A condition that the enclosures leave open makes `select_n` and `cond` give the hull of their
cases; a `while` loop, an index or a sort with companions that need the answer raise `Undecided`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from flint import arb
from jax.extend.core import Literal

from ..core import BadArgument, check_count, float64
from . import _ball_array as arrays
from . import _ball_elementwise, _ball_indexing, _ball_linalg, _ball_structure
from ._ball_value import Equation, Rule, Value, fitted, kind_of
from ._balls import UNKNOWN, Undecided, at_precision
from ._program import CALLS, called_program, rounded_constants

MOST_STEPS = 100_000
"""A `while` loop that has not ended after this many steps is given up."""

ULPS = 4
"""How far off a constant may be. One rounding costs half a unit, but Python computes constants
such as sqrt(2 log(2n/delta)/m) in several steps; those of our claims are off by up to 1.3."""

RULES = {
    **_ball_elementwise.RULES,
    **_ball_structure.RULES,
    **_ball_indexing.RULES,
    **_ball_linalg.RULES,
}

Lifted = Callable[[arb], Any]

_MISUNDERSTOOD = (
    *(ArithmeticError, AssertionError, AttributeError, LookupError),
    *(RecursionError, TypeError, ValueError),
)
"""What a rule raises that meets an equation of another form than it knows."""


class Unsupported(NotImplementedError):
    """The program uses a primitive that cannot be enclosed."""


class BallProgram:
    """A JAX function on fixed arguments, traced once, evaluated at any precision."""

    def __init__(self, function: Callable[..., Any], *arguments: Any, ulps: int = ULPS) -> None:
        check_count("ulps", ulps, least=0)
        self.ulps = ulps
        self._leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(arguments)]
        for leaf in self._leaves:
            if leaf.dtype.kind == "f" and not np.all(np.isfinite(leaf)):
                raise BadArgument("argument", leaf, "is not finite", fix="give finite values")
        with float64():
            self._closed, shape = jax.make_jaxpr(function, return_shape=True)(*arguments)
        for value, _ in rounded_constants(self._closed):
            raise Unsupported(f"the constant {value!r} has passed through float32")
        self._tree = jax.tree.structure(shape)

    def on_terms(self, bits: int, terms: Sequence[arrays.Balls], lifted: Lifted) -> Any:
        """The result on terms (`_term.py`), whose constants `lifted` makes of balls."""
        return self.run(bits, terms, lifted)[0]

    def __call__(self, bits: int, boxes: Sequence[arrays.Balls] | None = None) -> Any:
        """The function's result with enclosures in place of arrays, at `bits` bits.

        `boxes` are arrays of balls to take in place of the arguments' leaves.
        """
        return self.run(bits, boxes)[0]

    def run(
        self,
        bits: int,
        boxes: Sequence[arrays.Balls] | None = None,
        lifted: Lifted | None = None,
    ) -> tuple[Any, bool]:
        """The same, and whether the function may jump on the boxes, or hides its slope there.

        A scalar is an `arb`, an array a NumPy object array of them; integers that are known are
        NumPy integers, booleans are FALSE, UNKNOWN or TRUE.
        """
        with at_precision(bits), np.errstate(all="ignore"):
            run = _Interpreter(self.ulps, lifted)
            constants = [run.constant(value) for value in self._closed.consts]
            inputs = [_constant(leaf, 0) for leaf in self._leaves]
            if boxes is not None:
                inputs = [Value(box) for box in boxes]
            values = run.evaluate(self._closed.jaxpr, constants, inputs)
        _check_enclosed(values)
        found = jax.tree.unflatten(self._tree, [_bare(value.array) for value in values])
        return found, run.may_jump


def enclose(
    function: Callable[..., Any], *arguments: Any, bits: int = 200, ulps: int = ULPS
) -> Any:
    """The enclosure of `function(*arguments)`, see `BallProgram`."""
    return BallProgram(function, *arguments, ulps=ulps)(bits)


def _bare(array: Any) -> Any:
    return array[()] if array.ndim == 0 else array


def _constant(value: Any, ulps: int) -> Value:
    """A constant or, with no ulps, an argument."""
    array = np.asarray(value)
    if array.dtype.kind == "b":
        return Value(arrays.truth_of(array))
    if array.dtype.kind in "iu":
        return Value(array, bool(np.all(array >= 0)))
    if array.dtype != np.float64:
        raise Unsupported(f"a constant of type {array.dtype}: only float64 is enclosed")
    return Value(arrays.widened(array, ulps), bool(np.all(array >= 0)))


class _Interpreter:
    """Evaluates jaxprs at the working precision."""

    def __init__(self, ulps: int, lifted: Lifted | None = None) -> None:
        self.ulps, self.lifted = ulps, lifted
        self.may_jump = False
        """Whether a step was met whose outcome is open, or a slope that was hidden on purpose."""
        self._control: dict[str, Rule] = {
            "scan": self._scan,
            "while": self._while,
            "cond": self._cond,
            "platform_index": _platform_index,
        }

    def constant(self, value: Any) -> Value:
        """A constant of the program."""
        found = _constant(value, self.ulps)
        if self.lifted is None or found.array.dtype != object:
            return found
        return Value(arrays.mapped(self.lifted)(found.array), found.nonnegative)

    def evaluate(
        self, jaxpr: Any, constants: Sequence[Value], inputs: Sequence[Value]
    ) -> list[Value]:
        """The values of the jaxpr's outputs."""
        known: dict[Any, Value] = dict(zip(jaxpr.constvars, constants, strict=True))
        known.update(zip(jaxpr.invars, inputs, strict=True))

        def read(atom: Any) -> Value:
            return self.constant(atom.val) if isinstance(atom, Literal) else known[atom]

        for equation in _needed(jaxpr):
            values = [read(atom) for atom in equation.invars]
            known.update(zip(equation.outvars, self._results(equation, values), strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    def _results(self, equation: Equation, values: list[Value]) -> list[Value]:
        """What a primitive gives; one that is not understood is told by name."""
        name = equation.primitive.name
        try:
            found = zip(equation.outvars, self._apply(equation, values), strict=True)
            results = [fitted(value, variable) for variable, value in found]
            for variable, value in zip(equation.outvars, results, strict=True):
                assert value.array.shape == variable.aval.shape, "the shape is another"
        except (Undecided, Unsupported):
            raise
        except NotImplementedError as error:
            raise Unsupported(f"the primitive {name}: {error}") from error
        except _MISUNDERSTOOD as error:
            problem = f"the primitive {name} is not understood: {error!r}"
            raise Unsupported(problem) from error
        return results

    def _apply(self, equation: Equation, values: list[Value]) -> list[Value]:
        name = equation.primitive.name
        if name in CALLS:
            return self._closed(called_program(equation), values)
        _check_enclosed(values)
        rule = self._control.get(name) or RULES.get(name)
        if rule is None:
            raise Unsupported(f"the primitive {name} has no rule for balls")
        result = rule(equation, *values)
        results = [result] if isinstance(result, Value) else result
        hidden = name == "stop_gradient" and not _is_known(values[0])
        self.may_jump = self.may_jump or hidden or _may_jump(equation, values, results)
        return results

    def _closed(self, closed: Any, values: Sequence[Value]) -> list[Value]:
        """A jaxpr with its constants, or one that has none."""
        if not hasattr(closed, "consts"):
            return self.evaluate(closed, [], values)
        constants = [self.constant(value) for value in closed.consts]
        return self.evaluate(closed.jaxpr, constants, values)

    def _scan(self, equation: Equation, *values: Value) -> list[Value]:
        p = equation.params
        body = getattr(p["jaxpr"], "jaxpr", p["jaxpr"])
        columns_from = _of_one_rank(equation.invars, body.invars)
        carried = _of_one_rank(equation.outvars, body.outvars)
        consts = list(values[: columns_from - carried])
        carry = list(values[columns_from - carried : columns_from])
        columns = values[columns_from:]
        steps: list[list[Value]] = []
        order = range(p["length"])
        for k in reversed(order) if p["reverse"] else order:
            rows = [Value(_row(column.array, k), column.nonnegative) for column in columns]
            results = self._closed(p["jaxpr"], [*consts, *carry, *rows])
            carry = results[:carried]
            steps.append(results[carried:])
        if p["reverse"]:
            steps.reverse()
        outputs = equation.outvars[carried:]
        return carry + [_stacked([s[k] for s in steps], v) for k, v in enumerate(outputs)]

    def _while(self, equation: Equation, *values: Value) -> list[Value]:
        p = equation.params
        first, second = p["cond_nconsts"], p["cond_nconsts"] + p["body_nconsts"]
        for_condition, for_body = list(values[:first]), list(values[first:second])
        carry = list(values[second:])
        for _ in range(MOST_STEPS):
            (condition,) = self._closed(p["cond_jaxpr"], [*for_condition, *carry])
            if not arrays.decided(condition.array, "while").all():
                return carry
            carry = self._closed(p["body_jaxpr"], [*for_body, *carry])
        raise Undecided(f"while: no end after {MOST_STEPS} steps")

    def _cond(self, equation: Equation, index: Value, *values: Value) -> list[Value]:
        branches = equation.params["branches"]
        if arrays.is_certain(index.array):
            choice = int(np.clip(index.array, 0, len(branches) - 1))
            return self._closed(branches[choice], values)
        self.may_jump = True
        possible = arrays.candidates(index.array[()], 0, len(branches) - 1)
        results = [self._closed(branches[k], values) for k in possible]
        return [
            _hull_of(cases, variable)
            for cases, variable in zip(zip(*results, strict=True), equation.outvars, strict=True)
        ]


_STEPS = {"floor", "ceil", "round", "sign", "rem", "argmax", "argmin"}


def _check_enclosed(values: Sequence[Value]) -> None:
    for value in values:
        if value.missing:
            raise Unsupported(value.missing)


def _is_known(value: Value) -> bool:
    """Whether no entry is open: integers, truths that are known, balls of radius zero."""
    if value.array.dtype == object:
        return all(ball.is_exact() for ball in value.array.ravel())
    return value.array.dtype != np.int8 or not bool(np.any(value.array == UNKNOWN))


def _may_jump(equation: Equation, values: Sequence[Value], results: Sequence[Value]) -> bool:
    """Whether a primitive may jump from one value to another as its operands vary in their balls.

    Comparisons alone do not matter: what they decide is chosen by `select_n` or becomes a number.
    """
    name = equation.primitive.name
    if name in _STEPS:
        return not all(map(_is_known, results))
    if name == "select_n":
        return not _is_known(values[0])
    if name == "convert_element_type":
        to_integer = kind_of(equation.outvars[0]) in "iu" and kind_of(equation.invars[0]) == "f"
        from_truth = kind_of(equation.invars[0]) == "b"
        return (to_integer or from_truth) and not all(map(_is_known, (*results, *values)))
    if name == "atan2":  # where its second operand is negative, the first jumps at zero
        return not all(x > 0 for x in values[1].array.ravel())
    return False


def _platform_index(equation: Equation) -> Value:
    """Which branch of `lax.platform_dependent` runs here: the one for the CPU, or the default."""
    platforms = equation.params["platforms"]
    return Value(np.asarray(next(k for k, p in enumerate(platforms) if p is None or "cpu" in p)))


def _needed(jaxpr: Any) -> list[Equation]:
    """The equations on which an output depends, in order."""
    wanted = {atom for atom in jaxpr.outvars if not isinstance(atom, Literal)}
    kept = []
    for equation in reversed(jaxpr.eqns):
        if wanted.isdisjoint(equation.outvars):
            continue
        wanted.update(atom for atom in equation.invars if not isinstance(atom, Literal))
        kept.append(equation)
    return kept[::-1]


def _of_one_rank(outer: Sequence[Any], inner: Sequence[Any]) -> int:
    """How many variables of a scan are as they are in its body: the others have an axis more.

    JAX changes the parameters that tell constants, carry and columns apart; this does not change.
    """
    pairs = zip(outer, inner, strict=True)
    return sum(x.aval.shape == y.aval.shape for x, y in pairs)


def _row(array: Any, k: int) -> Any:
    row = array[k]
    return row if isinstance(row, np.ndarray) else np.array(row, dtype=array.dtype)


def _stacked(rows: list[Value], variable: Any) -> Value:
    """The outputs of a scan's steps along a new first axis."""
    if not rows:
        return Value(np.empty(variable.aval.shape, dtype=object))
    parts = arrays.of_one_kind([row.array for row in rows])
    return Value(np.stack(parts), all(row.nonnegative for row in rows))


def _hull_of(cases: Sequence[Value], variable: Any) -> Value:
    parts = [case.array for case in cases]
    if kind_of(variable) == "b":
        agreed = parts[0]
        for part in parts[1:]:
            agreed = np.where(agreed == part, agreed, UNKNOWN).astype(np.int8)
        return Value(agreed)
    return Value(arrays.joined(parts), all(case.nonnegative for case in cases))
