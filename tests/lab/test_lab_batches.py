"""Small trials of one group computed together: own files, own outcomes, the same numbers."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import toy_figure
from lab_checks import assert_same

from headcount import lab
from headcount.lab import _batches


def measure_together(
    configs: Sequence[dict[str, Any]], contexts: Sequence[lab.Context]
) -> list[dict[str, Any]]:
    """Notes how many came together, then one after another."""
    with Path(os.environ["TOY_LOG"]).open("a") as log:
        log.write(f"together:{len(configs)}\n")
    return [toy_figure.measure(c, context) for c, context in zip(configs, contexts, strict=True)]


together = replace(toy_figure.toy, batch=measure_together)


@pytest.fixture
def plan() -> lab.Plan:
    """Two widths, 18 seeds each, that may go together."""
    plain = lab.make_plan(toy_figure.figure, "smoke", seeds=range(18))
    trials = [replace(t, measurement=together) for t in plain.trials if t.coordinates["m"] < 100]
    return replace(plain, trials=tuple(trials))


@pytest.fixture(autouse=True)
def fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_batches, "BATCH", 8)
    monkeypatch.setattr(_batches, "WORTH", 16)


def batching() -> lab.TrialExecutor:
    return _batches.BatchingExecutor(lab.InlineExecutor())


def test_together_and_alone_are_the_same(tmp_path: Path, plan: lab.Plan, calls) -> None:
    executor = batching()
    executor.window = 1000
    sweep = lab.run_plan(plan, tmp_path / "together", executor=executor)
    assert (sweep.run, sweep.failed) == (36, 0)
    assert [call for call in calls() if "together" in call] == ["together:8"] * 4
    assert len(calls()) == 36 + 4  # two of each width were left for running alone
    lab.run_plan(plan, tmp_path / "alone", executor="inline")
    assert_same(plan, tmp_path / "together", tmp_path / "alone")
    record = lab.Store(tmp_path / "together").read(plan.trials[0].address)
    assert record is not None
    assert 0 < record.record["seconds"] < 5


@pytest.mark.parametrize(("kind", "outcome"), [("FAIL", "failed"), ("DIVERGE", "diverged")])
def test_one_bad_trial_spoils_no_other(
    tmp_path: Path, plan: lab.Plan, calls, monkeypatch, kind: str, outcome: str
) -> None:
    monkeypatch.setenv(f"TOY_{kind}", "8-3")
    executor = batching()
    executor.window = 1000
    sweep = lab.run_plan(plan, tmp_path, executor=executor)
    assert [(p.label, p.outcome) for p in sweep.problems] == [("m=8 seed=3", outcome)]


class Deadly(lab.InlineExecutor):
    """A worker dies of every batch with the trial 8-3, and of that trial alone."""

    def submit_trial(self, task: Mapping[str, Any], hint: lab.Hint) -> Future[dict[str, Any]]:
        """Run it, unless it is deadly."""
        configs = [each["config"] for each in task.get("batch", [task])]
        if not any((config["m"], config["seed"]) == (8, 3) for config in configs):
            return super().submit_trial(task, hint)
        future: Future[dict[str, Any]] = Future()
        future.set_exception(lab.WorkerDied("killed"))
        return future


def test_who_dies_with_others_is_tried_again_alone(tmp_path: Path, plan: lab.Plan, calls) -> None:
    executor = _batches.BatchingExecutor(Deadly())
    executor.window = 1000
    sweep = lab.run_plan(plan, tmp_path, executor=executor)
    assert [(p.label, p.outcome) for p in sweep.problems] == [("m=8 seed=3", "failed")]
    assert sweep.run == 36
    assert [call for call in calls() if "together" in call] == ["together:8"] * 3


class Noting(lab.InlineExecutor):
    """Notes what each program is said to cost, and runs nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.hints: list[lab.Hint] = []

    def submit_trial(self, task: Mapping[str, Any], hint: lab.Hint) -> Future[dict[str, Any]]:
        """Note the hint."""
        self.hints.append(hint)
        return Future()


def test_trials_together_cost_what_they_cost_one_by_one(tmp_path: Path, plan: lab.Plan) -> None:
    """In seconds and in bytes: a batch holds all of its trials at once."""
    noting = Noting()
    executor = _batches.BatchingExecutor(noting)
    trials = [trial for trial in plan.trials if trial.coordinates["m"] == 8]
    executor.begin(tmp_path, trials)
    for k, trial in enumerate(trials):
        task = {"address": trial.address, "config": trial.config}
        executor.submit_trial(task, lab.Hint("m=8", (k + 1) / 64, 2**k, 3.0))
    executor.flush()
    own = range(len(trials))
    parts = [own[:8], own[8:16], *([k] for k in own[16:])]
    assert [hint.bytes for hint in noting.hints] == [sum(2**k for k in part) for part in parts]
    seconds = [sum(k + 1 for k in part) / 64 for part in parts]
    assert [hint.seconds for hint in noting.hints] == seconds
    assert {hint.compiling for hint in noting.hints} == {3.0}


def test_a_papers_seeds_train_together_as_alone(tmp_path: Path, monkeypatch) -> None:
    """The one measurement of ours that declares it, bit for bit."""
    monkeypatch.setattr(_batches, "BATCH", 2)
    monkeypatch.setattr(_batches, "WORTH", 2)
    from headcount.papers.arda2026.figures.training import training

    config = {"n": 20, "steps": 5, "width": 4, "keep": ["average"], "dtype": "float32"}
    trials = tuple(
        lab.Trial(training, {**TRAINING, **config, "seeds": [s]}, {"seed": s}, "g") for s in (3, 7)
    )
    plan = lab.Plan(toy_figure.figure, "smoke", (3, 7), {}, {}, trials)
    executor = batching()
    executor.window = 10
    monkeypatch.setattr(_batches, "SMALL_SECONDS", 100.0)
    for name, place in (("together", executor), ("alone", "inline")):
        assert lab.run_plan(plan, tmp_path / name, executor=place).failed == 0
    assert_same(plan, tmp_path / "together", tmp_path / "alone")


TRAINING = {"batch_size": None, "data_options": {"T": 4, "d": 3, "pool": 32}}
