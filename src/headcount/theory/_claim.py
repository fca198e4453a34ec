"""A claim: one numbered statement of a paper as an object that can be asked.

A claim knows its statement, its hypotheses, both of its sides as functions of an instance, its
right side as a function of a setting, an independent slow evaluation, and where it is tight.
"""

from __future__ import annotations

import enum
import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from ..core import BadArgument, float64
from ..core._named import Call, Named
from ..core._rounding import ordered
from ._arguments import Arguments, Function, Given, RightSide, SlowConstants
from ._asked import check_fields
from ._forms import Form, quoted
from ._frequency import Experiment
from ._in_notebooks import ClaimShown

Instance = Any
"""A frozen pytree of arrays (names and flags static) on which a claim can be evaluated."""

NaiveSides = tuple[Any, Any]


class Kind(enum.StrEnum):
    """What sort of statement a claim is."""

    IDENTITY = "identity"
    DETERMINISTIC = "deterministic"
    HIGH_PROBABILITY = "high-probability"
    EXPECTATION = "expectation"
    RATE = "rate"


class Sides(NamedTuple):
    """Both sides of `lhs <= rhs` on one instance, and every constant that went into them.

    Sides may be negative. Arrays are statements entry by entry (one for each step, say) and are
    judged at their worst entry; for an identity their entries must agree. `scale` is the size
    against which rounding is measured where both sides vanish, `trivial` a bound that holds
    without the claim, `spread` the half-width of the interval around `lhs` where it is estimated
    (expectations and rates).
    """

    lhs: Any
    rhs: Any
    constants: dict[str, Any] = {}  # noqa: RUF012  (a NamedTuple default, never mutated)
    trivial: Any = None
    scale: Any = 0.0
    spread: Any = 0.0


class Bound(NamedTuple):
    """The right side of a claim for a setting, with its constants and its trivial rival."""

    rhs: float
    constants: dict[str, float] = {}  # noqa: RUF012  (a NamedTuple default, never mutated)
    trivial: float | None = None


def overflow(error: OverflowError) -> str:
    """Which number does not fit where: -1 is not too large, but is none of unsigned integers."""
    words = str(error)
    return f"a number does not fit: {words}" if "out of bounds" in words else _TOO_LARGE


_TOO_LARGE = "a number is too large for float64"


SLACK = 1e-12
"""A hypothesis may be missed by this, relatively: rounding of float64."""


def allowed(threshold: Any) -> Any:
    """A threshold, or an array of them, with room for rounding: SLACK of its own size.

    Zero has no size; there the room is SLACK itself.
    """
    xp = jnp if isinstance(threshold, jax.Array) else np
    size = xp.abs(threshold)
    return threshold + SLACK * xp.where(size == 0, 1.0, size)


class Check(NamedTuple):
    """One hypothesis measured: it holds when value <= threshold (up to rounding).

    `told` says in the paper's own quantities how it fails.
    """

    name: str
    value: float
    threshold: float
    told: str = ""

    @property
    def margin(self) -> float:
        """threshold - value: negative when the hypothesis fails."""
        return self.threshold - self.value

    @property
    def holds(self) -> bool:
        """Whether value <= threshold, allowing one part in 10^12 of rounding."""
        return bool(self.value <= allowed(self.threshold))

    @property
    def failing(self) -> str:
        """How it fails, in words."""
        if self.told:
            return self.told
        if not math.isfinite(self.value):
            return f"{self.name}: not a finite number ({self.value})"
        value, threshold = ordered(self.value, self.threshold)
        return f"{self.name}: {value} where at most {threshold} is allowed"

    def to_json(self) -> dict[str, Any]:
        """The keys that `audit --json` prints."""
        return {
            "name": self.name,
            "value": self.value,
            "threshold": self.threshold,
            "holds": self.holds,
            "margin": self.margin,
            "failing": "" if self.holds else self.failing,
        }


@dataclass(frozen=True)
class Hypothesis:
    """A named condition value(instance) <= threshold.

    `naive` measures the same value with slow arithmetic, for rechecking a certificate. A
    threshold that depends on instance and variant is a function `threshold(instance, variant)`
    with its own slow twin `naive_threshold(num, data, variant)`. `told(instance, variant)` says
    how it fails there.
    """

    name: str
    value: Callable[[Instance], Any]
    naive: Callable[[Any, Mapping[str, Any]], Any] | None
    threshold: float | Callable[[Instance, str], Any] = 1.0
    naive_threshold: Callable[[Any, Mapping[str, Any], str], Any] | None = None
    told: Callable[[Instance, str], str] | None = None
    forms: tuple[str, ...] = ()
    """The forms that ask for it; all where it is empty."""

    def __post_init__(self) -> None:
        twin = self.naive is not None and callable(self.threshold)
        if twin != (self.naive_threshold is not None):
            raise RuntimeError(f"hypothesis {self.name!r}: a threshold and its twin come together")

    def asked_by(self, form: str) -> bool:
        """Whether this form asks for it."""
        return not self.forms or form in self.forms

    def limit(self, instance: Instance, variant: str) -> Any:
        """The threshold for one instance and variant."""
        return self.threshold(instance, variant) if callable(self.threshold) else self.threshold

    def slow_limit(self, num: Any, data: Mapping[str, Any], variant: str) -> Any:
        """The threshold in slow arithmetic."""
        if self.naive_threshold is not None:
            return self.naive_threshold(num, data, variant)
        return num.number(self.threshold)

    def check(self, instance: Instance, variant: str = "printed") -> Check:
        """The condition measured on one instance."""
        limit = float(self.limit(instance, variant))
        return Check(self.name, float(self.value(instance)), limit)


@dataclass(frozen=True)
class Family:
    """A set of admissible instances of one shape.

    `draw(rng, count)` gives `count` instances along a leading axis, as NumPy arrays; `project`
    maps the arrays of one instance into the hypotheses: it makes draws admissible and keeps
    gradient ascent inside. `differentiable` is false where only search helps; `plain` families
    are searched from their own draws alone, neither rescaled nor reshaped. The search goes on to
    other sizes, of up to `largest` entries; `project` must work at any. In a `guided` family an
    ascent that leaves a hypothesis goes back to it; the others' projections know the hypotheses.
    """

    name: str
    draw: Callable[[np.random.Generator, int], Instance]
    project: Callable[[Instance], Instance]
    differentiable: bool = True
    plain: bool = False
    largest: int = 1500
    guided: bool = False

    def sample(self, key: PRNGKeyArray) -> Instance:
        """One random admissible instance."""
        batch = self.draw(generator(key), 1)
        with float64():
            one = self.project(jax.tree.map(lambda leaf: jnp.asarray(leaf[0]), batch))
        return jax.tree.map(np.asarray, one)


def generator(key: PRNGKeyArray) -> np.random.Generator:
    """A NumPy generator of this key's stream: drawing on the host costs no compilation."""
    return np.random.default_rng(np.asarray(jax.random.key_data(key)).ravel())


def _undeclared(*arguments: Any, **named: Any) -> Any:
    raise TypeError("this claim was not declared by a function")


@dataclass(frozen=True, eq=False, repr=False)
class Claim(ClaimShown, Named):
    """One statement of a paper; see docs/theory.md and docs/claims.md."""

    id: str
    title: str
    kind: Kind
    equations: str
    statement: str
    latex: str
    sides: Callable[[Instance, str], Sides]
    naive: Callable[[Any, Mapping[str, Any], str], NaiveSides] | None
    """The slow twin; None for a lemma, which is proved on its jaxpr alone."""
    families: tuple[Family, ...]
    variants: Mapping[str, Form]
    default: str
    hypotheses: tuple[Hypothesis, ...] = ()
    targets: Callable[[], tuple[Instance, ...]] = tuple
    bound: Callable[[Any, str], Bound] | None = None
    experiment: Experiment | None = None
    quantity: str | None = None
    """What the left side is, where claims are compared by it: "loss" for head counting."""
    requires: Callable[[Any, str], tuple[Check, ...]] | None = None
    """The hypotheses that a setting alone decides: no right side is used unless they hold."""
    measured: Callable[[Any], Any] | None = None
    """The left side on an audited run, for claims whose right side is that of the setting."""
    conditions: Callable[[Any, str], tuple[Check, ...]] | None = None
    """The hypotheses that are measured on an audited run, beside those that the setting decides."""
    lower: bool = False
    """Whether it bounds from below: the left side is the bound, the right side what is measured."""
    proviso: str = ""
    """What it asks beyond what a setting can decide; told beside every number that is counted."""
    needs_event: bool = False
    """Whether the printed statement is conditioned on an event; instances use what was realised."""
    has_rival: bool = False
    """Whether constants give a bound that is known without the claim."""
    no_rival: str = ""
    """Why an inequality has no trivial rival, where it has none (`Sides.trivial`)."""
    errata: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    function: Function = field(default=_undeclared, repr=False)
    """What was declared; call the claim to evaluate it."""
    on: Any = field(default=None, repr=False)
    """The `Record` that it speaks about."""
    right: RightSide | None = field(default=None, repr=False)
    slow_constants: SlowConstants | None = field(default=None, repr=False)
    constants: Mapping[str, Mapping[str, float]] = field(default_factory=dict, repr=False)
    """The named constant of each form, as an argument of the function."""
    given: tuple[Given, ...] = field(default=(), repr=False)
    source: str = ""
    """The file that a lemma was written in; empty in a notebook."""
    factor: float = field(default=1.0, repr=False)

    def __post_init__(self) -> None:
        if self.default not in self.variants:
            raise RuntimeError(f"{self.id}: default variant {self.default!r} is not a variant")

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """What the function returns at arguments of your own."""
        return self.function(*arguments, **named)

    @property
    def raw(self) -> bool:
        """Whether its variables are computed from raw numbers, as those of a lemma are."""
        return self.on is not None and self.on.raw

    @property
    def variables(self) -> Mapping[str, Any]:
        """The spaces of the variables, by name."""
        return self.on.spaces if self.on is not None else {}

    def instance(self, **fields: Any) -> Instance:
        """An instance from its fields, for `judge`."""
        assert self.on is not None, f"{self.id} speaks about no record"
        check_fields(self.on, fields)
        return self.on(**{
            name: value if isinstance(value, int | str) else np.asarray(value, dtype=np.float64)
            for name, value in fields.items()
        })  # fmt: skip

    def twin(self, function: Function) -> Function:
        """Complete the declaration: the same sides in plain loops over any arithmetic.

        The function takes `num`, then the point (a mapping of nested lists) whole or in parts.
        """
        assert self.on is not None
        taken = Arguments(function, self.on, given=("num",))

        def naive(num: Any, data: Mapping[str, Any], form: str) -> tuple[Any, Any]:
            table = functools.cache(lambda: _slow_table(self.slow_constants, num, data, form))
            sides = function(num, **taken.of_lists(data, form, table))
            if self.right is None or isinstance(sides, tuple):
                return sides
            return sides, self.right.of(table, form, num.number)

        object.__setattr__(self, "naive", naive)
        return function

    @property
    def paper(self) -> str:
        """The citation key, the part of the id before the slash."""
        return self.id.split("/")[0]

    @functools.cached_property
    def forms(self) -> dict[str, Form]:
        """Every form with its role and its quotation."""
        return quoted(self.id, self.variants)

    def variant(self, name: str | None) -> str:
        """The variant's name, checked; None means the default one."""
        if name is None:
            return self.default
        if name not in self.variants:
            listed = ", ".join(self.variants)
            raise BadArgument(
                "variant", name, f"{self.id} has no such variant", fix=f"use {listed}"
            )
        return name

    def asked(self, form: str) -> tuple[Hypothesis, ...]:
        """The hypotheses that this form asks for."""
        return tuple(h for h in self.hypotheses if h.asked_by(form))

    def found_by(self) -> Call | None:
        """By its name in a registry, its factor and the hypotheses that it lacks."""
        from ._by_name import call_of

        return call_of(self)

    def evaluate(self, instance: Instance, variant: str) -> Sides:
        """Both sides; the right side carries the factor of `with_bound_scaled`."""
        return self.scaled(self.sides(instance, variant))

    def scaled(self, sides: Sides) -> Sides:
        """The sides with the factor of `with_bound_scaled` applied."""
        return sides if self.factor == 1.0 else sides._replace(rhs=self.factor * sides.rhs)

    def promise(self, setting: Any, variant: str) -> tuple[Bound, tuple[Check, ...]]:
        """The right side for a setting, with the hypotheses that the setting decides.

        Whoever uses the bound must look at the checks: where one fails there is no promise.
        """
        if self.bound is None:
            raise BadArgument("setting", setting, f"{self.id} has no a priori bound", fix="omit it")
        try:
            checks = self.requires(setting, variant) if self.requires is not None else ()
        except OverflowError as error:  # a hypothesis that was not evaluated does not hold
            return Bound(float("inf")), (Check(f"hypotheses: {overflow(error)}", math.nan, 0.0),)
        try:
            bound = self.bound(setting, variant)
        except OverflowError:
            return Bound(float("inf")), checks
        return bound._replace(rhs=self.factor * bound.rhs), checks

    @property
    def instance_class(self) -> type | None:
        """The class of this claim's instances, or None for one about settings only."""
        for family in self.families if self.on is None else ():
            return type(family.draw(np.random.default_rng(0), 1))
        return self.on

    def with_bound_scaled(self, factor: float) -> Claim:
        """The same claim with its right side multiplied: below the tightness it must fail."""
        return replace(self, factor=self.factor * factor)

    def without_hypothesis(self, name: str) -> Claim:
        """The same claim with one hypothesis dropped, to see that it is needed."""
        kept = tuple(h for h in self.hypotheses if h.name != name)
        if len(kept) == len(self.hypotheses):
            known = ", ".join(h.name for h in self.hypotheses) or "none"
            raise BadArgument("hypothesis", name, f"{self.id} has none of this name", fix=known)
        return replace(self, hypotheses=kept)


def _slow_table(constants: SlowConstants | None, num: Any, data: Any, form: str) -> Any:
    assert constants is not None, "this paper has no constants in slow arithmetic"
    return constants(data, form, num)
