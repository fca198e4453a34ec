"""Argument checks: each raises one clear message, before any compilation."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

import jax
import numpy as np

from ._errors import BadArgument


def check_positive(argument: str, value: float) -> float:
    """A finite number above zero."""
    if not _is_number(value) or not math.isfinite(value) or value <= 0:
        raise BadArgument(argument, value, "must be a finite number > 0", fix=f"set {argument} > 0")
    return float(value)


def check_nonnegative(argument: str, value: float) -> float:
    """A finite number, zero allowed."""
    if not _is_number(value) or not math.isfinite(value) or value < 0:
        raise BadArgument(argument, value, "must be a finite number >= 0", fix="use zero or more")
    return float(value)


def check_fraction(argument: str, value: float) -> float:
    """A number strictly between zero and one, as a probability delta must be."""
    if not _is_number(value) or not 0 < value < 1:
        raise BadArgument(argument, value, "must lie in (0, 1)", fix=f"for example {argument}=0.05")
    return float(value)


def check_count(argument: str, value: int, *, least: int = 1) -> int:
    """A whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise BadArgument(
            argument,
            value,
            f"must be a whole number >= {least}",
            fix=f"use {argument}={least} or more",
        )
    return int(value)


def check_even(argument: str, value: int) -> int:
    """An even whole number: paired initialisation copies half of the heads."""
    check_count(argument, value, least=2)
    if value % 2:
        raise BadArgument(
            argument,
            value,
            "must be even: paired initialisation mirrors every head",
            fix=f"use {argument}={value + 1}",
        )
    return int(value)


def check_kind(argument: str, value: Any, kinds: Any, *, fix: str) -> Any:
    """A value of one of these types."""
    if not isinstance(value, kinds):
        raise BadArgument(argument, value, f"is a {type(value).__name__}", fix=fix)
    return value


def check_numbers(argument: str, values: Any) -> Any:
    """Values as an array of float64."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise BadArgument(
            argument, values, f"are no real numbers ({error})", fix="give numbers of equal shapes"
        ) from error


def check_choice(argument: str, value: Any, choices: Collection[Any]) -> Any:
    """One of a closed list of values."""
    if isinstance(value, np.ndarray) or value not in tuple(choices):
        listed = ", ".join(str(c) for c in choices)
        raise BadArgument(argument, value, "is not a known choice", fix=f"choose from: {listed}")
    return value


def check_finite_leaves(argument: str, tree: Any) -> None:
    """No NaN or infinity in any array of a pytree."""
    for leaf in jax.tree.leaves(tree):
        check_finite(argument, leaf)


def check_finite(argument: str, array: Any) -> None:
    """No NaN or infinity anywhere in the array."""
    values = np.asarray(array)
    bad = int(values.size - np.count_nonzero(np.isfinite(values)))
    if bad:
        raise BadArgument(
            argument,
            f"array of shape {values.shape}",
            f"has {bad} NaN or infinite entries",
            fix="clean the data first",
        )


def check_shape(
    argument: str, array: Any, shape: tuple[int | None, ...], *, fix: str | None = None
) -> None:
    """An array of the given shape, where None stands for any length."""
    actual = tuple(np.shape(array))
    fits = len(actual) == len(shape) and all(
        want is None or want == have for want, have in zip(shape, actual, strict=False)
    )
    if not fits:
        wanted = "(" + ", ".join("any" if s is None else str(s) for s in shape) + ")"
        raise BadArgument(
            argument,
            f"array of shape {actual}",
            f"must have shape {wanted}",
            fix=fix or f"give {len(shape)} axes of these lengths",
        )


def check_samples(x: Any, y: Any) -> tuple[int, int, int]:
    """Data of n samples x: (n, T, d) with labels y: (n,), finite and not empty.

    Returns (n, T, d).
    """
    check_shape("x", x, (None, None, None))
    n, T, d = np.shape(x)
    if n == 0 or T == 0 or d == 0:
        raise BadArgument("x", f"array of shape {(n, T, d)}", "is empty", fix="give n, T, d >= 1")
    check_shape("y", y, (n,))
    check_finite("x", x)
    check_finite("y", y)
    return n, T, d


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.floating, np.integer)):
        return False
    return not isinstance(value, int) or abs(value) < 10**300  # larger ones are no float
