"""Workers compile a group's programs again only where that ends the sweep earlier."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import toy_figure

from headcount import lab
from headcount.lab import Hint
from headcount.lab._assignment import START_SECONDS, Assignment

Truth = Mapping[str, tuple[float, float]]
"""By group: seconds of compiling, seconds of computing."""

FIG1: Truth = {
    "training 128": (3.5, 1.6),
    "linearisation 128": (2.6, 0.03),
    "training 64": (1.4, 0.83),
    "linearisation 64": (2.1, 0.03),
    "training 16": (1.3, 0.46),
    "linearisation 16": (1.2, 0.01),
    "linearisation 8": (1.2, 0.01),
    "training 8": (0.9, 0.22),
    "approximation 128": (0.35, 0.01),
    "approximation 64": (0.35, 0.01),
    "approximation 16": (0.35, 0.01),
    "approximation 8": (0.35, 0.01),
}
"""arda2026/fig1 at quick scale, processor seconds of this repository's machine."""


def simulate(
    truth: Truth, seeds: int, workers: int, hints: Truth | None = None
) -> tuple[float, int]:
    """(seconds until all is done, how often a group was compiled), with a clock of our own."""
    told = hints or truth
    waiting = [Hint(g, told[g][1], 0.0, told[g][0]) for g in truth for _ in range(seeds)]
    assignment, compiled = Assignment(), [set[str]() for _ in range(workers)]
    # (when, order, worker, whether a call of its ends then)
    events = [(0.0, worker, worker, False) for worker in range(workers)]
    order, end = workers, 0.0
    while events:
        now, _, worker, done = heapq.heappop(events)
        if done:
            assignment.ended(worker, now)
            end = now
        if not waiting:
            continue
        chosen = assignment.choose(worker, waiting, now)
        order += 1
        if chosen is None:
            heapq.heappush(events, (now + 0.2, order, worker, False))
            continue
        hint = waiting.pop(chosen)
        assignment.began(worker, hint, now)
        seconds = truth[hint.group][1]
        if not compiled[worker]:
            seconds += START_SECONDS
        if hint.group not in compiled[worker]:
            seconds += truth[hint.group][0]
            compiled[worker].add(hint.group)
        heapq.heappush(events, (now + seconds, order, worker, True))
    return end, sum(map(len, compiled))


def test_every_program_of_fig1_is_compiled_once_or_twice_where_it_pays() -> None:
    alone, _ = simulate(FIG1, 8, 1)
    two, compiled = simulate(FIG1, 8, 2)
    assert alone / two > 1.85
    assert compiled <= len(FIG1) + 1


def test_the_order_of_the_queue_does_not_decide() -> None:
    """Small trials that may go together come last: their group is not left for the end."""
    late = ("training 16", "training 8")
    queued = {**{g: t for g, t in FIG1.items() if g not in late}, **{g: FIG1[g] for g in late}}
    for seeds in (6, 8, 24):
        assert simulate(queued, seeds, 2) == simulate(FIG1, seeds, 2)


@pytest.mark.parametrize("wrong", [0.2, 5.0])
def test_hints_that_are_wrong_cost_little(wrong: float) -> None:
    """What the sweep itself has seen counts more than what was expected."""
    hints = {group: (wrong * c, wrong * s) for group, (c, s) in FIG1.items()}
    assert simulate(FIG1, 8, 1)[0] / simulate(FIG1, 8, 2, hints)[0] > 1.75


def test_one_group_of_long_trials_is_shared() -> None:
    alone, _ = simulate({"a": (5.0, 60.0)}, 8, 1)
    two, compiled = simulate({"a": (5.0, 60.0)}, 8, 2)
    assert (alone / two > 1.9, compiled) == (True, 2)


def test_a_short_call_is_left_to_those_who_know_its_group() -> None:
    assignment = Assignment()
    short = Hint("a", seconds=0.1, compiling=3.0)
    assignment.began(0, short, 0.0)
    assignment.ended(0, 3.1)
    assignment.began(0, short, 3.1)
    assignment.began(1, Hint("b"), 0.0)
    assignment.ended(1, 1.0)
    assert assignment.choose(1, [short], 3.1) is None
    assert assignment.choose(0, [short], 3.1) == 0
    assert assignment.choose(1, [short] * 40, 3.1) == 0  # 4 s of work there, 3.1 s here
    # A call far beyond its time may hang, or the other trials may take as long: do not wait.
    assert assignment.choose(1, [short], 9.0) == 0


def test_what_was_seen_counts_more_than_what_was_expected() -> None:
    assignment = Assignment()
    hint = Hint("a", seconds=50.0, compiling=3.0)
    assignment.began(1, Hint("b"), 0.0)
    assignment.ended(1, 0.1)
    for began, ended in ((0.0, 3.1), (3.1, 3.2)):
        assignment.began(0, hint, began)
        assignment.ended(0, ended)
    assignment.began(0, hint, 3.2)
    assert assignment.choose(1, [hint, hint], 3.2) is None  # 0.3 s there, 3.1 s here


def test_a_worker_that_has_not_started_counts_its_start() -> None:
    assignment = Assignment()
    hint = Hint("a", seconds=1.0)
    assignment.began(0, hint, 0.0)
    assert assignment.choose(1, [hint], 0.0) is None  # 3 s here, 2 s there
    assert assignment.choose(1, [hint, hint, hint], 0.0) == 0


def test_a_new_process_knows_nothing() -> None:
    assignment = Assignment()
    assignment.began(0, Hint("a"), 0.0)
    assignment.died(0)
    assert assignment.choose(1, [Hint("a", 0.1, 0.0, 9.0)], 0.1) == 0


def test_the_group_with_most_work_is_helped_first() -> None:
    assignment = Assignment()
    for worker, group in ((0, "a"), (0, "b"), (1, "c")):
        assignment.began(worker, Hint(group), 0.0)
        assignment.ended(worker, 1.0)
    assignment.began(0, Hint("a"), 1.0)
    waiting: Sequence[Hint] = [Hint("a"), Hint("b"), Hint("b")]
    assert assignment.choose(1, waiting, 1.0) == 1


def test_workers_see_all_groups_before_they_begin(tmp_path: Path, plan: lab.Plan, monkeypatch):
    """Otherwise the second one would begin with the first group, all that is there then."""
    seen: list[int] = []
    start = lab.ProcessExecutor.flush

    def flush(self: lab.ProcessExecutor) -> None:
        seen.append(len(self._threads))
        start(self)

    monkeypatch.setattr(lab.ProcessExecutor, "flush", flush)
    sweep = lab.run_plan(plan, tmp_path, workers=2)
    assert sweep.run == len(plan.trials)
    assert seen[0] == 0


def test_the_toy_sweep_runs_groups_apart(tmp_path: Path, plan: lab.Plan, calls) -> None:
    """All trials once, whoever takes them."""
    lab.run_plan(plan, tmp_path, workers=3)
    assert len(calls()) == len(set(calls())) == len(plan.trials)
    assert toy_figure.toy.compiling == 0.0
