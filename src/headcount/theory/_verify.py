"""Verification: lhs <= rhs on a whole box, by interval branch and bound.

For lemmas with at most six real variables on a bounded domain. Many boxes are looked at by the
thousand in float64 intervals (`_sieve.py`), few in balls. A box is closed when the
enclosure of rhs - lhs lies above zero: the natural one, or the mean-value form
g(mid) + g'(box) (box - mid) with the derivative enclosed on the lemma's own jaxpr. Where a
derivative keeps its sign, or g is convex and grows away from a face, the box is replaced by the
face at which g is smallest, which decides sides that meet on a face. Boxes that stay open are
halved. Sides that meet inside the domain can only be separated up to a factor 1 + tolerance, and
the result says so. Derivatives (`_slopes.py`) are used only on boxes where no side may jump.
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
import numpy as np
from flint import arb

from ..core import BadArgument, check_count, check_nonnegative
from ._asked import claim_of
from ._ball_jaxpr import BallProgram, Unsupported
from ._balls import Undecided, hull
from ._cells import (
    Cell,
    Point,
    at_point,
    cut,
    halves,
    lowest_face,
    middle,
    probes,
    volume,
)
from ._charts import Chart, chart
from ._claim import Claim, Kind
from ._lemma_problems import check_program
from ._possible_sizes import check_sizes
from ._prove import CONSTANT_ULPS
from ._sieve import CLOSE, CLOSED, OPEN, Sieve
from ._slopes import derivatives
from ._spaces import Size, length
from ._statement import number
from ._verification import Answer, Verification

MOST_VARIABLES = 6
MOST_CASES = 1024
"""Combinations of discrete choices and sizes that are gone through one by one."""
BITS = 96
TOLERANCE = 1e-9


def verify(
    lemma: Claim | str,
    variant: str | None = None,
    *,
    boxes: int = 20_000,
    tolerance: float = TOLERANCE,
    sizes: Mapping[str, int] | None = None,
) -> Verification:
    """Prove lhs <= rhs on the whole domain, or find a counterexample, or say what stays open.

    `lemma` is a lemma or the name of a fact. All sizes are gone through, or the one choice of
    `sizes`.
    """
    lemma = claim_of(lemma)
    name = lemma.variant(variant)
    most = check_count("boxes", boxes)
    check_nonnegative("tolerance", tolerance)
    if not lemma.raw:
        fix = "write it as a lemma whose variables have bounded spaces"
        raise BadArgument("lemma", lemma.id, "is a claim about records", fix=fix)
    if lemma.kind is Kind.IDENTITY:
        raise BadArgument("lemma", lemma.id, "is an equality", fix="verify an inequality")
    given = {} if sizes is None else check_sizes(lemma.on.sized, sizes)
    found = Verification(lemma.id, name, Answer.PROVED, 0, 0.0, False, tolerance, 0.0)
    started = time.perf_counter()
    try:
        found = _searched(lemma, most, found, _all_sizes(lemma) if sizes is None else [given])
    except Unsupported as error:
        problem = f"cannot be enclosed: {error}"
        found = replace(found, answer=Answer.OPEN, open_share=1.0, problem=problem)
    return replace(found, seconds=time.perf_counter() - started)


def _searched(
    lemma: Claim, most: int, found: Verification, choices: Iterable[dict[str, int]]
) -> Verification:
    """The answer at these sizes, with at most so many boxes."""
    name, tolerance = found.variant, found.tolerance
    total = open_volume = 0.0
    is_open, admissible = False, set[bool | None]()
    for sizes in choices:
        check_program(lemma, name, sizes)
        search = _Search(lemma, name, sizes, tolerance)
        for cell in search.cells():
            part = search.settle(cell, most - found.boxes)
            total += part.volume
            open_volume += part.open_volume
            is_open = is_open or part.is_open
            found = replace(
                found, boxes=found.boxes + part.boxes, touching=found.touching or part.touching
            )
            if part.point is not None:
                return replace(found, answer=Answer.FALSE, **search.shown(part.point))
            if True not in admissible:
                admissible.add(search.admits(cell))
    share = open_volume / total if total else float(is_open)
    answer = Answer.OPEN if is_open else Answer.PROVED  # volumes may underflow
    if admissible == {False}:
        answer = Answer.EMPTY
    met = True if True in admissible else None if None in admissible else False
    return replace(found, answer=answer, open_share=share, admissible=met)


def _all_sizes(lemma: Claim) -> Iterator[dict[str, int]]:
    named: dict[str, Size] = dict(lemma.on.sized)
    ranges = [range(size.low, size.high + 1) for size in named.values()]
    if np.prod([len(r) for r in ranges], initial=1) > MOST_CASES:
        raise BadArgument("lemma", lemma.id, "has too many sizes", fix="narrow their ranges")
    for values in itertools.product(*ranges):
        yield dict(zip(named, values, strict=True))


def at_points(lemma: Claim, points: Mapping[str, Any], variant: str) -> Any:
    """Both sides and the hypotheses as (value, threshold) at points of the spaces."""
    lhs, rhs = lemma(**points, **lemma.constants.get(variant, {}))
    checks = [(_part(h.value, points), _part(h.threshold, points)) for h in lemma.given]
    return number(lhs), number(rhs), checks


def _part(part: Any, points: Mapping[str, Any]) -> Any:
    if not callable(part):
        return float(part)
    return number(part(**{name: points[name] for name in inspect.signature(part).parameters}))


@dataclass(frozen=True)
class _Settled:
    boxes: int
    volume: float
    open_volume: float
    is_open: bool
    touching: bool
    point: Point | None = None


class _Search:
    """Branch and bound for one choice of sizes."""

    def __init__(self, lemma: Claim, variant: str, sizes: dict[str, int], tolerance: float) -> None:
        self.lemma, self.variant, self.sizes, self.tolerance = lemma, variant, sizes, tolerance
        self.shapes = {
            name: tuple(length(axis, sizes) for axis in space.blocks.get("", ()))
            for name, space in lemma.variables.items()
        }
        self.charts = {name: self._chart(name) for name in self.shapes}
        domains = [entry for one in self.charts.values() for entry in one.entries]
        self.domains = domains
        self.real = [k for k, (interval, _) in enumerate(domains) if interval is not None]
        if not 1 <= len(self.real) <= MOST_VARIABLES:
            problem = f"has {len(self.real)} real variables"
            fix = f"verify takes one to {MOST_VARIABLES}; falsify takes any number"
            raise BadArgument("lemma", lemma.id, problem, fix=fix)
        start = np.zeros(len(domains))
        self._values, self._slopes, self._bends = (
            BallProgram(f, start, ulps=CONSTANT_ULPS) for f in derivatives(self._sides, start)
        )
        self._sieve: Sieve | None = None
        with contextlib.suppress(Unsupported):  # then balls go on alone
            self._sieve = Sieve(self._sides, len(domains), CONSTANT_ULPS, tolerance)

    def _chart(self, name: str) -> Chart:
        space = self.lemma.variables[name]
        found = chart(space, self.shapes[name])
        if found is None:
            problem = f"has {name} in {type(space).__name__}, which verify cannot cover by boxes"
            fix = (
                "verify takes Box, Ball, Tokens, Sphere, Simplex, Signs, Integers, small Orthogonal"
            )
            raise BadArgument("lemma", self.lemma.id, problem, fix=fix)
        return found

    def _points(self, flat: Any) -> dict[str, Any]:
        points, at = {}, 0
        for name, one in self.charts.items():
            points[name] = one.point(flat[at : at + len(one.entries)])
            at += len(one.entries)
        return points

    def _sides(self, flat: Any) -> Any:
        lhs, rhs, checks = at_points(self.lemma, self._points(flat), self.variant)
        rhs = rhs if self.lemma.factor == 1.0 else self.lemma.factor * rhs
        return jnp.asarray(lhs, flat.dtype), jnp.asarray(rhs, flat.dtype), checks

    def cells(self) -> Iterator[Cell]:
        """The whole domain: one cell for each combination of discrete choices."""
        options = [
            [interval] if interval is not None else [(value, value) for value in values]
            for interval, values in self.domains
        ]
        if np.prod([len(option) for option in options]) > MOST_CASES:
            problem = "has too many combinations of discrete choices"
            raise BadArgument("lemma", self.lemma.id, problem, fix="use falsify")
        yield from itertools.product(*options)

    def settle(self, domain: Cell, most: int) -> _Settled:
        """Close boxes until none is left, or a point is found, or there are too many.

        What intervals leave open is looked at in balls while that closes some, otherwise halved.
        """
        whole, least = volume(domain), _THINNEST ** len(self.real) * volume(domain)
        queue: deque[Cell] = deque([domain])
        thin: list[Cell] = []
        seen, in_balls, by_balls, touching = 0, 0, 0, False
        while queue and seen < most:
            left, looked, met, point = self._sift(queue, most - seen)
            seen, touching = seen + looked, touching or met
            for cell, axis in left:
                parts = None if axis is None else cut(cell, axis)
                if parts is None or in_balls < _TRIED + seen * _SHARE + by_balls * _MORE:
                    verdict, slopes = self._look(cell)
                    in_balls, by_balls = in_balls + 1, by_balls + (verdict != _OPEN)
                    if verdict != _OPEN:
                        touching = touching or verdict == _CLOSE
                        continue
                    point = middle(cell) if self._violates(middle(cell)) else None
                    parts = halves(cell, slopes)
                if point is not None:
                    break
                (thin if volume(cell) < least else queue).extend(parts)
            if point is not None:
                return _Settled(seen, whole, 0.0, False, touching, point)
        left_open = [volume(cell) for cell in (*queue, *thin)]
        return _Settled(seen, whole, sum(left_open), bool(left_open), touching)

    def _sift(
        self, queue: deque[Cell], most: int
    ) -> tuple[list[tuple[Cell, int | None]], int, bool, Point | None]:
        """Boxes that intervals leave open and the entry to cut, how many boxes were looked at,
        whether the sides meet in others, and a point that violates. A few boxes stay as they are.
        """
        if self._sieve is None or len(queue) < _FEW:
            return [(queue.popleft(), None)], 1, False, None
        cells = [queue.popleft() for _ in range(min(len(queue), _BATCH, most))]
        boxes = np.array(cells)
        found = self._sieve.look(boxes[:, :, 0], boxes[:, :, 1])
        for k in found.suspects:
            if self._violates(middle(cells[k])):
                return [], len(cells), False, middle(cells[k])
        opened = np.flatnonzero(found.verdict == OPEN).tolist()
        left: list[tuple[Cell, int | None]] = [(cells[k], int(found.axis[k])) for k in opened]
        return left, len(cells), bool(np.any(found.verdict == CLOSE)), None

    def _look(self, cell: Cell, box: arb | None = None) -> tuple[int, list[arb] | None]:
        """Whether a box is closed, and the slopes on it.

        With `box`, the cell is the face of a box where g is smallest: g decides, by how much it may
        be missed on all of the box. A hypothesis that fails on the face says nothing of the box.
        """
        enclosed = self._enclosed(cell)
        if enclosed is None:
            return _OPEN, None
        gap, room, outside, may_jump = enclosed
        if gap >= 0 or (outside and box is None):
            return _CLOSED, None
        room = room if box is None else box
        slopes = None if may_jump else self._slopes_on(cell)
        if slopes is None:
            return (_CLOSE if gap + room >= 0 else _OPEN), None
        face = lowest_face(cell, slopes)
        if face != cell:
            verdict, _ = self._look(face, room)
            return verdict, slopes
        centre = self._enclosed(at_point(middle(cell)))
        if centre is not None:
            moved = centre[0]
            for slope, (low, high), mid in zip(slopes, cell, middle(cell), strict=True):
                moved = moved + slope * (hull(arb(low), arb(high)) - mid)
            gap = moved if not gap.is_finite() or moved.lower() > gap.lower() else gap
        if gap >= 0:
            return _CLOSED, slopes
        face = self._convex_face(cell)
        if face != cell and self._look(face, room)[0] == _CLOSED:
            return _CLOSED, slopes
        return (_CLOSE if gap + room >= 0 else _OPEN), slopes

    def _convex_face(self, cell: Cell) -> Cell:
        """Where g is smallest, for entries in which it is convex and has its least value at an end.

        The slope is looked at on the end's own face, so it may vanish there. Where it may jump, as
        at a kink, the second derivative says nothing.
        """
        slopes, bends = self._run(self._slopes, cell), self._run(self._bends, cell)
        if slopes is None or bends is None or slopes[1] or bends[1]:
            return cell
        for k, (low, high) in enumerate(cell):
            if not (low < high and bends[0][k] >= 0):
                continue
            for end, sign in ((low, 1), (high, -1)):
                face = (*cell[:k], (end, end), *cell[k + 1 :])
                there = self._slopes_on(face)
                if there is not None and sign * there[k] >= 0:
                    return face
        return cell

    def _enclosed(self, cell: Cell) -> tuple[arb, arb, bool, bool] | None:
        """rhs - lhs, how much it may be missed by, and two things to know about the cell.

        Whether a hypothesis fails on all of it; and whether a side may jump there, so that its
        slope says nothing.
        """
        found = self._run(self._values, cell)
        if found is None:
            return None
        (lhs, rhs, checks), may_jump = found
        outside = _missed(checks)
        room = self.tolerance * arb(rhs).lower() if arb(rhs) > 0 else arb(0)
        return arb(rhs) - arb(lhs), arb(room), outside, may_jump

    def _slopes_on(self, cell: Cell) -> list[arb] | None:
        found = self._run(self._slopes, cell)
        if found is None or not all(slope.is_finite() for slope in found[0]):
            return None
        return list(found[0])

    def _run(self, program: BallProgram, cell: Cell) -> Any:
        try:
            box = np.array([hull(arb(a), arb(b)) for a, b in cell], dtype=object)
            return program.run(BITS, [box])
        except (Undecided, ZeroDivisionError):
            return None
        except Unsupported:
            if program is not self._values:  # a proof can do without slopes
                return None
            raise

    def _violates(self, point: Point) -> bool:
        found = self._run(self._values, at_point(point))
        if found is None:
            return False
        lhs, rhs, checks = found[0]
        return bool(_met(checks) and arb(lhs) > arb(rhs))

    def admits(self, domain: Cell) -> bool | None:
        """Whether a point of the domain meets every hypothesis; None if neither is seen."""
        if not self.lemma.given:
            return True
        queue: deque[Cell] = deque([domain])
        for _ in range(_MOST_LOOKED_AT):
            if not queue:
                return False
            cell = queue.popleft()
            found = self._run(self._values, cell)
            if found is not None and _missed(found[0][2]):
                continue
            for point in probes(cell):
                there = self._run(self._values, at_point(point))
                if there is not None and _met(there[0][2]):
                    return True
            queue.extend(halves(cell, None))
        return None if queue else False

    def shown(self, point: Point) -> dict[str, Any]:
        """The counterexample for a reader."""
        (lhs, rhs, _), _ = self._run(self._values, at_point(point))
        flat = np.array(point)
        points = {name: np.asarray(x).tolist() for name, x in self._points(flat).items()}
        sides = float(arb(lhs)), float(arb(rhs))
        excess = (arb(lhs) - arb(rhs)).str(3, radius=False)
        return {"instance": points, "sizes": self.sizes, "sides": sides, "excess": excess}


_OPEN, _CLOSE, _CLOSED = OPEN, CLOSE, CLOSED
_FEW, _BATCH = 4, 4096
"""Fewer boxes are looked at in balls, one by one; more by intervals, so many at once."""
_TRIED, _SHARE, _MORE = 16, 1 / 32, 8
"""Of boxes that intervals leave open balls try so many, so large a share, more for each closed."""
_THINNEST = 1e-10
"""A box that is a smaller share of its domain, in each variable, is left open."""
_MOST_LOOKED_AT = 200
"""Boxes in which a point that meets the hypotheses is looked for."""


def _met(checks: list[tuple[Any, Any]]) -> bool:
    """Whether every hypothesis holds, on all of a cell."""
    return all(arb(value) <= arb(limit) for value, limit in checks)


def _missed(checks: list[tuple[Any, Any]]) -> bool:
    """Whether a hypothesis fails on all of a cell."""
    return any(arb(value) > arb(limit) for value, limit in checks)
