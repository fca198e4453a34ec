"""Programs as data: their equations at every depth, what they compute, what their constants are."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

from ._ball_value import Equation
from ._balls import is_short

Program = Any
"""A jaxpr, closed or not."""

CALLS = {
    "jit": "jaxpr",
    "pjit": "jaxpr",
    "closed_call": "call_jaxpr",
    "core_call": "call_jaxpr",
    "remat2": "jaxpr",
    "checkpoint": "jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
    "custom_lin": "call_jaxpr",
}
"""Primitives that run one program on their operands, and the parameter that holds it."""

_FLOAT32_SPACING = 2.0**-24


def inner_programs(equation: Equation) -> Iterator[Program]:
    """The programs that an equation holds as parameters."""
    for value in equation.params.values():
        for part in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(part, (ClosedJaxpr, Jaxpr)):
                yield part


def called_program(equation: Equation) -> Program:
    """The program that a call runs on its operands.

    Since JAX 0.12 the slope of erf is a function that splits its operand by its bits, so that it
    rounds less. What it computes is exp(-x^2), and that is the program given here.
    """
    called = equation.params[CALLS[equation.primitive.name]]
    if any(step.primitive.name == "bitcast_convert_type" for step in called.eqns):
        (operand, *others) = map(shape_of, equation.invars)
        if not others and described(called) == _slope_of_erf(operand):
            return jax.make_jaxpr(lambda x: jnp.exp(-jnp.square(x)))(operand)
    return called


def shape_of(variable: Any) -> jax.ShapeDtypeStruct:
    """Shape and type of a variable, as an argument to trace with."""
    aval = variable.aval
    return jax.ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type)


@functools.lru_cache(maxsize=256)
def _slope_of_erf(operand: jax.ShapeDtypeStruct) -> Any:
    """The description of the function that JAX calls for the slope of erf, if there is one."""
    slope = jax.make_jaxpr(lambda x: jax.jvp(jax.lax.erf, (x,), (jnp.ones_like(x),))[1])(operand)
    called = (e.params["call_jaxpr"] for e in slope.eqns if e.primitive.name == "custom_jvp_call")
    return next(map(described, called), None)


def equations(program: Program) -> Iterator[Equation]:
    """All equations, those of inner programs included."""
    jaxpr: Any = getattr(program, "jaxpr", program)
    for equation in jaxpr.eqns:
        yield equation
        for inner in inner_programs(equation):
            yield from equations(inner)


def described(program: Program) -> tuple[Any, ...]:
    """What a program computes: two of one description do the same to the last bit.

    Rules for derivatives are left out; what they do is a program of its own.
    """
    jaxpr: Any = getattr(program, "jaxpr", program)
    names: dict[Any, int] = {}

    def atom(value: Any) -> Any:
        if isinstance(value, Literal):
            return _part(np.asarray(value.val))
        return names.setdefault(value, len(names)), str(value.aval)

    def atoms(values: Any) -> tuple[Any, ...]:
        return tuple(map(atom, values))

    inputs = atoms((*jaxpr.constvars, *jaxpr.invars))
    steps = tuple(
        (step.primitive, atoms(step.invars), _part(step.params), atoms(step.outvars))
        for step in jaxpr.eqns
    )
    constants = tuple(map(_part, getattr(program, "consts", ())))
    return constants, inputs, steps, atoms(jaxpr.outvars)


def _part(value: Any) -> Any:
    """A constant or a parameter of an equation, in a form that compares by content."""
    if isinstance(value, (ClosedJaxpr, Jaxpr)):
        return described(value)
    if isinstance(value, dict):
        return tuple((key, _part(value[key])) for key in sorted(value))
    if isinstance(value, (tuple, list)):
        return tuple(map(_part, value))
    if hasattr(value, "__array__"):
        array = np.asarray(value)
        return array.shape, str(array.dtype), array.tobytes()
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


def rounded_constants(program: Program) -> Iterator[tuple[float, Equation | None]]:
    """Constants that have passed through float32, each with the equation that takes it, if any."""
    jaxpr: Any = getattr(program, "jaxpr", program)
    own = dict(zip(jaxpr.constvars, getattr(program, "consts", ()), strict=False))
    steps = [(step, step.invars) for step in jaxpr.eqns]
    for step, atoms in (*steps, (None, jaxpr.outvars)):
        for atom in atoms:
            constant = atom.val if isinstance(atom, Literal) else own.get(atom)
            yield from ((value, step) for value in _rounded(constant))
        for inner in inner_programs(step) if step is not None else ():
            yield from rounded_constants(inner)


def _rounded(constant: Any) -> Iterator[float]:
    array = np.asarray(constant)
    if constant is not None and array.dtype.kind == "f":
        yield from filter(was_float32, array.astype(np.float64).ravel().tolist())


def was_float32(value: float) -> bool:
    """Whether a number has exactly the digits of a float32 that is no short one and no integer.

    A float64 has so few digits by chance once in 2^29 times.

    >>> was_float32(float(np.float32(0.1))), was_float32(0.1), was_float32(0.5), was_float32(1e7)
    (True, False, False, False)
    >>> was_float32(float(np.float32(1e5 / 3))), was_float32(1 / 3), was_float32(math.nan)
    (True, False, False)
    """
    if not math.isfinite(value) or value.is_integer() or is_short(value):
        return False
    mantissa, _ = math.frexp(value)
    return (mantissa / _FLOAT32_SPACING).is_integer()
