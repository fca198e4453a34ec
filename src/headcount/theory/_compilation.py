"""Compiling small programs quickly: theirs is a cost of compilation, not of running."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp


@functools.cache
def quick_compilation() -> dict[str, Any]:
    """Compiler options for programs that run for a second: compile in a quarter of the time.

    The second option exists only for recent CPU compilers, so it is tried first.
    """
    level: dict[str, Any] = {"xla_backend_optimization_level": 0}
    options = {**level, "xla_cpu_use_fusion_emitters": False}
    try:
        jax.jit(jnp.negative).lower(0.0).compile(compiler_options=options)
    except jax.errors.JaxRuntimeError:
        return level
    return options
