"""Statements: how a paper writes its claims, each as a function that returns its two sides.

    state = Statements("smith2030", constants=Constants)

    @state.claim("lemma-2", "A head is Lipschitz", where="Lemma 2", on=Head, says=r"|h'| <= L_1",
                 right=lambda k: k.L1)
    def lipschitz(h):
        "|grad h| <= L1 wherever |U| <= B_U."
        return norm(grad(h))

    @lipschitz.twin
    def _(num, h):
        return slow_norm(num, slow_gradient(num, h))

The function takes the point whole, or fields and properties of it by name, and further `form` (the
name of the form that is asked) and `k` (the paper's constants at the point, for that form). A
`right` side that is made of constants alone is written once: it serves points, runs and settings,
and the twin's arithmetic with the constants of its own. A form whose right side is measured returns
both sides itself.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ..core import BadArgument
from ._claim import Bound, Check, Claim, Hypothesis, Kind, Sides
from ._forms import Form, Forms, forms_of
from ._frequency import Experiment, delta_of
from ._lemma import Given
from ._record import Record, Shape
from ._registry import claims
from ._table import Table as Table
from ._table import used
from .slow import FLOATS

Constants = Callable[[Any, str], Any]
"""constants(symbols, form): the paper's table, for whatever has the symbols (`Record.symbols`)."""
SlowConstants = Callable[[Any, str, Any], Any]
"""constants(data, form, num): the same names in slow arithmetic, from a point's nested lists."""
Function = Callable[..., Any]
Right = float | Fraction | Mapping[str, float | Fraction] | Callable[[Any], Any]
"""A right side made of constants: a number, one for each form, or a function of the table k."""


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
        self.function = function
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
        found: dict[str, Any] = {}
        for name in self.names:
            if name == "form":
                found[name] = form
            elif name == "k":
                found[name] = constants()
            else:
                found[name] = point if name in self.whole else getattr(point, name)
        return found

    def of_lists(
        self, data: Mapping[str, Any], form: str, constants: Callable[[], Any]
    ) -> dict[str, Any]:
        """The same of a point's nested lists: the whole is the mapping, a part an entry of it."""
        found: dict[str, Any] = {}
        for name in self.names:
            if name == "form":
                found[name] = form
            elif name == "k":
                found[name] = constants()
            else:
                found[name] = data if name in self.whole else data[name]
        return found


@dataclass(frozen=True, eq=False, kw_only=True)
class Statement(Claim):
    """A claim that was written as a function; call it to evaluate what it returns."""

    function: Function
    on: type[Record]
    slow_constants: SlowConstants | None = None
    right: RightSide | None = None

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """What the function returns at arguments of your own."""
        return self.function(*arguments, **named)

    @property
    def instance_class(self) -> type[Record]:
        """The record that it speaks about."""
        return self.on

    def twin(self, function: Function) -> Function:
        """Complete the declaration: the same sides in plain loops over any arithmetic.

        The function takes `num`, then the point (a mapping of nested lists) whole or in parts.
        """
        taken = Arguments(function, self.on, given=("num",))

        def naive(num: Any, data: Mapping[str, Any], form: str) -> tuple[Any, Any]:
            table = functools.cache(lambda: _slow_table(self.slow_constants, num, data, form))
            sides = function(num, **taken.of_lists(data, form, table))
            if self.right is None or isinstance(sides, tuple):
                return sides
            return sides, self.right.of(table, form, num.number)

        object.__setattr__(self, "naive", naive)
        return function


def _slow_table(constants: SlowConstants | None, num: Any, data: Any, form: str) -> Any:
    assert constants is not None, "this paper has no constants in slow arithmetic"
    return constants(data, form, num)


@dataclass(frozen=True)
class Statements:
    """How one paper declares: its key, and its constants in both arithmetics."""

    paper: str
    constants: Constants | None = None
    slow_constants: SlowConstants | None = None

    def claim(
        self,
        name: str,
        title: str,
        *,
        where: str,
        on: type[Record],
        says: str,
        forms: Forms = "as printed",
        right: Right | None = None,
        promise: Right | None = None,
        trivial: Callable[[Any], Any] | None = None,
        no_rival: str = "",
        asks: tuple[str, ...] | None = None,
        given: tuple[Given, ...] = (),
        tight: Sequence[Any] | Callable[[], Sequence[Any]] = (),
        proved: str = "",
        kind: Kind = Kind.DETERMINISTIC,
        shapes: Sequence[Shape] | None = None,
        notes: tuple[str, ...] = (),
        also: tuple[str, ...] = (),
        **more: Any,
    ) -> Callable[[Function], Statement]:
        """Declare the function below as a claim of this paper.

        `where` lists every name that the paper has for it ("Lemma 2 (a), Eq. (15)"), `proved` the
        place of its proof; `says` is the formula in LaTeX, the docstring the statement in words.
        `right` is the right side where constants alone make it, and the function then returns the
        left side only; `promise` is that of a setting where the function itself returns both sides;
        `trivial(k)` is what is known without the claim, `no_rival` why there is no such thing.
        `asks` names the fields whose spaces are hypotheses: by default those that the function
        takes, all where it takes the point whole. `given` are hypotheses beside those, `tight`
        known worst points, `shapes` where a search begins in place of the record's, `notes` the
        notes on the text.
        """
        if trivial is not None and no_rival:
            fix = "give the rival or the reason that there is none"
            raise BadArgument("no_rival", no_rival, f"{name} has a rival, trivial", fix=fix)
        declared = {"where": where, "says": says, "proved": proved, "notes": notes, "also": also}
        return lambda function: claims.add(  # type: ignore[return-value]
            self._statement(
                function, name, title, on, forms_of(forms),
                None if right is None else RightSide(right),
                None if promise is None else RightSide(promise), trivial, given, tight,
                kind=kind, asks=asks, shapes=shapes, declared=declared, no_rival=no_rival, **more,
            )
        )  # fmt: skip

    def identity(self, name: str, title: str, **more: Any) -> Callable[[Function], Statement]:
        """Declare an equality of two arrays; it needs no twin."""
        return self.claim(name, title, kind=Kind.IDENTITY, **{"forms": "equality", **more})

    def probability(
        self,
        name: str,
        title: str,
        *,
        on: type[Record],
        cases: Sequence[Mapping[str, Any]],
        draw: Callable[..., Any],
        delta: Callable[[Mapping[str, Any]], float] = delta_of,
        problem: Callable[[Mapping[str, Any]], str | None] = lambda case: None,
        vary: Any = None,
        exact: Any = None,
        **more: Any,
    ) -> Callable[[Function], Statement]:
        """Declare an inequality that may fail with probability `delta(case)`.

        `draw(case, rng, count)` gives points along a leading axis; the twin counts on points that
        it draws one by one from a stream of its own. See `Experiment` for the rest.
        """

        def declare(function: Function) -> Statement:
            own: list[Statement] = []

            def count(case: Mapping[str, Any], form: str, seed: int, repetitions: int) -> int:
                return count_slowly(own[0], draw, case, form, seed, repetitions)

            def sides(point: Any, form: str) -> Sides:
                return own[0].sides(point, form)

            experiment = Experiment(tuple(cases), draw, sides, count, delta, problem, vary, exact)
            made = self.claim(
                name, title, on=on, kind=Kind.HIGH_PROBABILITY, experiment=experiment,
                searched=False, **more,
            )(function)  # fmt: skip
            own.append(made)
            return made

        return declare

    def _statement(
        self,
        function: Function,
        name: str,
        title: str,
        on: type[Record],
        variants: dict[str, Form],
        right: RightSide | None,
        promise: RightSide | None,
        trivial: Callable[[Any], Any] | None,
        given: tuple[Given, ...],
        tight: Any,
        *,
        kind: Kind,
        asks: tuple[str, ...] | None,
        shapes: Sequence[Shape] | None,
        declared: dict[str, Any],
        searched: bool = True,
        **more: Any,
    ) -> Statement:
        taken = Arguments(function, on)
        sides = self._sides(function, taken, right, trivial)
        asked = on.hypotheses(taken.fields(on) if asks is None else asks)
        noted = [form.erratum for form in variants.values() if form.erratum is not None]
        if (promised := right or promise) is not None and "bound" not in more:
            more["bound"] = self._bound(promised, trivial)
        return Statement(
            id=f"{self.paper}/{name}",
            title=title,
            kind=kind,
            equations=declared["where"],
            statement=" ".join((function.__doc__ or title).split()),
            latex=declared["says"],
            sides=sides,
            naive=None,
            families=on.families(shapes) if searched else (),
            variants=variants,
            default=next(name for name, form in variants.items() if not form.fails),
            hypotheses=(*asked, *(self._hypothesis(one, on) for one in given)),
            targets=tight if callable(tight) else lambda: tuple(tight),
            errata=tuple(dict.fromkeys([*declared["notes"], *noted])),
            references=(
                f"{self.paper}, {declared['proved'] or declared['where']}",
                *declared["also"],
            ),
            function=function,
            on=on,
            slow_constants=self.slow_constants,
            right=right,
            **more,
        )

    def table(self, symbols: Any, form: str) -> Any:
        """The paper's constants for whatever has the symbols: a point, a run, a setting."""
        assert self.constants is not None, f"{self.paper} declares no constants"
        return self.constants(symbols, form)

    def _sides(
        self, function: Function, taken: Arguments, right: RightSide | None, trivial: Any
    ) -> Callable[[Any, str], Sides]:
        def sides(point: Any, form: str) -> Sides:
            table = functools.cache(lambda: self.table(point.symbols, form))
            found = function(**taken.of(point, form, table))
            if not isinstance(found, Sides):
                found = Sides(*found) if isinstance(found, tuple) else Sides(found, None)
            if right is not None and found.rhs is None:
                found = found._replace(rhs=right.of(table, form, float))
            if trivial is not None:
                found = found._replace(trivial=trivial(table()))
            constants = used(table()) if table.cache_info().currsize else {}
            return found._replace(constants={**constants, **found.constants})

        return sides

    def _bound(self, right: RightSide, trivial: Any) -> Callable[[Any, str], Bound]:
        def bound(setting: Any, form: str) -> Bound:
            table = functools.cache(lambda: self.table(setting, form))
            known = None if trivial is None else float(trivial(table()))
            rhs = float(right.of(table, form, float))
            return Bound(rhs, used(table()) if table.cache_info().currsize else {}, known)

        return bound

    def _hypothesis(self, given: Given, on: type[Record]) -> Hypothesis:
        """A condition value <= threshold; functions take parts of the point by name."""

        def measured(part: Any) -> Callable[[Any, str], Any]:
            if not callable(part):
                return lambda point, form: float(part)
            taken = Arguments(part, on)
            return lambda point, form: part(
                **taken.of(point, form, lambda: self.table(point.symbols, form))
            )

        value, limit = measured(given.value), given.threshold
        at = measured(limit) if callable(limit) else float(limit)
        told = measured(given.told) if given.told is not None else None
        return Hypothesis(given.name, lambda point: value(point, "printed"), None, at, told=told)


def count_slowly(
    claim: Claim,
    draw: Callable[..., Any],
    case: Mapping[str, Any],
    form: str,
    seed: int,
    repetitions: int,
) -> int:
    """How often the slow twin's inequality fails, on points drawn from a stream of its own."""
    import jax
    import numpy as np

    from ._slow_sides import slow_data

    assert claim.naive is not None
    rng, exceeded = np.random.default_rng([seed, _OWN_STREAM]), 0
    for _ in range(repetitions):
        point = jax.tree.map(lambda leaf: leaf[0], draw(case, rng, 1))
        fields = {name: getattr(point, name) for name in (*point.spaces, *point.statics)}
        lhs, rhs = claim.naive(FLOATS, slow_data(FLOATS, fields), form)
        exceeded += lhs > rhs
    return exceeded


_OWN_STREAM = 0x51074
"""Tells the draws of the slow count from those of the fast one."""


def decided(*checks: tuple[Any, ...]) -> tuple[Check, ...]:
    """Hypotheses that a setting decides, as (name, value, threshold) or with words behind."""
    return tuple(Check(name, float(value), float(at), *told) for name, value, at, *told in checks)
