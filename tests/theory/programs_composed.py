"""Random chains of programs: each takes what the one before gave, in its shape and range."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from programs import Generator, Program


def chains(
    generators: Sequence[Generator], rng: np.random.Generator, count: int, length: int = 5
) -> Iterator[Program]:
    """Chains that begin with the sine of a few numbers."""
    for _ in range(count):
        steps = []
        while len(steps) < length:
            drawn = list(generators[rng.integers(len(generators))](rng))
            step = drawn[rng.integers(len(drawn))]
            if step.radius > 0 and all(x.size for x in step.arguments):
                steps.append(step)
        yield Program(_composed(steps), (rng.uniform(-2, 2, 3),), radius=1e-7)


def _composed(steps: Sequence[Program]) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        for step in steps:
            x = _joined(step.function(*(_brought(x, arg, step) for arg in step.arguments)))
        return x

    return function


def _brought(x: Any, argument: Any, step: Program) -> Any:
    """Numbers of any size as an argument of a program, within what it can be."""
    if argument.dtype != np.float64:
        return jnp.asarray(argument)
    places = np.arange(argument.size).reshape(argument.shape) % x.size
    return argument + 0.5 * step.radius * lax.sin(x[places])


def _joined(results: Any) -> Any:
    parts = [lax.convert_element_type(leaf, float).ravel() for leaf in jax.tree.leaves(results)]
    return lax.atan(jnp.concatenate(parts)[:6])
