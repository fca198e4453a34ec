"""Proofs of violations in ball arithmetic, by two evaluations that share nothing.

Inputs are exact float64 values. Each evaluation encloses every hypothesis and both sides, at a
precision that is raised until they separate: the violation is proved when the enclosure of lhs
lies above that of rhs and every hypothesis' enclosure lies inside its threshold. The slow twin is
one evaluation; the other interprets the jaxpr of the fast path.
"""

import enum
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import numpy as np
from flint import arb

from ..core._rounding import ordered
from ._ball_jaxpr import BallProgram, Unsupported
from ._balls import Ball, Undecided
from ._claim import Claim, Instance, Kind
from ._pytree import arrays_of
from ._verdict import outside_domain, worst_entry, worst_index
from .slow import balls
from .slow_sides import slow_checks, slow_sides

PRECISIONS = (96, 192, 384, 768)
"""Bits, tried in turn: twice as many where enclosures still overlap."""


CONSTANT_ULPS = 8
"""Python computes constants such as 4/(3 sqrt 3) in a few roundings: each is widened by this."""


class Status(enum.StrEnum):
    """What an evaluation says about an alleged violation."""

    PROVED = "proved"
    REFUTED = "refuted"
    UNDECIDED = "undecided"
    UNAVAILABLE = "unavailable"


class EnclosedCheck(NamedTuple):
    """One hypothesis as its enclosures decide it, with no allowance for rounding."""

    name: str
    value: float
    threshold: float
    holds: bool | None
    """None where the enclosures of value and threshold overlap."""
    margin: float

    def to_json(self) -> dict[str, Any]:
        """The keys that `recheck --json` prints, those of `Check`."""
        return self._asdict()

    @property
    def shown(self) -> str:
        """One line whose numbers order as they were decided to."""
        value, threshold = ordered(self.value, self.threshold, 6)
        if self.holds is False:
            by = f" by {-self.margin:.3g}" if self.value == self.threshold else ""
            return f"{self.name}: {value} <= {threshold} fails{by}"
        return f"{self.name}: {value} <= {threshold} {'is open' if self.holds is None else 'holds'}"


@dataclass(frozen=True)
class Evaluation:
    """One evaluation's answer, with the quantity that decided it and the sides it saw."""

    name: str
    status: Status
    reason: str
    bits: int
    lhs: float = float("nan")
    rhs: float = float("nan")
    hypotheses: tuple[EnclosedCheck, ...] = ()
    excess: str = ""
    """lhs - rhs at the same entry, as text: float64 may not tell the two sides apart."""
    ratio: float = float("nan")
    """lhs/rhs at the same entry, where the right side is known to be positive."""
    finite: bool = True
    """Whether everything that was compared has a finite enclosure."""


@dataclass(frozen=True)
class Proof:
    """Both evaluations of one instance."""

    twin: Evaluation
    traced: Evaluation

    @property
    def status(self) -> Status:
        """Proved by every evaluation there is; refuted by one."""
        found = {e.status for e in (self.twin, self.traced)} - {Status.UNAVAILABLE}
        if Status.REFUTED in found:
            return Status.REFUTED
        return Status.PROVED if found == {Status.PROVED} else Status.UNDECIDED

    @property
    def decisive(self) -> Evaluation:
        """The slow twin, or the jaxpr for a lemma that has no twin."""
        return self.traced if self.twin.status is Status.UNAVAILABLE else self.twin

    @property
    def proved(self) -> bool:
        """Whether the violation is proved."""
        return self.status is Status.PROVED

    @property
    def refuted(self) -> bool:
        """Whether the instance is shown not to be a violation."""
        return self.status is Status.REFUTED

    @property
    def reason(self) -> str:
        """What decided, or what did not separate."""
        for evaluation in (self.twin, self.traced):
            if evaluation.status is self.status or evaluation.status is Status.REFUTED:
                return f"{evaluation.name}: {evaluation.reason}"
        return f"{self.decisive.name}: {self.decisive.reason}"


Checks = Sequence[tuple[str, Any, Any]]
"""Hypotheses as (name, value, limit)."""


def prove(claim: Claim, variant: str, instance: Instance) -> Proof:
    """Decide whether an instance violates a variant of a claim."""
    problem = outside_domain(instance)
    if problem is not None:
        outside = Evaluation("domain", Status.REFUTED, problem, 0)
        return Proof(outside, outside)
    fields = arrays_of(instance)

    rest = functools.cache(lambda: _without_twins(claim, variant, instance))

    def by_twin(bits: int) -> Evaluation:
        with balls(bits) as num:
            checks = [*slow_checks(claim, num, fields, variant), *rest()(bits)]
            return _decide(claim, checks, lambda: slow_sides(claim, num, fields, variant))

    program = functools.cache(
        lambda: BallProgram(traced(claim, variant), instance, ulps=CONSTANT_ULPS)
    )

    def by_jaxpr(bits: int) -> Evaluation:
        measured, lhs, rhs = program()(bits)
        names = [h.name for h in claim.asked(variant)]
        checks = [(n, v, t) for n, (v, t) in zip(names, measured, strict=True)]
        return _decide(claim, checks, lambda: (_flat(lhs), _flat(rhs)))

    none = Evaluation("slow twin", Status.UNAVAILABLE, "a lemma has none", 0)
    twin = none if claim.naive is None else _raise("slow twin", by_twin)
    return Proof(twin, _raise("jaxpr", by_jaxpr, alone=claim.naive is None))


def _without_twins(claim: Claim, variant: str, instance: Instance) -> Callable[[int], Checks]:
    """The hypotheses that have no slow twin, enclosed on their jaxpr at so many bits."""
    rest = [h for h in claim.asked(variant) if h.naive is None]
    if not rest:
        return lambda bits: []
    program = BallProgram(
        lambda i: [(h.value(i), h.limit(i, variant)) for h in rest], instance, ulps=CONSTANT_ULPS
    )
    return lambda bits: [(h.name, *pair) for h, pair in zip(rest, program(bits), strict=True)]


def traced(claim: Claim, variant: str) -> Callable[[Instance], Any]:
    """Hypotheses and both sides as one function of the instance, for the interpreter."""

    def function(instance: Instance) -> Any:
        measured = [(h.value(instance), h.limit(instance, variant)) for h in claim.asked(variant)]
        sides = claim.evaluate(instance, variant)
        lhs, rhs = jax.numpy.broadcast_arrays(
            jax.numpy.asarray(sides.lhs), jax.numpy.asarray(sides.rhs)
        )
        return measured, lhs, rhs

    return function


def _raise(name: str, evaluate: Callable[[int], Evaluation], *, alone: bool = False) -> Evaluation:
    """Evaluate at rising precision until decided.

    An evaluation that fails says nothing about the instance.
    """
    last = Evaluation(name, Status.UNDECIDED, "not evaluated", 0)
    for bits in PRECISIONS:
        try:
            last = replace(evaluate(bits), name=name, bits=bits)
        except Undecided as error:
            last = Evaluation(name, Status.UNDECIDED, str(error), bits)
        except Unsupported as error:
            return Evaluation(name, Status.UNAVAILABLE, str(error), bits)
        except (ArithmeticError, ValueError, IndexError, KeyError, TypeError) as error:
            status = Status.UNAVAILABLE if alone else Status.UNDECIDED
            return Evaluation(name, status, f"cannot be evaluated: {error!r}", bits)
        if last.status is not Status.UNDECIDED:
            break
    if alone and last.status is Status.UNDECIDED and not last.finite:
        reason = f"cannot be enclosed: {last.reason}"
        return replace(last, status=Status.UNAVAILABLE, reason=reason)
    return last


def _at_most(x: Any, y: Any) -> bool | None:
    """Whether x <= y, or None where the enclosures leave it open."""
    left, right = _arb(x), _arb(y)
    if left <= right:
        return True
    return False if left > right else None


def _flat(enclosure: Any) -> list[Any]:
    return list(np.ravel(np.asarray(enclosure, dtype=object)))


def _arb(x: Any) -> arb:
    return x.arb if isinstance(x, Ball) else arb(x)


def _decide(
    claim: Claim, checks: Checks, sides: Callable[[], tuple[Sequence[Any], Sequence[Any]]]
) -> Evaluation:
    measured = tuple(_enclosed(*check) for check in checks)
    for check in measured:
        if check.holds is False:
            by = f" by {-check.margin:.3g}" if check.value == check.threshold else ""
            text = f"{check.name} fails: {check.value!r} > {check.threshold!r}{by}"
            return Evaluation("", Status.REFUTED, text, 0, hypotheses=measured)
    left, right = sides()
    below = [_at_most(x, y) for x, y in zip(left, right, strict=True)]
    answer = _seen(claim, left, right, below, measured)
    for check in measured:
        if check.holds is None:
            finite = np.isfinite(check.value) and not np.isnan(check.threshold)
            text = f"{check.name}: value and threshold do not separate"
            return replace(answer, reason=text, finite=bool(finite))
    if claim.kind is Kind.IDENTITY:
        above = [_at_most(y, x) for x, y in zip(left, right, strict=True)]
        if False in below or False in above:
            return replace(answer, status=Status.PROVED, reason="the two sides differ")
        if all(below) and all(above):
            return replace(answer, status=Status.REFUTED, reason="the two sides are equal")
    elif False in below:
        return replace(answer, status=Status.PROVED, reason="the left side exceeds the right")
    elif all(below):
        text = "the left side does not exceed the right"
        return replace(answer, status=Status.REFUTED, reason=text)
    for name, side in (("left", left), ("right", right)):
        if not all(_arb(x).is_finite() for x in side):
            return replace(answer, reason=f"the {name} side is not finite", finite=False)
    return replace(answer, reason="left and right side do not separate")


def _enclosed(name: str, value: Any, limit: Any) -> EnclosedCheck:
    x, y = _arb(value), _arb(limit)
    return EnclosedCheck(name, float(x), float(y), _at_most(x, y), float(y - x))


def _seen(
    claim: Claim,
    left: Sequence[Any],
    right: Sequence[Any],
    below: Sequence[bool | None],
    measured: tuple[EnclosedCheck, ...],
) -> Evaluation:
    """Both sides at the worst of the violating entries, or of all where none is known to violate.

    Of an identity it is the entry that differs most.
    """
    pairs = [(_arb(x), _arb(y)) for x, y in zip(left, right, strict=True)]
    if claim.kind is Kind.IDENTITY:
        x, y = max(pairs, key=lambda pair: abs(pair[0] - pair[1]).mid())
    else:
        violating = [pair for pair, fine in zip(pairs, below, strict=True) if fine is False]
        chosen = violating or pairs
        x, y = chosen[worst_index(*zip(*_middles(*zip(*chosen, strict=True)), strict=True))]
    excess = (x - y).str(3, radius=False)
    sides = float(x), float(y)
    return Evaluation("", Status.UNDECIDED, "", 0, *sides, measured, excess, _quotient(x, y))


def _quotient(x: arb, y: arb) -> float:
    """x/y, or y/x of two negative numbers, as `worst_entry` has it; NaN where neither is."""
    if y > 0:
        return float(x / y)
    return float(y / x) if x < 0 else float("nan")


def _middles(left: Sequence[Any], right: Sequence[Any]) -> list[tuple[float, float]]:
    return [(float(_arb(x)), float(_arb(y))) for x, y in zip(left, right, strict=True)]


def ratio_in_balls(claim: Claim, variant: str, instance: Instance) -> float | None:
    """left/right at the worst entry by the slow twin, where float64 may see its rounding only.

    None where the twin's enclosures do not decide a comparison on the way.
    """
    with balls(PRECISIONS[1]) as num:
        try:
            sides = slow_sides(claim, num, arrays_of(instance), variant)
        except (Undecided, ArithmeticError, ValueError):
            return None
        _, _, ratio = worst_entry(*zip(*_middles(*sides), strict=True))
    return ratio if np.isfinite(ratio) else None
