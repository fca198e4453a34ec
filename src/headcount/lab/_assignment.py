"""Which waiting call a worker takes next, so that programs are compiled no more often than pays.

Calls of one group share compiled programs within a process. A worker goes on with the groups it
knows, then takes the one with most work of those that nobody knows. When only groups of others
are left, it takes a call of theirs if it would be done, compiling included, before they come to
it; else it waits.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ._executors import Hint

START_SECONDS = 2.0
"""What a new process needs before its first trial: imports, and programs that all share."""


@dataclass(frozen=True)
class _Running:
    hint: Hint
    first: bool
    began: float


class Assignment:
    """Who knows which groups and computes what; times are told by the caller."""

    def __init__(self) -> None:
        self._known: dict[int, set[str]] = {}
        self._running: dict[int, _Running] = {}
        self._first: dict[str, float] = {}
        self._later: dict[str, list[float]] = {}

    def choose(self, worker: int, waiting: Sequence[Hint], now: float) -> int | None:
        """The place of the call that `worker` should take; None: better wait."""
        mine = self._known.get(worker, set())
        known = set[str]().union(*self._known.values())
        for i, hint in enumerate(waiting):
            if hint.group and hint.group in mine:
                return i
        work: dict[str, float] = defaultdict(float)
        first: dict[str, int] = {}
        for i, hint in enumerate(waiting):
            work[hint.group] += self._seconds(hint)
            first.setdefault(hint.group, i)
        new = [group for group in work if group not in known]
        if new:
            return first[max(new, key=lambda g: work[g] + waiting[first[g]].compiling)]
        return self._to_take_over(worker, waiting, work, first, now)

    def began(self, worker: int, hint: Hint, now: float) -> None:
        """`worker` has taken a call."""
        groups = self._known.setdefault(worker, set())
        self._running[worker] = _Running(hint, hint.group not in groups, now)
        if hint.group:
            groups.add(hint.group)

    def ended(self, worker: int, now: float) -> None:
        """`worker` has done its call."""
        call = self._running.pop(worker)
        seconds, group = now - call.began, call.hint.group
        if call.first:
            self._first[group] = seconds
        else:
            self._later.setdefault(group, []).append(seconds)

    def died(self, worker: int) -> None:
        """The process of `worker` has ended; the next one knows nothing."""
        self._running.pop(worker, None)
        self._known.pop(worker, None)

    def _to_take_over(
        self,
        worker: int,
        waiting: Sequence[Hint],
        work: Mapping[str, float],
        first: Mapping[str, int],
        now: float,
    ) -> int | None:
        """The first call of the group with most work left for which the others take longer."""
        start = 0.0 if worker in self._known else START_SECONDS
        for group in sorted(work, key=lambda group: -work[group]):
            hint = waiting[first[group]]
            here = start + self._compiling(hint) + self._seconds(hint)
            if here < self._others_need(group, work, now):
                return first[group]
        return None

    def _others_need(self, group: str, work: Mapping[str, float], now: float) -> float:
        """Until the first of those who know the group would have done all that they know."""
        return min(
            self._left(worker, now) + sum(work.get(each, 0.0) for each in groups)
            for worker, groups in self._known.items()
            if group in groups
        )

    def _left(self, worker: int, now: float) -> float:
        """What is left of the call that a worker computes.

        One that is overdue is expected to take as long again as it is late: it may hang.
        """
        call = self._running.get(worker)
        if call is None:
            return 0.0
        expected = self._seconds(call.hint) + call.first * self._compiling(call.hint)
        return abs(expected - (now - call.began))

    def _seconds(self, hint: Hint) -> float:
        """A call of a group that is compiled: as seen, else as hinted."""
        later = self._later.get(hint.group)
        return statistics.fmean(later) if later else hint.seconds

    def _compiling(self, hint: Hint) -> float:
        """What the first call of a group takes longer."""
        first = self._first.get(hint.group)
        return hint.compiling if first is None else max(first - self._seconds(hint), 0.0)
