"""Suprema that no point attains: towards zero, infinity or one another, the ratio still grows.

A limit is looked at far along the way, at 2^128 or 2^-128 times the distance: there the ratio is
the limit to 38 digits or more. What else can be chosen is polished there, and so on until no way
is left on which the ratio grows.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
from flint import arb

from ._balls import at_precision
from ._claim import Claim, Instance
from ._newton import Polished, polish
from ._pytree import arrays_of
from ._ratio import BITS, Numbers, Ratio, Scale, Seen

FAR = 128
_STEPS = (24, 64, 96, FAR)
_RAISED = 1e-14
"""A ratio that grows by less, relatively, does not."""
_UNBOUNDED = 1.2
"""A ratio that still grows by this factor between 2^64 and 2^128 has no bound that is seen."""
_LOST, _SETTLED = 1e-2, 1e-9
"""What a way may lose before it is polished; how little changes at its far end."""
_ENTRIES, _ROUNDS = 12, 4


@dataclass(frozen=True)
class Extremum:
    """Where the ratio is largest, as far as is seen, and how that point is approached."""

    ratio: Ratio
    free: Numbers
    seen: Seen
    digits: int = 0
    """To how many digits the ratio is that of the extremum; 0 where that is not known."""
    words: tuple[str, ...] = ()
    degenerate: bool = False
    unbounded: bool = False


@dataclass(frozen=True)
class _Way:
    """One way: which numbers, by which sign of the power, measured from which others."""

    places: tuple[int, ...]
    sign: int
    words: str
    partners: tuple[int, ...] = ()


def at_instance(claim: Claim, variant: str, instance: Instance) -> Extremum | None:
    """The point of an instance as it is; None where balls do not tell the ratio."""
    leaves = jax.tree.leaves(jax.tree.map(np.asarray, instance))
    free = [arb(float(x)) for leaf in leaves for x in np.ravel(leaf)]
    ratio = Ratio(claim, variant, instance, Scale.plain(len(free)))
    seen = ratio.seen(free)
    return None if seen is None else Extremum(ratio, free, seen)


def extremum(start: Extremum) -> Extremum:
    """The extremal point near another one."""
    instance = start.ratio.start
    here = best = _polished(start.ratio, start.free, 80, ()) or start
    for _ in range(_ROUNDS):
        further = _further(here, instance)
        if further is None:
            break
        here = further
        if here.digits or _above(here, best):
            best = here
        if here.unbounded:
            break
    return best


def _above(one: Extremum, other: Extremum, by: float = _RAISED) -> bool:
    with at_precision(BITS):
        return bool(one.seen.ratio.mid() > other.seen.ratio.mid() * (1 + by))


def _further(here: Extremum, instance: Instance) -> Extremum | None:
    """The end of the best way: of whole variables if one leads on, else of single entries.

    From a regular point the ratio must rise. Elsewhere a way that loses a little may be the right
    one: what is chosen beside it was chosen for another distance.
    """
    regular = here.digits > 0 and not here.degenerate
    for ways in _ways(here, instance):
        found = []
        for way in ways:
            end = _along(here, way)
            if end is None or not _above(end, here, _RAISED if regular else -_LOST):
                continue
            if end.unbounded:
                return end
            end = _polished(end.ratio, end.free, end.digits, end.words)
            if end is not None and _above(end, here, _RAISED if regular else -_LOST / 1000):
                found.append(end)
        if found:
            return max(found, key=lambda end: (end.digits > 0, float(end.seen.ratio.mid())))
    return None


def _polished(ratio: Ratio, free: Numbers, most: int, words: tuple[str, ...]) -> Extremum | None:
    """The point polished, where that helps."""
    found: Polished | None = polish(ratio, free)
    if found is None:
        seen = ratio.seen(free)
        return None if seen is None else Extremum(ratio, free, seen, 0, words)
    digits = min(found.digits, most, max(found.seen.ratio.rel_accuracy_bits(), 0) * 3 // 10)
    return Extremum(ratio, found.free, found.seen, digits, words, found.degenerate)


def _ways(here: Extremum, instance: Instance) -> tuple[list[_Way], list[_Way], list[_Way]]:
    """Of variables to zero, infinity and one another; of entries; of all variables together."""
    at, blocks = 0, dict[str, tuple[tuple[int, ...], tuple[int, ...]]]()
    fields = {n: x for n, x in arrays_of(instance).items() if not isinstance(x, (str, int))}
    spaces: Any = getattr(type(instance), "spaces", {})
    for name, x in fields.items():
        places = tuple(range(at, at + np.size(x)))
        at += np.size(x)
        if not getattr(spaces.get(name), "discrete", False):
            blocks[name] = np.shape(x), places
    whole, entries, joint = list[_Way](), list[_Way](), list[_Way]()
    for name, (shape, places) in blocks.items():
        whole += _both_ways(places, name, f"|{name}| -> infinity")
        if len(places) > 1 and at <= _ENTRIES:
            for place, index in zip(places, np.ndindex(shape), strict=True):
                entry = f"{name}[{', '.join(map(str, index))}]"
                sign = "-" if here.free[place] < 0 else ""
                entries += _both_ways((place,), entry, f"{entry} -> {sign}infinity")
    for (one, (shape, places)), (two, (other, further)) in itertools.combinations(
        blocks.items(), 2
    ):
        if shape == other and type(spaces.get(one)) is type(spaces.get(two)):
            whole.append(_Way(further, -1, f"{two} -> {one}", places))
    if len(blocks) > 1:
        every = tuple(k for _, places in blocks.values() for k in places)
        joint += _both_ways(every, "all", "all -> infinity")
    return whole, entries, joint


def _both_ways(places: tuple[int, ...], name: str, infinite: str) -> list[_Way]:
    return [_Way(places, -1, f"{name} -> 0"), _Way(places, 1, infinite)]


def _along(here: Extremum, way: _Way) -> Extremum | None:
    """The far end of a way, if the ratio settles there, or grows without end."""
    with at_precision(here.ratio.bits):
        return _end_of(here, way)


def _end_of(here: Extremum, way: _Way) -> Extremum | None:
    old = here.ratio.scale
    free, powers, partner = (list(here.free), list(old.powers), list(old.partner))
    if any(powers[k] or partner[k] >= 0 for k in (*way.places, *way.partners)):
        return None
    for k, j in zip(way.places, way.partners, strict=False):
        free[k], partner[k] = (free[k] - free[j]).mid(), j
    largest = max((abs(float(free[k])) for k in way.places), default=0.0)
    if not 0 < largest < np.inf:
        return None
    start = round(float(np.log2(largest)))
    for k in way.places:
        free[k] = (free[k] * arb(2) ** -start).mid()

    def end(step: int) -> Extremum | None:
        own = [start + way.sign * step if k in way.places else p for k, p in enumerate(powers)]
        ratio = here.ratio.at(Scale(tuple(own), tuple(partner)))
        seen = ratio.seen(free)
        words = (*here.words, way.words)
        return None if seen is None or not seen.holds else Extremum(ratio, free, seen, 80, words)

    near = end(_STEPS[0])
    if near is None or not _above(near, here, -_LOST):
        return None
    ends = [one for one in map(end, _STEPS) if one is not None]
    if len(ends) < len(_STEPS):
        return None
    values = [one.seen.ratio.mid() for one in ends]
    if values[-1] > _UNBOUNDED * values[1] and all(b > a for a, b in itertools.pairwise(values)):
        return replace(ends[-1], digits=0, unbounded=True)
    settled = abs(values[-1] / values[-2] - 1).mid()
    if not settled < _SETTLED:
        return None
    digits = 80 if settled == 0 else int(-float(settled.log() / arb(10).log())) + 9
    return replace(ends[-1], digits=min(digits, 80))
