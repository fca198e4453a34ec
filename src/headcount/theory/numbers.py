"""Functions of a number or of an array: a formula is written once for a setting and for a trace."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp

Number = Any


def largest(a: Number, b: Number) -> Number:
    """max(a, b) for numbers and arrays."""
    plain = isinstance(a, (int, float)) and isinstance(b, (int, float))
    return max(a, b) if plain else jnp.maximum(a, b)


def smallest(a: Number, b: Number) -> Number:
    """min(a, b) for numbers and arrays."""
    plain = isinstance(a, (int, float)) and isinstance(b, (int, float))
    return min(a, b) if plain else jnp.minimum(a, b)


def log(x: Number) -> Number:
    """The natural logarithm of a number or an array."""
    return math.log(x) if isinstance(x, (int, float)) else jnp.log(x)


def exp(x: Number) -> Number:
    """The exponential of a number or an array."""
    return math.exp(x) if isinstance(x, (int, float)) else jnp.exp(x)
