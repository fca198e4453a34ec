"""Slopes that can be trusted: those of a function's own steps, and of rules that are known.

Anybody may write a rule (`jax.custom_jvp`), and nothing says that it gives the function's slope. A
rule counts only where it is one of JAX's or ours, on the function that it was written for: both
are compared as programs. Every other function is differentiated step by step; so are those with a
rule for reverse mode (`jax.custom_vjp`), which have none for forward mode.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Jaxpr, jaxpr_as_fun

from ..core import float64
from ._ball_value import Equation
from ._program import called_program, described, equations, shape_of
from .families import safe_root

_KNOWN: tuple[Callable[..., Any], ...] = (
    jnp.logaddexp,
    jnp.logaddexp2,
    jax.nn.relu,
    jax.nn.relu6,
    safe_root,
)
"""Functions whose rules are right, and say more of a box than their steps do, which have kinks."""


def by_known_rules(function: Callable[..., Any], *arguments: Any) -> Callable[..., Any]:
    """`function`, traced once at these arguments, without the rules of others."""
    with float64():
        closed, shape = jax.make_jaxpr(function, return_shape=True)(*arguments)
        run = jaxpr_as_fun(_without_foreign(closed))
    tree = jax.tree.structure(shape)
    return lambda *values: jax.tree.unflatten(tree, run(*jax.tree.leaves(values)))


def derivatives(sides: Callable[..., Any], point: Any) -> tuple[Callable[..., Any], ...]:
    """The sides (lhs, rhs, ...), and the first and second derivatives of rhs - lhs."""
    plain = by_known_rules(sides, point)

    def gap(flat: Any) -> Any:
        lhs, rhs, *_ = plain(flat)
        return rhs - lhs

    slopes = by_known_rules(jax.jacfwd(gap), point)  # once more: a rule may hide another
    return plain, slopes, lambda flat: jnp.diag(jax.jacfwd(slopes)(flat))


def _without_foreign(value: Any) -> Any:
    """A program, or a parameter of an equation, in which others' rules are gone."""
    if isinstance(value, (tuple, list)):
        return type(value)(map(_without_foreign, value))
    if isinstance(value, ClosedJaxpr) and value.jaxpr is not value:  # one class since JAX 0.12
        return value.replace(jaxpr=_without_foreign(value.jaxpr))
    if not isinstance(value, Jaxpr) or not any(map(_brings_a_rule, equations(value))):
        return value
    return value.replace(eqns=[_plain(equation) for equation in value.eqns])


def _plain(equation: Equation) -> Equation:
    """The equation; a function with a foreign rule becomes a plain call of its own program."""
    if not _brings_a_rule(equation):
        params = {key: _without_foreign(value) for key, value in equation.params.items()}
        return equation.replace(params=params)
    called = called_program(equation)
    shapes = [shape_of(variable) for variable in equation.invars]
    (call,) = jax.make_jaxpr(jax.jit(jaxpr_as_fun(called)))(*shapes).eqns
    params = {**call.params, "jaxpr": _without_foreign(called)}
    return equation.replace(primitive=call.primitive, params=params)


def _brings_a_rule(equation: Equation) -> bool:
    """Whether a function has a rule that is not known to be right."""
    name = equation.primitive.name
    if name == "custom_jvp_call":
        shapes = tuple(shape_of(variable) for variable in equation.invars)
        return _rule(equation) not in _known_rules(shapes)
    return name == "custom_vjp_call"


def _rule(equation: Equation) -> tuple[Any, ...] | None:
    """A function and its rule as programs; None where it takes more than real numbers."""
    shapes = [shape_of(variable) for variable in equation.invars]
    if any(shape.dtype.kind != "f" for shape in shapes):
        return None
    with float64():
        frame = jax.make_jaxpr(lambda *values: values)(*shapes)
        alone = equation.replace(invars=frame.jaxpr.invars)
        body = frame.jaxpr.replace(eqns=[alone], outvars=alone.outvars)
        own = jaxpr_as_fun(frame.replace(jaxpr=body))
        rule = jax.make_jaxpr(lambda x, slopes: jax.jvp(own, x, slopes))(shapes, shapes)
    return described(equation.params["call_jaxpr"]), described(rule)


@functools.lru_cache(maxsize=256)
def _known_rules(shapes: tuple[jax.ShapeDtypeStruct, ...]) -> frozenset[Any]:
    return frozenset(_rules_of_known(shapes))


def _rules_of_known(shapes: tuple[jax.ShapeDtypeStruct, ...]) -> Iterator[Any]:
    for function in _KNOWN:
        try:
            with float64():
                program = jax.make_jaxpr(function)(*shapes)
        except TypeError:
            continue  # it takes another number of arguments
        for equation in equations(program):
            if equation.primitive.name == "custom_jvp_call":
                rule = _rule(equation)
                if rule is not None:
                    yield rule
