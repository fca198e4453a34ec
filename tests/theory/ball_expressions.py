"""Random expressions, each written once and evaluated with any kind of number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import jax.scipy.special as special
import numpy as np

from headcount.theory.slow import Arithmetic

INPUTS = 3
EXACT = ("2", "-3", "0.5", "0.75", "-1.25", "7")
ROUNDED = ("0.1", "-0.3", "2.7", "1e-3", "3.14159")
UNARY = ("exp", "log", "sqrt", "tanh", "sin", "cos", "atan", "erf", "erfc", "abs", "square", "cube")
BINARY = ("add", "sub", "mul", "div", "max", "min")


class OutOfRange(ArithmeticError):
    """A subexpression that is undefined, or too large or small to be of interest."""


@dataclass(frozen=True)
class Expression:
    """An operation on expressions, or a leaf: an input ("x0") or a constant ("0.1")."""

    name: str
    parts: tuple[Expression, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.parts))})" if self.parts else self.name

    def value(self, operations: dict[str, Any], inputs: Any) -> Any:
        """The value in one kind of number."""
        if self.parts:
            return operations[self.name](*(p.value(operations, inputs) for p in self.parts))
        if self.name.startswith("x"):
            return inputs[int(self.name[1:])]
        return operations["constant"](self.name)


def draw(rng: np.random.Generator, depth: int, constants: tuple[str, ...]) -> Expression:
    """A random expression; logarithms and roots are of absolute values."""
    if depth == 0 or rng.uniform() < 0.1:
        if rng.uniform() < 0.3:
            return Expression(str(rng.choice(constants)))
        return Expression(f"x{rng.integers(INPUTS)}")
    if rng.uniform() < 0.5:
        name = str(rng.choice(BINARY))
        return Expression(name, tuple(draw(rng, depth - 1, constants) for _ in range(2)))
    name = str(rng.choice(UNARY))
    part = draw(rng, depth - 1, constants)
    return Expression(name, (Expression("abs", (part,)) if name in ("log", "sqrt") else part,))


def with_numbers(num: Arithmetic) -> dict[str, Any]:
    """The operations of a slow twin's numbers."""
    return {
        "constant": num.number,
        **{name: getattr(num, name) for name in ("exp", "log", "sqrt", "tanh", "sin", "cos")},
        **{name: getattr(num, name) for name in ("atan", "erf", "erfc")},
        "abs": num.absolute,
        "square": lambda x: x**2,
        "cube": lambda x: x**3,
        "add": lambda x, y: x + y,
        "sub": lambda x, y: x - y,
        "mul": lambda x, y: x * y,
        "div": lambda x, y: x / y,
        "max": lambda x, y: num.largest([x, y]),
        "min": lambda x, y: num.smallest([x, y]),
    }


def guarded(operations: dict[str, Any]) -> dict[str, Any]:
    """The same, giving up where a value leaves [1e-30, 1e30] or is undefined."""

    def guard(operation: Any) -> Any:
        def apply(*arguments: Any) -> Any:
            try:
                result = operation(*arguments)
            except (ZeroDivisionError, ValueError) as error:
                raise OutOfRange from error
            if not 1e-30 < abs(result) < 1e30:
                raise OutOfRange
            return result

        return apply

    return {name: guard(operation) for name, operation in operations.items()}


WITH_JAX: dict[str, Any] = {
    "constant": float,
    "exp": jnp.exp,
    "log": jnp.log,
    "sqrt": jnp.sqrt,
    "tanh": jnp.tanh,
    "sin": jnp.sin,
    "cos": jnp.cos,
    "atan": jnp.arctan,
    "erf": special.erf,
    "erfc": special.erfc,
    "abs": jnp.abs,
    "square": lambda x: x**2,
    "cube": lambda x: x**3,
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "max": jnp.maximum,
    "min": jnp.minimum,
}
