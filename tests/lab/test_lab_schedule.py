"""Workers compile a group's programs again only where that ends the sweep earlier."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
import toy_figure

from headcount import lab
from headcount.lab import Hint
from headcount.lab._assignment import START_SECONDS, Assignment
from headcount.lab._compiling import _Spans, compiling_seconds
from headcount.lab._costs import CostModel, Line, cost_model, fit_line

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


def test_a_power_law_is_found_despite_slow_first_trials() -> None:
    estimates = np.repeat([0.1, 1.0, 10.0, 100.0], 5)
    seconds = 3.0 * estimates**0.8
    seconds[::5] *= 20  # the first of each group compiles
    line = fit_line(list(zip(estimates, seconds, strict=True)))
    assert line.slope == pytest.approx(0.8, abs=1e-9)
    assert line.seconds(5.0) == pytest.approx(3 * 5**0.8)
    assert line.seconds(1000.0) == pytest.approx(10 * 3 * 100**0.8)  # beyond: like the estimate


def test_few_or_equal_trials_give_a_ratio() -> None:
    assert fit_line([(2.0, 6.0)]).seconds(4.0) == pytest.approx(12.0)
    line = fit_line([(2.0, 6.0), (2.0, 8.0), (2.0, 700.0), (2.1, 8.4), (2.0, 8.0)])
    assert line.seconds(1.0) == pytest.approx(4.0)


def _stored(trial: lab.Trial, store: lab.Store, seconds: float, **more: object) -> None:
    """A record that says how long the trial took."""
    task = lab._trial.make_task(trial, store.folder)
    payload = {name: np.zeros((1,) * len(dims)) for name, dims in task["outputs"].items()}
    record = lab._trial._record(task, payload, "ok", "", seconds)
    store.write(trial.address, payload, record | more)


def test_the_model_reads_the_folder(tmp_path: Path) -> None:
    store = lab.Store(tmp_path)
    store.prepare()
    smoke = lab.make_plan(toy_figure.figure, "smoke")
    quick = lab.make_plan(toy_figure.figure, "quick")
    assert cost_model(quick.trials, store).count == 0
    for trial in smoke.trials:
        _stored(trial, store, 1000 * toy_figure.estimate(trial.config)[0])
    model = cost_model(quick.trials, store)
    assert model.count == len(smoke.trials)
    last = quick.trials[-1]
    assert model.seconds(last) == pytest.approx(1000 * toy_figure.estimate(last.config)[0])


def test_records_of_another_version_say_nothing(tmp_path: Path, plan: lab.Plan) -> None:
    store = lab.Store(tmp_path)
    store.prepare()
    older = lab.Measurement("toy-mean", 9, toy_figure.measure, toy_figure.toy.outputs)
    trial = lab.Trial(older, plan.trials[0].config, {"seed": 0})
    _stored(trial, store, 5.0)
    assert cost_model(plan.trials, store).count == 0


def test_the_longest_come_first_by_the_model(plan: lab.Plan) -> None:
    """A machine on which wide trials cost less per width still runs the widest first."""
    model = CostModel({"toy-mean": Line(0.0, 0.5, 1.0, 9)})
    order = sorted(plan.trials, key=model.seconds, reverse=True)
    assert [trial.coordinates["m"] for trial in order][::4] == [128, 32, 8]


WIDTHS = (8, 16, 32, 64)


def _many(seeds: int) -> list[lab.Trial]:
    """Trials whose estimate knows the growth and neither the machine nor the compiling."""
    return [
        lab.Trial(
            toy_figure.toy, {"m": m, "steps": 1, "seed": seed}, {"m": m, "seed": seed}, f"{m}"
        )
        for m in WIDTHS
        for seed in range(seeds)
    ]


def _truth(trial: lab.Trial) -> tuple[float, float]:
    """Seconds of compiling and of computing on a machine that we made up."""
    m = trial.config["m"]
    return 2.0 + m / 16, 3e4 * toy_figure.estimate(trial.config)[0] ** 0.9 * (1.2 if m > 9 else 1)


def _run(trials: list[lab.Trial], store: lab.Store, *, told: bool = True) -> float:
    """Records of a sweep in one process; the seconds that it took, imports included."""
    seen: set[str] = set()
    total = 0.0
    for trial in trials:
        compiling, seconds = _truth(trial)
        compiling *= trial.group not in seen
        imports = 0.0 if seen else 2.0
        seen.add(trial.group)
        total += compiling + seconds + imports
        times = {"compiling": compiling, "first_in_process": imports > 0} if told else {}
        _stored(trial, store, compiling + seconds + imports, **times)
    return total


def test_after_one_seed_the_rest_is_known(tmp_path: Path) -> None:
    """Every past trial compiled its programs: the others of its group will not."""
    store = lab.Store(tmp_path)
    store.prepare()
    trials = _many(50)
    _run([trial for trial in trials if trial.config["seed"] == 0], store)
    rest = [trial for trial in trials if trial.config["seed"] > 0]
    model = cost_model(trials, store)
    assert model.count == len(WIDTHS)
    took = _run(rest, lab.Store(tmp_path))
    assert lab.cost(rest, 1, model).seconds == pytest.approx(took, rel=0.1)
    for trial in rest[:: len(rest) // 7]:
        assert model.compiling(trial) == pytest.approx(_truth(trial)[0])
    # The widest came first in no process: its own seconds count.
    assert model.seconds(rest[-1]) == pytest.approx(_truth(rest[-1])[1])


def test_the_first_of_a_process_says_little_about_its_group(tmp_path: Path) -> None:
    """It imported what all need; the line through the others knows better."""
    store = lab.Store(tmp_path)
    store.prepare()
    trials = _many(1)
    _run(trials, store)
    first = cost_model(trials, store).seconds(trials[0])
    assert _truth(trials[0])[1] < 0.5  # and 2 s of imports
    assert first == pytest.approx(_truth(trials[0])[1], rel=0.5)


def test_records_of_earlier_versions_do_not_tell_what_was_compiled(tmp_path: Path) -> None:
    """With a few seeds the slowest of a group tells."""
    store = lab.Store(tmp_path)
    store.prepare()
    trials = _many(20)
    _run([trial for trial in trials if trial.config["seed"] < 5], store, told=False)
    rest = [trial for trial in trials if trial.config["seed"] >= 5]
    estimate = lab.cost(rest, 1, cost_model(trials, store)).seconds
    assert estimate == pytest.approx(_run(rest, store), rel=0.2)


def test_a_long_group_is_split_over_the_workers() -> None:
    """And its programs are compiled by each of them; one trial cannot be split."""
    trials = [t for t in _many(40) if t.config["m"] == 64]
    model = CostModel({}, {("toy-mean", "64"): 1e9}, {("toy-mean", "64"): 5.0})
    each = model.seconds(trials[0])
    assert lab.cost(trials, 4, model).seconds == pytest.approx(10 * each + 5.0, rel=0.1)
    assert lab.cost(trials[:1], 4, model).seconds == pytest.approx(each + 5.0, rel=0.1)
    assert lab.cost([], 4, model).seconds == 0


def test_compiling_is_measured_by_jax_itself(tmp_path: Path) -> None:
    """A new program counts, the same again does not, and inner spans are not counted twice."""
    import jax

    before = compiling_seconds()
    program = jax.jit(lambda x: jax.jit(lambda y: y * 3 + 1)(x) - 2)
    program(1.0)
    once = compiling_seconds() - before
    program(2.0)
    assert once > 0
    assert compiling_seconds() - before == once
    spans = _Spans()
    for began, ended in ((1.0, 2.0), (3.0, 4.0), (0.5, 5.0), (6.0, 7.0)):
        spans.add(began, ended)
    assert spans.seconds == pytest.approx(5.5)
