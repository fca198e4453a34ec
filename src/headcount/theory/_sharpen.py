"""Sharpening: the best constant c of lhs <= c rhs, from both sides.

At each size the search of `falsify` gives points; the worst is made simple, polished to many
digits and proved in balls: the lower end. `verify` proves lhs <= c rhs on the whole domain for the
smallest of a few constants above it: the upper end. A point that it meets is a better start.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import jax
import numpy as np
from flint import arb

from ..core import BadArgument, check_count, float64
from ..core._checks import check_kind
from ._approach import Extremum, at_instance, extremum
from ._candidates import candidates
from ._claim import Claim, Instance, Kind
from ._closed_form import closed_form
from ._falsify import budget_of
from ._pytree import arrays_of
from ._record import sizes_of
from ._search import Budget, Candidate
from ._sharpened import Best, Sharpened
from ._shrink import fewer_bits, shrink
from ._spaces import Ball, Box, Orthogonal, Sphere
from ._verification import Answer
from ._verify import verify

_EXCESS, _WIDER = (1e-3, 1e-6, 1e-9, 1e-12), (1e-2, 1e-1, 1.0)
"""Shares above the lower end that are tried as upper ends, in turn."""
_CHEAP = 300
"""After a proof with more boxes none is tried for a smaller constant."""
_STARTS, _TRIED, _RETRIES = 3, 12, 2
_KEPT = 1e-9
"""What a simpler point may lose; polishing gains it back."""
_EDGE = 1e-7
_SHOWN = 40

Tell = Callable[[str, float], None]


def sharpen(
    claim: Claim,
    variant: str | None = None,
    *,
    budget: str | int | Budget = "default",
    boxes: int = 5_000,
    seed: int = 0,
    progress: Tell | None = None,
) -> Sharpened:
    """The best constant c of lhs <= c rhs, for each size an interval [found, proved].

    `boxes` are those of each attempt to prove an upper end; with 0 there is none. `progress` is
    told what is done, and which share of all.
    """
    check_kind("claim", claim, Claim, fix="take one of theory.claims, or a lemma")
    name, most = claim.variant(variant), check_count("boxes", boxes, least=0)
    if claim.kind is not Kind.DETERMINISTIC:
        problem = f"is of kind {claim.kind}: there is no constant between its sides"
        raise BadArgument("claim", claim.id, problem, fix="choose an inequality of two numbers")
    tell = progress if progress is not None else lambda words, share: None
    started = time.perf_counter()
    found, instances, _ = candidates(
        claim, name, budget_of(budget, claim.raw), seed, False, lambda words: tell(words, 0.0)
    )
    groups = _by_size(claim, found, list(claim.variants).index(name))
    if not groups:
        problem = "has no point at which its sides can be compared"
        raise BadArgument("claim", claim.id, problem, fix="look at it with headcount falsify")
    rows = []
    with float64():
        for done, (key, group) in enumerate(sorted(groups.items())):
            sizes = dict(key)
            tell(f"{claim.id} [{name}]: {_words(sizes)}", (done + 1) / (len(groups) + 1))
            rows.append(_sharpest(claim, name, sizes, group, most))
    return Sharpened(claim.id, name, tuple(rows), instances, time.perf_counter() - started)


def _by_size(
    claim: Claim, found: list[Candidate], own: int
) -> dict[tuple[tuple[str, int], ...], list[Instance]]:
    """The worst instances of each choice of sizes."""
    groups: dict[tuple[tuple[str, int], ...], list[Instance]] = {}
    for candidate in sorted(found, key=lambda c: -c.scores[own]):
        if candidate.scores[own] > -np.inf:
            key = tuple(sizes_of(candidate.instance).items()) if claim.raw else ()
            groups.setdefault(key, []).append(jax.tree.map(np.asarray, candidate.instance))
    return groups


def _words(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sizes.items()) or "as declared"


def _sharpest(
    claim: Claim, variant: str, sizes: dict[str, int], group: list[Instance], boxes: int
) -> Best:
    """Both ends at one choice of sizes."""
    best = _lower_end(claim, variant, group)
    if best is None:
        return Best(sizes, None, None, problem="balls do not tell the ratio")
    if best.unbounded:
        return _told(sizes, best, None, "the ratio grows without bound")
    proved: float | None = None
    for _ in range(_RETRIES + 1):
        proved, problem, worse = _upper_end(claim, variant, sizes, _low(best), boxes)
        other = None if worse is None else _lower_end(claim, variant, [worse])
        if other is None or not other.seen.ratio > best.seen.ratio:
            break
        best = other
    return _told(sizes, best, proved, problem)


def _lower_end(claim: Claim, variant: str, group: list[Instance]) -> Extremum | None:
    """The best point that is proved, of the worst few, each as it is and made simple."""
    best, looked = None, 0
    for instance in group[:_TRIED]:
        here = _extremum(claim, variant, instance)
        looked += here is not None
        if here is not None and (best is None or _better(here, best)):
            best = here
        if best is not None and (best.digits or best.unbounded or looked == _STARTS):
            break
    return best


def _extremum(claim: Claim, variant: str, instance: Instance) -> Extremum | None:
    """The extremal point near an instance, from a simpler point where that serves as well."""
    start = at_instance(claim, variant, instance)
    if start is not None and not start.seen.holds:  # an ulp outside: with fewer bits it is inside
        instance = jax.tree.map(fewer_bits(40), instance)
        start = at_instance(claim, variant, instance)
    if start is None or not start.seen.holds:
        return None
    if not claim.raw:  # a record has many numbers, and where they lie is measured
        return start
    least = float(start.seen.ratio.mid()) * (1 - _KEPT)
    found = []
    for point in (shrink(claim, variant, instance, least), instance):
        near = at_instance(claim, variant, _off_the_edge(point))
        found.append(extremum(near if near is not None and near.seen.holds else start))
        if found[-1].digits or found[-1].unbounded:
            break
    inside = [end for end in found if end.seen.holds] or [start]
    return max(inside, key=lambda end: (end.digits, float(end.seen.ratio.mid())))


def _better(one: Extremum, other: Extremum) -> bool:
    return bool(one.seen.ratio.mid() > other.seen.ratio.mid())


def _off_the_edge(instance: Instance) -> Instance:
    """Raw numbers of (nearly) the same point at which no projection is at its kink."""
    fields, spaces = arrays_of(instance), type(instance).spaces
    for name, space in spaces.items():
        if isinstance(space, Box):
            x, width = np.array(fields[name], dtype=float), space.high - space.low
            x = np.where(x <= space.low + _EDGE * width, space.low - width, x)
            fields[name] = np.where(x >= space.high - _EDGE * width, space.high + width, x)
        elif isinstance(space, Ball) and not isinstance(space, Sphere):
            x = np.array(fields[name], dtype=float)
            axes = tuple(range(space.batch, x.ndim))
            norms = np.sqrt(np.sum(x * x, axis=axes, keepdims=True)) if axes else np.abs(x)
            fields[name] = np.where(norms >= space.radius * (1 - _EDGE), 2 * x, x)
    return type(instance)(**fields)


def _low(best: Extremum) -> float:
    """The ratio, rounded down."""
    low = best.seen.ratio.lower()
    value = float(low)
    return value if arb(value) <= low else math.nextafter(value, -math.inf)


def _upper_end(
    claim: Claim, variant: str, sizes: dict[str, int], found: float, boxes: int
) -> tuple[float | None, str, Instance | None]:
    """The smallest constant that is proved, or why there is none; and a worse point, if met."""
    if not (claim.raw and boxes and found > 0):
        words = "not asked for" if claim.raw else "verify takes lemmas with bounded variables"
        return None, words if found > 0 else "the left side is zero", None
    proved: float | None = None
    problem = f"verify leaves some of the domain open with {boxes} boxes"
    trials = list(_EXCESS)
    while trials:
        constant = found * (1 + trials.pop(0))
        scaled = replace(claim, factor=claim.factor * constant)
        try:
            answer = verify(scaled, variant, boxes=boxes, tolerance=0.0, sizes=sizes)
        except BadArgument as error:
            return None, error.problem, None
        if answer.answer is Answer.FALSE:
            return proved, "", _as_instance(claim, answer.instance, sizes)
        if answer.answer is Answer.PROVED:
            proved, problem = constant, ""
            if constant > found * (1 + _EXCESS[0]) or answer.boxes > _CHEAP:
                break
        elif proved is not None:
            break
        else:
            problem = answer.problem or problem
            trials = [excess for excess in _WIDER if found * (1 + excess) > constant]
    return proved, problem, None


def _as_instance(claim: Claim, points: Mapping[str, Any], sizes: dict[str, int]) -> Instance | None:
    """The instance of a point that `verify` met; None where raw numbers are others."""
    if any(isinstance(space, Orthogonal) for space in claim.variables.values()):
        return None
    static = {name: sizes[name.removeprefix("size_")] for name in claim.on.statics}
    return claim.instance(**points, **static)


def _told(sizes: dict[str, int], best: Extremum, proved: float | None, problem: str) -> Best:
    digits = best.digits
    number = best.seen.ratio.mid().str(max(digits, 17), radius=False)
    kind = "attained"
    if best.unbounded:
        kind = "unbounded"
    elif best.words:
        kind = "a limit"
    elif best.degenerate:
        kind = "degenerate"
    if not digits and not best.unbounded:
        kind = f"{kind}, not polished"
    return Best(
        sizes, _low(best), proved, _plain(number), digits,
        closed_form(best.seen.ratio.mid().str(digits + 10, radius=False), digits),
        _shown_point(best), best.words, kind, problem,
    )  # fmt: skip


def _plain(number: str) -> str:
    return number.rstrip("0").rstrip(".") if "." in number and "e" not in number else number


def _shown_point(best: Extremum) -> dict[str, Any]:
    """The points of the variables in decimals; of an array that moves to a limit, its direction."""
    ratio, at, found = best.ratio, 0, {}
    points = ratio.points(best.free) if not best.words else {}
    fields = arrays_of(ratio.start)
    for name, x in fields.items():
        if isinstance(x, (str, int)):
            continue
        own = best.free[at : at + np.size(x)]
        at += np.size(x)
        array = np.array(own, dtype=object).reshape(np.shape(x))
        found[name] = _decimals(points.get(name, array) if name in points else array)
    return found


def _decimals(array: Any) -> Any:
    """Nested lists of decimals; what is nothing beside the largest entry is zero."""
    entries = np.asarray(array, dtype=object)
    largest = max((abs(arb(x)).mid() for x in entries.ravel()), default=arb(0))

    def shown(x: Any) -> str:
        middle = arb(x).mid()
        if abs(middle) <= largest * arb(10) ** -_SHOWN:
            return "0"
        return _plain(middle.str(_SHOWN, radius=False))

    return (
        np.array([shown(x) for x in entries.ravel()], dtype=object).reshape(entries.shape).tolist()
    )
