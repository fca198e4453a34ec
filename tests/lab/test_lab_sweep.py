"""Sweeps: order, workers, resume, failures, deaths and a second sweep change no number."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import toy_figure
from lab_checks import assert_same

from headcount import core, lab
from headcount.core._owner import owner
from headcount.lab._context import TrialContext
from headcount.lab._errors import TrialStopped


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An uninterrupted run in one process."""
    folder = tmp_path_factory.mktemp("reference")
    lab.run_plan(lab.make_plan(toy_figure.figure, "smoke"), folder, workers=0)
    return folder


def test_workers_give_the_same_numbers(tmp_path: Path, plan: lab.Plan, reference: Path) -> None:
    sweep = lab.run_plan(plan, tmp_path, workers=2)
    assert (sweep.planned, sweep.cached, sweep.run, sweep.failed) == (12, 0, 12, 0)
    assert_same(plan, tmp_path, reference)


def test_any_executor_will_do(tmp_path: Path, plan: lab.Plan, reference: Path) -> None:
    with ThreadPoolExecutor(3) as executor:
        lab.run_plan(plan, tmp_path, executor=executor)
        assert executor.submit(int, "7").result() == 7  # the caller's executor stays open
    assert_same(plan, tmp_path, reference)


def test_order_does_not_matter(tmp_path: Path, plan: lab.Plan, reference: Path) -> None:
    store = lab.Store(tmp_path)
    store.prepare()
    for trial in reversed(plan.trials):
        single = lab.Plan(plan.figure, "smoke", (0,), plan.options, plan.settings, (trial,))
        lab.run_plan(single, tmp_path, workers=0)
    assert_same(plan, tmp_path, reference)


def test_only_what_is_missing_is_run(tmp_path: Path, calls) -> None:
    few = lab.make_plan(toy_figure.figure, "smoke", seeds=[0, 1])
    lab.run_plan(few, tmp_path, workers=0)
    assert len(calls()) == 6
    more = lab.make_plan(toy_figure.figure, "smoke", seeds=[0, 1, 5])
    sweep = lab.run_plan(more, tmp_path, workers=0)
    assert (sweep.cached, sweep.run) == (6, 3)
    assert calls()[6:] == ["128-5", "32-5", "8-5"]  # the longest first


def test_a_record_tells_how_the_numbers_came_about(reference: Path, plan: lab.Plan) -> None:
    trial = plan.trials[3]
    stored = lab.Store(reference).read(trial.address)
    assert stored is not None
    record = stored.record
    assert record["config"] == {"m": 8, "steps": 5, "seed": 3, "rule": "plain"}
    assert (record["measurement"], record["version"], record["outcome"]) == ("toy-mean", 1, "ok")
    assert record["seeds"] == {"seed": 3}
    assert record["seconds"] > 0
    assert {"headcount", "jax", "jaxlib", "numpy", "optax", "scipy"} < set(record["versions"])
    assert set(record["libraries"]) == {"numpy", "xarray"}
    assert record["device"] == "cpu"
    assert record["payload_dtypes"]["error"] == "float64"
    assert os.uname().nodename not in str(record) or len(os.uname().nodename) < 4


@pytest.mark.parametrize("kind", ["fail", "diverge"])
def test_problems_are_recorded_and_retried_on_request(
    tmp_path: Path, plan: lab.Plan, reference: Path, calls, monkeypatch, kind: str
) -> None:
    monkeypatch.setenv(f"TOY_{kind.upper()}", "32-1")
    outcome = {"fail": "failed", "diverge": "diverged"}[kind]
    sweep = lab.run_plan(plan, tmp_path, workers=0)
    assert [(p.label, p.outcome) for p in sweep.problems] == [("m=32 seed=1", outcome)]
    assert f"asked to {kind}" in sweep.problems[0].reason
    monkeypatch.delenv(f"TOY_{kind.upper()}")
    again = lab.run_plan(plan, tmp_path, workers=0)
    assert (again.cached, again.run, again.failed) == (12, 0, 1)
    assert len(calls()) == 12
    retried = lab.run_plan(plan, tmp_path, workers=0, retry_failed=True)
    assert (retried.cached, retried.run, retried.failed) == (11, 1, 0)
    assert_same(plan, tmp_path, reference)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (-signal.SIGKILL, "by SIGKILL, perhaps out of memory"),
        (-signal.SIGSEGV, "by SIGSEGV, a crash in compiled code"),
        (-signal.SIGTERM, "by SIGTERM, somebody ended it"),
        (3, "with exit code 3"),
    ],
)
def test_how_a_worker_died_is_told_as_it_was(code: int, words: str) -> None:
    assert str(lab.WorkerDied.with_code(code)) == f"the worker process ended {words}"


def test_a_dying_worker_fails_its_own_trial_only(
    tmp_path: Path, plan: lab.Plan, calls, monkeypatch
) -> None:
    monkeypatch.setenv("TOY_KILL", "8-2")
    sweep = lab.run_plan(plan, tmp_path, workers=2)
    assert (sweep.run, sweep.failed) == (12, 1)
    assert sweep.problems[0].label == "m=8 seed=2"
    assert "SIGKILL" in sweep.problems[0].reason
    assert calls().count("8-2") == 2
    assert not list((tmp_path / "running").iterdir())
    monkeypatch.delenv("TOY_KILL")
    assert lab.run_plan(plan, tmp_path, workers=0, retry_failed=True).failed == 0


def test_wrong_outputs_are_a_failure(tmp_path: Path) -> None:
    measurement = lab.Measurement("wrong", 1, toy_figure.measure, {"error": ()})
    trial = lab.Trial(measurement, {"m": 8, "steps": 2, "seed": 0}, {"seed": 0})
    plan = lab.Plan(toy_figure.figure, "smoke", (0,), {}, {}, (trial,))
    sweep = lab.run_plan(plan, tmp_path, workers=0)
    assert "declares ['error']" in sweep.problems[0].reason


def test_a_measurement_that_workers_cannot_import_is_no_failed_trial(tmp_path: Path) -> None:
    trial = lab.Trial(toy_figure.toy, {"m": 8, "steps": 2, "seed": 0}, {"seed": 0})
    object.__setattr__(trial.measurement.function, "__module__", "nowhere")
    try:
        plan = lab.Plan(toy_figure.figure, "smoke", (0,), {}, {}, (trial,))
        with pytest.raises(lab.ExecutionError, match="nowhere"):
            lab.run_plan(plan, tmp_path, workers=0)
        assert lab.Store(tmp_path).read(trial.address) is None
    finally:
        trial.measurement.function.__module__ = toy_figure.__name__


def test_a_claimed_trial_is_left_to_its_owner(tmp_path: Path, plan: lab.Plan, reference) -> None:
    """Another process works on one trial: the sweep does the rest, then waits for that one."""
    store = lab.Store(tmp_path)
    store.prepare()
    address = plan.trials[0].address
    stored = lab.Store(reference).read(address)
    assert stored is not None
    claimed, release = threading.Event(), threading.Event()

    def owner() -> None:
        with store.claim(address) as mine:
            assert mine
            claimed.set()
            release.wait(30)
            store.write(address, stored.payload, stored.record)

    thread = threading.Thread(target=owner)
    thread.start()
    claimed.wait(30)
    reporter = Finished(after=11, then=release.set)
    sweep = lab.run_plan(plan, tmp_path, workers=0, reporter=reporter)
    thread.join()
    assert sweep.run == 12
    assert reporter.statuses == ["ok"] * 11 + ["cached"]
    assert_same(plan, tmp_path, reference)


def _sweep(folder: str) -> None:
    lab.run_plan(lab.make_plan(toy_figure.figure, "smoke"), Path(folder), workers=0)


def test_two_sweeps_at_once(tmp_path: Path, plan, reference, calls, monkeypatch) -> None:
    monkeypatch.setenv("TOY_PAUSE", "0.02")
    context = multiprocessing.get_context("spawn")
    others = [context.Process(target=_sweep, args=(str(tmp_path),)) for _ in range(2)]
    for process in others:
        process.start()
    for process in others:
        process.join()
    assert [process.exitcode for process in others] == [0, 0]
    assert sorted(calls()) == sorted(f"{m}-{s}" for m in (8, 32, 128) for s in range(4))
    assert_same(plan, tmp_path, reference)
    assert not list(tmp_path.rglob("*.tmp"))
    assert not list((tmp_path / "running").iterdir())


def test_what_a_kill_left_beside_a_finished_trial_is_removed(tmp_path: Path, plan) -> None:
    lab.run_plan(plan, tmp_path, workers=0)
    store, address = lab.Store(tmp_path), plan.trials[0].address
    machine, _, _ = owner().partition("-")
    abandoned = f"{machine}-{2**22 + 1}-00000000"  # no process has such a number
    left = [
        store.checkpoint_path(address),
        store.checkpoint_path(address).with_name(f"{address}.h5.{abandoned}.tmp"),
        store.progress_path(address),
    ]
    for path in left:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"")
    assert lab.run_plan(plan, tmp_path, workers=0).run == 0
    assert not any(path.exists() for path in left)


def make_context(folder: Path, **changes: Any) -> TrialContext:
    settings: dict[str, Any] = {
        "address": "ab" * 32,
        "label": "t",
        "checkpoint_path": folder / "checkpoint.h5",
        "progress_path": folder / "progress.json",
        "stop_path": folder / "stop",
        "checkpoint_seconds": 0.0,
    }
    return TrialContext(**(settings | changes))


class Killed(BaseException):
    """Stands for a kill inside a trial."""


@pytest.mark.parametrize("saved", range(1, 6))
def test_resumed_equals_uninterrupted(tmp_path: Path, saved: int, monkeypatch) -> None:
    config = {"m": 16, "steps": 5, "seed": 0}
    whole = toy_figure.measure(config, lab.PlainContext())
    context = make_context(tmp_path)
    save, count = context.checkpoint, 0

    def die_after(state: Any) -> bool:
        nonlocal count
        save(state)
        count += 1
        if count == saved:
            raise Killed
        return True

    monkeypatch.setattr(context, "checkpoint", die_after)
    with pytest.raises(Killed):
        toy_figure.measure(config, context)
    resumed_context = make_context(tmp_path)
    resumed = toy_figure.measure(config, resumed_context)
    assert resumed_context.resumed_after > 0
    for name in whole:
        np.testing.assert_array_equal(resumed[name], whole[name])


def test_checkpoints_keep_to_their_interval_and_survive_damage(tmp_path: Path) -> None:
    assert not make_context(tmp_path, checkpoint_seconds=60.0).checkpoint({"a": 1.0})
    assert make_context(tmp_path).checkpoint({"a": 1.0})
    path = tmp_path / "checkpoint.h5"
    path.write_bytes(path.read_bytes()[:-3])
    context = make_context(tmp_path)
    assert context.restore() is None
    assert "not used" in context.messages[0]
    assert not path.exists()


def test_a_stop_saves_first(tmp_path: Path) -> None:
    context = make_context(tmp_path, checkpoint_seconds=60.0)
    assert context.restore() is None
    (tmp_path / "stop").touch()
    context._last_progress = -float("inf")
    context.progress(1, 2)  # a trial with checkpoints is stopped there, where nothing is lost
    with pytest.raises(TrialStopped):
        context.checkpoint({"a": 2.0})
    assert make_context(tmp_path).restore() == {"a": 2.0}
    without = make_context(tmp_path)
    without._last_progress = -float("inf")
    with pytest.raises(TrialStopped):
        without.progress(1, 2)


def test_a_process_executor_is_an_executor(monkeypatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    with lab.ProcessExecutor(1) as executor:
        assert list(executor.map(pow, [2, 3], [3, 2])) == [8, 9]
        assert executor.submit(os.getenv, "OMP_NUM_THREADS").result() == "1"
        assert executor.submit(os.getenv, "PJRT_NPROC").result() == "1"
        assert "multi_thread_eigen=false" in executor.submit(os.getenv, "XLA_FLAGS").result()
        with pytest.raises(RuntimeError, match="invalid literal"):
            executor.submit(int, "x").result()
        with pytest.raises(lab.WorkerDied, match="exit code 3"):
            executor.submit(os._exit, 3).result()
        assert executor.submit(abs, -1).result() == 1
        slow = executor.submit(time.sleep, 60)
        queued = executor.submit(abs, -1)
        while not slow.running():
            time.sleep(0.01)
        executor.kill()
        with pytest.raises(lab.WorkerDied):
            slow.result()
        assert queued.cancelled()
    assert os.environ["OMP_NUM_THREADS"] == "5"
    with pytest.raises(RuntimeError, match="shut down"):
        executor.submit(abs, 1)


def test_calls_of_a_group_share_a_worker(monkeypatch) -> None:
    """Own group first, then a group nobody has, then whatever is left: nobody stays idle."""
    monkeypatch.setattr(lab.ProcessExecutor, "_serve", lambda self, number: None)
    executor = lab.ProcessExecutor(2)
    for i, group in enumerate("aabbc"):
        executor.submit_in_group(group, abs, i)
    one, other = 0, 1

    def take(worker: int) -> int:
        call = executor._next(worker)
        assert call is not None
        return call.work[1][0]

    assert [take(one), take(other), take(one), take(one), take(other)] == [0, 2, 1, 4, 3]
    for i, group in enumerate("bb"):
        executor.submit_in_group(group, abs, i)
    assert [take(one), take(other)] == [0, 1]  # the idle worker helps out
    executor.shutdown()
    assert executor._next(one) is None


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"scale": "huge"}, "smoke, quick, paper"),
        ({"seeds": [0, 0]}, "distinct"),
        ({"seeds": [-1]}, "seeds = -1"),
        ({"options": {"rule": "none"}}, "plain, other"),
        ({"options": {"rull": "plain"}}, "choose from: rule"),
        ({"figure": "toy/maen"}, "did you mean toy/mean"),
    ],
)
def test_bad_plans_are_refused(change: dict[str, Any], match: str) -> None:
    with pytest.raises(core.BadArgument, match=match):
        lab.make_plan(**({"figure": "toy/mean"} | change))


class Finished(lab.Reporter):
    """Notes how trials ended, and does something after some of them."""

    def __init__(self, after: int, then: Any) -> None:
        self.after, self.then = after, then
        self.statuses: list[str] = []

    def finished(self, sweep: lab.Sweep, trial: lab.Trial, answer: dict[str, Any]) -> None:
        self.statuses.append(answer["status"])
        if len(self.statuses) == self.after:
            self.then()
