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
from typing import Any

import jax.numpy as jnp

from ..core import BadArgument
from ._arguments import Arguments, Function, Given, Right, RightSide, SlowConstants
from ._claim import Bound, Check, Claim, Hypothesis, Kind, Sides
from ._forms import Form, Forms, forms_of
from ._frequency import Experiment, delta_of
from ._record import Record, Shape
from ._registry import claims
from ._table import used
from .slow import FLOATS

Constants = Callable[[Any, str], Any]
"""constants(symbols, form): the paper's table, for whatever has the symbols (`Record.symbols`)."""


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
        searched: bool = True,
        **more: Any,
    ) -> Callable[[Function], Claim]:
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
        variants = forms_of(forms)
        noted = [form.erratum for form in variants.values() if form.erratum is not None]
        return lambda function: claims.add(
            claim_of(
                function, f"{self.paper}/{name}", on, variants, title=title, kind=kind,
                equations=where, latex=says, table=self.table, right=right, promise=promise,
                trivial=trivial, no_rival=no_rival, given=given, asks=asks,
                families=on.families(shapes) if searched else (),
                targets=tight if callable(tight) else lambda: tuple(tight),
                errata=tuple(dict.fromkeys([*notes, *noted])),
                references=(f"{self.paper}, {proved or where}", *also),
                slow_constants=self.slow_constants, **more,
            )
        )  # fmt: skip

    def identity(self, name: str, title: str, **more: Any) -> Callable[[Function], Claim]:
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
    ) -> Callable[[Function], Claim]:
        """Declare an inequality that may fail with probability `delta(case)`.

        `draw(case, rng, count)` gives points along a leading axis; the twin counts on points that
        it draws one by one from a stream of its own. See `Experiment` for the rest.
        """

        def declare(function: Function) -> Claim:
            own: list[Claim] = []

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

    def table(self, symbols: Any, form: str) -> Any:
        """The paper's constants for whatever has the symbols: a point, a run, a setting."""
        assert self.constants is not None, f"{self.paper} declares no constants"
        return self.constants(symbols, form)


def claim_of(
    function: Function,
    identifier: str,
    on: type[Record],
    forms: Mapping[str, Form],
    *,
    kind: Kind = Kind.DETERMINISTIC,
    table: Constants | None = None,
    right: Right | None = None,
    promise: Right | None = None,
    trivial: Callable[[Any], Any] | None = None,
    given: tuple[Given, ...] = (),
    asks: tuple[str, ...] | None = None,
    constants: Mapping[str, Mapping[str, float]] | None = None,
    **more: Any,
) -> Claim:
    """A function as a claim about a record: its sides, its hypotheses, its bound for a setting."""
    named = constants if constants is not None else {}
    taken = Arguments(function, on, given=[name for own in named.values() for name in own])
    shared = None if right is None else RightSide(right)
    asked = on.hypotheses(taken.fields(on) if asks is None else asks)
    promised = shared if promise is None else RightSide(promise)
    if promised is not None and "bound" not in more:
        more["bound"] = _bound(promised, trivial, table)
    return Claim(
        id=identifier,
        kind=kind,
        statement=" ".join(_words(function, on, more["title"]).split()),
        sides=_sides(function, taken, shared, trivial, table, named),
        naive=None,
        variants=forms,
        default=next((name for name, form in forms.items() if not form.fails), next(iter(forms))),
        hypotheses=(*asked, *(_hypothesis(one, on, table) for one in given)),
        function=function,
        on=on,
        right=shared,
        given=given,
        constants=named,
        has_rival=trivial is not None,
        **more,
    )


def _words(function: Function, on: type[Record], title: str) -> str:
    """The docstring; of a lemma its first paragraph."""
    text = inspect.cleandoc(function.__doc__ or title)
    return text.split("\n\n")[0] if on.raw else text


def _sides(
    function: Function,
    taken: Arguments,
    right: RightSide | None,
    trivial: Any,
    constants: Constants | None,
    named: Mapping[str, Mapping[str, float]],
) -> Callable[[Any, str], Sides]:
    def sides(point: Any, form: str) -> Sides:
        table = functools.cache(lambda: _table(constants, point, form))
        found = function(**taken.of(point, form, table), **named.get(form, {}))
        if taken.kind.raw:
            lhs, rhs = found
            found = Sides(number(lhs), number(rhs))
        elif not isinstance(found, Sides):
            found = Sides(*found) if isinstance(found, tuple) else Sides(found, None)
        if right is not None and found.rhs is None:
            found = found._replace(rhs=right.of(table, form, float))
        if trivial is not None:
            found = found._replace(trivial=trivial(table()))
        known = used(table()) if table.cache_info().currsize else {}
        return found._replace(constants={**known, **found.constants})

    return sides


def _table(constants: Constants | None, point: Any, form: str) -> Any:
    assert constants is not None, "no constants are declared"
    return constants(point.symbols, form)


def _bound(
    right: RightSide, trivial: Any, constants: Constants | None
) -> Callable[[Any, str], Bound]:
    def bound(setting: Any, form: str) -> Bound:
        assert constants is not None, "no constants are declared"
        table = functools.cache(lambda: constants(setting, form))
        known = None if trivial is None else float(trivial(table()))
        rhs = float(right.of(table, form, float))
        return Bound(rhs, used(table()) if table.cache_info().currsize else {}, known)

    return bound


def _hypothesis(given: Given, on: type[Record], constants: Constants | None) -> Hypothesis:
    """A condition value <= threshold; functions take parts of the point by name."""

    def asked(part: Any) -> Callable[[Any, str], Any]:
        taken = Arguments(part, on)
        return lambda point, form: part(
            **taken.of(point, form, lambda: _table(constants, point, form))
        )

    def measured(part: Any) -> Callable[[Any, str], Any]:
        if not callable(part):
            return lambda point, form: float(part)
        found = asked(part)
        return (lambda point, form: number(found(point, form))) if on.raw else found

    value, limit = measured(given.value), given.threshold
    at = measured(limit) if callable(limit) else float(limit)
    told = asked(given.told) if given.told is not None else None
    return Hypothesis(
        given.name, lambda point: value(point, "printed"), None, at, told=told, forms=given.forms
    )


def number(value: Any) -> Any:
    """What a user's function returns, integers as floats: search, verdicts and balls need those."""
    array = jnp.asarray(value)
    return array.astype(float) if array.dtype.kind in "iu" else array


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

    from .slow_sides import slow_data

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
