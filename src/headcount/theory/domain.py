"""The domain of an instance: where a claim makes sense at all, stated once per class.

A hypothesis can fail, and a verdict then says by how much. Outside the domain there is nothing to
measure: an entry is not a number, shapes do not fit, a radius is negative.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from ..core import Activation, BadArgument, activation_named
from ._pytree import arrays_of as arrays_of
from ._pytree import axes_of as axes_of
from ._pytree import instance_from as instance_from

MOST_ENTRIES = 10**6
MOST_HEADS = 10**5


class NotFinite(BadArgument):
    """An instance with entries that are no numbers, such as the weights of a diverged run."""


class Domain:
    """A base for instance classes; shapes are read from the jaxtyping annotations.

    `positive` names the fields whose entries must exceed zero, `fractions` those that must lie
    strictly between 0 and 1, `ranges` gives the least and the largest value of a letter of the
    shapes or of a count: whoever judges, searches, shrinks, proves or rechecks stays within.
    `outside` is for what a class asks beyond that; it may rely on finite arrays of consistent
    shapes.
    """

    positive: ClassVar[tuple[str, ...]] = ()
    fractions: ClassVar[tuple[str, ...]] = ()
    ranges: ClassVar[tuple[tuple[str, int, int], ...]] = ()

    @property
    def sigma(self) -> Activation:
        """The activation with its bounds, for classes with a field `activation`."""
        return activation_named(getattr(self, "activation"))  # noqa: B009

    def problem(self) -> str | None:
        """Why this is no instance, in words; None if it is one."""
        return _static_problem(self) or _array_problem(self) or self.outside()

    def outside(self) -> str | None:
        """What the class itself asks; None if nothing is wrong."""
        return None

    def __post_init__(self) -> None:
        # JAX rebuilds pytrees from tracers, gradients and placeholders: only NumPy is checked,
        # and a batch of instances along a leading axis is raw material for a family.
        if _by_hand(self) and not _batched(self) and (reason := self.problem()) is not None:
            error = BadArgument if _finite(self) else NotFinite
            name = type(self).__name__
            raise error("instance", name, reason, fix="stay inside the domain of the claim")


def _by_hand(instance: Any) -> bool:
    for name, axes in axes_of(type(instance)).items():
        value = getattr(instance, name)
        kinds: tuple[type, ...] = (np.ndarray,) if axes else (np.ndarray, np.generic, float)
        if not isinstance(value, kinds):
            return False
    return True


def _finite(instance: Any) -> bool:
    values = (np.asarray(getattr(instance, name)) for name in axes_of(type(instance)))
    return all(np.all(np.isfinite(value)) for value in values if value.dtype.kind == "f")


def _batched(instance: Any) -> bool:
    lengths = set()
    for name, axes in axes_of(type(instance)).items():
        value = np.asarray(getattr(instance, name))
        if value.ndim != len(axes) + 1:
            return False
        lengths.add(value.shape[0])
    return len(lengths) == 1


def _static_problem(instance: Any) -> str | None:
    for field in dataclasses.fields(instance):
        value = getattr(instance, field.name)
        if field.type in ("str", str) and not isinstance(value, str):
            return f"{field.name} = {value!r} is not a name"
        if field.type in ("int", int) and (type(value) is not int or value < 1):
            return f"{field.name} = {value!r} is not a whole number of at least 1"
    return activation_problem(getattr(instance, "activation", "tanh"))


def activation_problem(name: Any) -> str | None:
    """Why this names no activation: unknown, or scaled by something that is not positive."""
    try:
        activation_named(name)
    except (BadArgument, TypeError, ValueError) as error:
        return f"activation {name!r}: {error}"
    return None


def _array_problem(instance: Any) -> str | None:
    sizes: dict[str, int] = {}
    entries = 0
    for name, axes in axes_of(type(instance)).items():
        try:
            value = np.asarray(getattr(instance, name), dtype=np.float64)
        except (TypeError, ValueError):
            return f"{name} is not an array of numbers"
        reason = _shape_problem(name, value, axes, sizes)
        if reason is not None:
            return reason
        if not np.all(np.isfinite(value)):
            return f"{name} has entries that are not finite"
        if name in (*instance.positive, *instance.fractions) and not np.all(value > 0):
            return f"{name} = {value.tolist()} must be positive"
        if name in instance.fractions and not np.all(value < 1):
            return f"{name} = {value.tolist()} must be below 1"
        entries += value.size
    for name, low, high in instance.ranges:
        size = sizes[name] if name in sizes else getattr(instance, name)
        if not low <= size <= high:
            return f"{name} = {size} is not " + (
                f"from {low} to {high}" if low < high else f"{low}"
            )
    heads = max(sizes.get("m", 0), 2 * sizes.get("half", 0))
    if entries > MOST_ENTRIES or heads > MOST_HEADS:
        return f"{entries} entries and {heads} heads are too many ({MOST_ENTRIES}, {MOST_HEADS})"
    return None


def _shape_problem(
    name: str, value: np.ndarray, axes: tuple[str, ...], sizes: dict[str, int]
) -> str | None:
    if value.ndim != len(axes):
        return f"{name} has shape {value.shape}, not ({', '.join(axes)})"
    for axis, length in zip(axes, value.shape, strict=True):
        wanted = int(axis) if axis.isdigit() else sizes.setdefault(axis, length)
        if length != wanted or length == 0:
            return f"{name} has shape {value.shape}, where {axis} is {wanted}"
    return None


def case_problem(
    case: Mapping[str, Any],
    *,
    whole: Mapping[str, int],
    positive: tuple[str, ...] = (),
    choices: Mapping[str, tuple[str, ...]] | None = None,
    fractions: tuple[str, ...] = ("delta",),
) -> str | None:
    """Why a case of a frequency experiment makes no sense; None if it does.

    `whole` maps names of counts to their largest value; m must be even. There are no other keys.
    """
    options = {} if choices is None else choices
    known = {*whole, *positive, *options, *fractions}
    if not isinstance(case, Mapping) or set(case) != known:
        return f"a case needs exactly {', '.join(sorted(known))}"
    for name, most in whole.items():
        value = case[name]
        if type(value) is not int or not 1 <= value <= most:
            return f"{name} = {value!r} is not a whole number from 1 to {most}"
    if "m" in whole and case["m"] % 2:
        return f"m = {case['m']} is not even"
    for name in (*positive, *fractions):
        value = case[name]
        if type(value) not in (int, float) or not 0 < value < math.inf:
            return f"{name} = {value!r} is not a finite positive number"
        if name in fractions and value >= 1:
            return f"{name} = {value!r} does not lie in (0, 1)"
    for name, allowed in options.items():
        if case[name] not in allowed:
            return f"{name} = {case[name]!r} is not one of {', '.join(allowed)}"
    return None
