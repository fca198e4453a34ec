"""Lemmas that cannot be tested: one line that names the lemma, the instance and what to do."""

from __future__ import annotations

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flint import arb

from ..core import BadArgument, float64
from ._ball_jaxpr import BallProgram, Unsupported
from ._claim import Claim, Family, Hypothesis, Instance, Kind
from ._compilation import quick_compilation
from ._lemma_report import in_words
from ._lemma_source import line_of
from ._program import described, rounded_constants
from ._prove import CONSTANT_ULPS, traced
from ._record import family_at
from ._shrink import to_read
from ._spaces import Sizes
from ._starts import starts

_BELOW = 1e-9
"""A side below zero by less than this, relatively, may be rounding."""
_TRIED = 8
"""Instances that look bad in float64 and are looked at again in ball arithmetic."""


def check_program(lemma: Claim, variant: str, sizes: Sizes) -> None:
    """The function must run at these sizes and give two numbers."""
    family = family_at(lemma.on, sizes)
    one = jax.tree.map(lambda leaf: leaf[0], family.draw(np.random.default_rng(0), 1))
    where = f"at {family.name}" if sizes else "in its function"
    try:
        sides, checks = _checked_trace(lemma, variant, one)
        with float64():
            if all(side.dtype.kind == "f" for side in sides):  # else there is more to say
                jax.eval_shape(jax.grad(lambda i: _total(lemma, i, variant)), one)
    except BadArgument:
        raise
    except Exception as error:  # the function is the user's: it may raise anything
        raise _raised(lemma, error, where) from error
    for name, side in zip(("left", "right"), sides, strict=True):
        if side.shape and lemma.kind is not Kind.IDENTITY:
            problem = f"the {name} side has shape {side.shape} {where}, where a number is due"
            raise BadArgument("lemma", lemma.id, problem, fix="take a norm, a sum or a maximum")
        if side.dtype.kind not in "fiu":
            problem = f"the {name} side is of type {side.dtype} {where}"
            raise BadArgument("lemma", lemma.id, problem, fix="return real numbers")
    if lemma.kind is Kind.IDENTITY and sides[0].shape != sides[1].shape:
        problem = f"the sides have shapes {sides[0].shape} and {sides[1].shape} {where}"
        raise BadArgument("lemma", lemma.id, problem, fix="an equality compares entry by entry")
    for hypothesis, pair in zip(lemma.hypotheses, checks, strict=True):
        if any(np.shape(part) for part in pair):
            problem = f"hypothesis {hypothesis.name!r} is an array {where}, where a number is due"
            raise BadArgument("lemma", lemma.id, problem, fix="take a norm, a sum or a maximum")
        for part in pair:
            if part.dtype.kind not in "fiu":
                problem = f"hypothesis {hypothesis.name!r} is of type {part.dtype} {where}"
                raise BadArgument("lemma", lemma.id, problem, fix="return real numbers")


def check_instance(lemma: Claim, variant: str, instance: Instance) -> None:
    """The lemma must be the same program each time, of numbers that mean what they say."""
    try:
        _checked_trace(lemma, variant, instance)
    except BadArgument:
        raise
    except Exception as error:
        raise _raised(lemma, error, "at this instance") from error


def _checked_trace(lemma: Claim, variant: str, instance: Instance) -> Any:
    """The shapes of sides and hypotheses, of a program that is traced twice."""
    with float64():
        traces = [
            jax.make_jaxpr(functools.partial(_stated, lemma, variant), return_shape=True)(instance)
            for _ in range(2)
        ]
    (program, shapes), (again, _) = traces
    if described(program) != described(again):
        problem = "is not the same program each time that it runs"
        fix = "take no random numbers, clocks or counters: a lemma is about its variables"
        raise BadArgument("lemma", lemma.id, problem, fix=fix)
    for value, step in rounded_constants(program):
        line = line_of(lemma, variant, value, step)
        problem = f"has the constant {value!r}, which has passed through float32{line}"
        fix = "compute it in float64: math.sqrt, numpy.pi, numpy.float64"
        raise BadArgument("lemma", lemma.id, problem, fix=fix)
    return shapes


def _stated(lemma: Claim, variant: str, instance: Instance) -> Any:
    sides = lemma.sides(instance, variant)[:2]
    return sides, [(h.value(instance), h.limit(instance, variant)) for h in lemma.hypotheses]


def _total(lemma: Claim, instance: Instance, variant: str) -> Any:
    """Both sides added up: what has a slope can be climbed."""
    lhs, rhs = lemma.sides(instance, variant)[:2]
    return jnp.sum(lhs) + jnp.sum(rhs)


def _raised(lemma: Claim, error: Exception, where: str) -> BadArgument:
    """The user's own exception in one line."""
    if isinstance(
        error, (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError)
    ):
        problem = f"needs the value of a variable in Python {where}"
        return BadArgument(
            "lemma", lemma.id, problem, fix="use jax.numpy throughout, jnp.where for if"
        )
    words = str(error).strip().splitlines()
    text = f"raises {type(error).__name__} {where}: {words[0] if words else 'no message'}"
    return BadArgument("lemma", lemma.id, text[:300], fix="it must run for all declared sizes")


def check_here(
    lemma: Claim, variant: str, family: Family, rng: np.random.Generator, count: int
) -> None:
    """On draws of every sort, admissible ones must give numbers of the right sign."""
    raw = starts(family, rng, count)
    batch, measured, sides = _evaluator(lemma.sides, lemma.hypotheses, variant, family)(raw)
    apply = np.ones(count, bool)
    for value, limit in measured:
        apply &= np.asarray(value) <= np.asarray(limit)
    left, right = (np.asarray(side).reshape(count, -1) for side in sides[:2])
    bad = ~np.isfinite(left).all(axis=1) | np.isnan(right).any(axis=1)
    if lemma.kind is not Kind.IDENTITY:
        size = _BELOW * np.maximum(np.maximum(np.abs(left), np.abs(right)).max(axis=1), 1e-6)
        bad |= (left.min(axis=1) < -size) | (right.min(axis=1) < -size)
    chosen = np.flatnonzero(bad & apply)
    instances = [jax.tree.map(lambda leaf, k=k: np.asarray(leaf)[k], batch) for k in chosen]
    instances.sort(key=lambda i: sum(to_read(leaf) for leaf in jax.tree.leaves(i)))
    for instance in instances[:_TRIED]:
        problem = _problem(lemma, variant, instance)
        if problem is not None:
            text = f"{problem} at {in_words(lemma, instance)}"
            raise BadArgument("lemma", lemma.id, text, fix=_fix(problem))


@functools.lru_cache(maxsize=32)
def _evaluator(sides: Any, hypotheses: tuple[Hypothesis, ...], variant: str, family: Family) -> Any:
    def evaluate(raw: Instance) -> Any:
        instance = family.project(raw)
        measured = [(h.value(instance), h.limit(instance, variant)) for h in hypotheses]
        return instance, measured, sides(instance, variant)

    return jax.jit(jax.vmap(evaluate), compiler_options=quick_compilation())


def _fix(problem: str) -> str:
    if "below zero" in problem:
        return "both sides must be at least 0: move terms to the other side"
    return "leave such instances out by a space or a given(...)"


def _problem(lemma: Claim, variant: str, instance: Instance) -> str | None:
    """What is wrong in exact arithmetic; None where float64 alone is to blame."""
    sides = lemma.evaluate(jax.tree.map(jnp.asarray, instance), variant)[:2]
    floats = [np.asarray(side, dtype=np.float64).ravel() for side in sides]
    try:
        _, *balls = BallProgram(traced(lemma, variant), instance, ulps=CONSTANT_ULPS)(128)
        exact = [np.ravel(np.asarray(side, dtype=object)).tolist() for side in balls]
    except (Unsupported, ArithmeticError):
        exact = [[arb(v) if math.isfinite(v) else arb.nan() for v in side] for side in floats]
    for name, values, seen in zip(("left", "right"), exact, floats, strict=True):
        for value, shown in zip(map(arb, values), seen, strict=True):
            if not (value.is_finite() or math.isfinite(shown)):  # else it is not enclosed
                return f"the {name} side is {shown}"
        if lemma.kind is not Kind.IDENTITY and any(arb(x) < 0 for x in values):
            return f"the {name} side is {min(seen):.6g}, below zero,"
    return None
