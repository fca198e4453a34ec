"""One call of anybody's model on one sample, and what it says where that cannot be."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp

from ..core import BadArgument


def name_of(model: Any) -> str:
    """How messages call the model."""
    return str(getattr(model, "__name__", type(model).__name__))


def is_ours(model: Any) -> bool:
    """Whether a model is one of this package."""
    return type(model).__module__.startswith("headcount.")


def shown_sample(sample: Any) -> str:
    """A sample's shapes, in words."""
    return " and ".join(f"shape {leaf.shape}" for leaf in jax.tree.leaves(sample)) or "nothing"


def output_of(model: Any, params: Any, sample: Any) -> jax.ShapeDtypeStruct:
    """Shape and type of f(params, sample); nothing is computed. One array of real numbers."""
    try:
        found = jax.eval_shape(model, params, sample)
    except jax.errors.TracerBoolConversionError as error:
        problem = "decides by the value of a number, which a compiled program cannot"
        fix = "use jnp.where or lax.cond in place of Python's if, and, or, while"
        raise BadArgument("model", name_of(model), problem, fix=fix) from error
    except Exception as error:
        if not is_ours(model):
            name, shown = name_of(model), shown_sample(sample)
            error.add_note(f"(raised by your own model {name}, called on one sample of {shown})")
        raise
    if not isinstance(found, jax.ShapeDtypeStruct):
        problem, fix = f"returns a {type(found).__name__}", "return one array"
        raise BadArgument("model", name_of(model), problem, fix=fix)
    if not jnp.issubdtype(found.dtype, jnp.floating):
        problem = f"returns {found.dtype}, which has no gradient"
        fix = "return floating point numbers"
        raise BadArgument("model", name_of(model), problem, fix=fix)
    return found


@contextmanager
def differentiated(model: Any) -> Iterator[None]:
    """JAX has no gradient of a loop whose length it does not know: that is told in one line."""
    try:
        yield
    except ValueError as error:
        if "Reverse-mode differentiation does not work" not in str(error):
            raise
        problem = "has a loop of unknown length, which no gradient passes"
        fix = "use lax.scan, or fori_loop between fixed numbers"
        raise BadArgument("model", name_of(model), problem, fix=fix) from error
