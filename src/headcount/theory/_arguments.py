"""What the function of a statement takes: the point or parts of it, `form`, the constants `k`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._record import Record

Function = Callable[..., Any]
Right = float | Fraction | Mapping[str, float | Fraction] | Callable[[Any], Any]
"""A right side made of constants: a number, one for each form, or a function of the table k."""
SlowConstants = Callable[[Any, str, Any], Any]
"""constants(data, form, num): the same names in slow arithmetic, from a point's nested lists."""


@dataclass(frozen=True)
class Given:
    """A hypothesis value <= threshold; both may be functions of variables, taken by name.

    `told`, another such function, says in words how it fails; `forms` names those that ask for it,
    all where it is empty.
    """

    name: str
    value: float | Callable[..., Any]
    threshold: float | Callable[..., Any] = 1.0
    told: Callable[..., str] | None = None
    forms: tuple[str, ...] = ()


def given(
    name: str,
    value: float | Callable[..., Any],
    threshold: float | Callable[..., Any],
    told: Callable[..., str] | None = None,
    forms: tuple[str, ...] = (),
) -> Given:
    """A hypothesis of a lemma: `value(...) <= threshold`, where arguments are variables by name."""
    return Given(name, value, threshold, told, forms)


@dataclass(frozen=True)
class RightSide:
    """A right side that points, runs, settings and slow twins share."""

    given: Right

    def of(self, table: Callable[[], Any], form: str, number: Callable[[Any], Any]) -> Any:
        """The right side from the constants of one form."""
        if callable(self.given):
            return self.given(table())
        value = self.given[form] if isinstance(self.given, Mapping) else self.given
        if isinstance(value, Fraction):
            return number(value.numerator) / number(value.denominator)
        return number(value)


class Arguments:
    """What a function takes of a point: the point whole, its parts by name, `form`, `k`."""

    def __init__(self, function: Function, kind: type[Record], given: Sequence[str] = ()) -> None:
        self.function, self.kind = function, kind
        self.names = [n for n in inspect.signature(function).parameters if n not in given]
        parts = {*kind.spaces, *kind.statics, *(n for n in dir(kind) if not n.startswith("_"))}
        self.whole = [n for n in self.names if n not in parts and n not in ("form", "k")]
        if len(self.whole) > 1:
            names, known = ", ".join(self.whole), ", ".join([*kind.spaces, *kind.statics])
            raise TypeError(f"{function.__name__} takes {names}: {kind.__name__} has {known}")

    def fields(self, kind: type[Record]) -> tuple[str, ...]:
        """The fields that decide which hypotheses are asked: those named, or all."""
        named = [name for name in self.names if name in kind.spaces]
        properties = any(n not in kind.spaces and n not in ("form", "k") for n in self.names)
        return tuple(kind.spaces) if self.whole or properties else tuple(named)

    def of(self, point: Any, form: str, constants: Callable[[], Any]) -> dict[str, Any]:
        """The arguments at a point."""
        if self.kind.raw:
            from ._record import points_of

            return self._found(form, constants, points_of(point).__getitem__)
        return self._found(
            form, constants, lambda name: point if name in self.whole else getattr(point, name)
        )

    def of_lists(
        self, data: Mapping[str, Any], form: str, constants: Callable[[], Any]
    ) -> dict[str, Any]:
        """The same of a point's nested lists: the whole is the mapping, a part an entry of it."""
        return self._found(form, constants, lambda name: data if name in self.whole else data[name])

    def _found(
        self, form: str, constants: Callable[[], Any], part: Callable[[str], Any]
    ) -> dict[str, Any]:
        variables = self.kind.spaces if self.kind.raw else ()  # anybody's names
        ours: dict[str, Callable[[], Any]] = {"form": lambda: form, "k": constants}
        return {
            name: ours[name]() if name in ours and name not in variables else part(name)
            for name in self.names
        }
