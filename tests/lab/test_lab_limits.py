"""Limits: numbers that are none, trials that never end, windows, retries, signals, estimates."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pytest
import toy_cli
import toy_figure
from lab_checks import Messages, assert_same

from headcount import core, lab
from headcount.lab import _reporting, _sweep, _trial
from headcount.lab._errors import TrialStopped
from headcount.lab._signals import like_ctrl_c
from headcount.report._progress import estimate_error, time_left

REPRODUCE = "reproduce toy/mean --scale smoke --workers 0 --json --out"


def call(line: str) -> int:
    return int(toy_cli.app(line.split(), result_action="return_value"))


@pytest.mark.parametrize("value", ["nan", "inf"])
def test_numbers_that_are_none_are_an_outcome(tmp_path: Path, capsys, monkeypatch, value) -> None:
    monkeypatch.setenv("TOY_SPOIL", f"32-1={value}")
    assert call(f"{REPRODUCE} {tmp_path}") == 0
    shown = capsys.readouterr()
    result = json.loads(shown.out)
    assert result["trials"]["failed"] == 1
    assert len(result["files"]) == 6
    assert "nonfinite: m=32 seed=1: error is" in " ".join(shown.err.split())
    assert call(f"status --json --out {tmp_path}") == 0
    (row,) = json.loads(capsys.readouterr().out)["figures"]
    assert (row["ok"], row["nonfinite"], row["failed"]) == (11, 1, 0)
    monkeypatch.delenv("TOY_SPOIL")
    assert call(f"{REPRODUCE} {tmp_path} --retry-failed") == 0
    assert json.loads(capsys.readouterr().out)["trials"]["failed"] == 0


def test_nan_may_mean_that_there_is_no_number() -> None:
    payload = {"a": np.array([1.0, np.nan]), "b": np.array(np.inf), "n": np.array(3)}
    assert _trial._not_finite(payload, ["a", "b"]) == "b is infinite (1 of 1)"
    assert _trial._not_finite(payload, []) == "a is NaN (1 of 2); b is infinite (1 of 1)"
    assert _trial._not_finite({"n": payload["n"]}, []) == ""
    with pytest.raises(core.BadArgument, match="may_be_nan"):
        lab.Measurement("x", 1, toy_figure.measure, {"error": ()}, may_be_nan=("eror",))


@pytest.mark.parametrize("seconds", [-1.0, math.nan, math.inf])
def test_compiling_takes_a_time(seconds: float) -> None:
    with pytest.raises(core.BadArgument, match="compiling"):
        lab.Measurement("x", 1, toy_figure.measure, {"error": ()}, compiling=seconds)


def test_data_and_verdicts_are_there_before_the_plot(tmp_path: Path, capsys) -> None:
    def broken(data: Any, axes: Any) -> None:
        assert list(tmp_path.glob("figures/*/smoke/verdicts.json"))
        raise ValueError("no place for this number")

    figure = toy_figure.figure
    object.__setattr__(figure, "plot", broken)
    try:
        assert call(f"{REPRODUCE} {tmp_path}") == 1
    finally:
        object.__setattr__(figure, "plot", toy_figure.plot)
    shown = capsys.readouterr()
    names = {Path(name).name for name in json.loads(shown.out)["files"]}
    assert names == {"data.nc", "plotted.csv", "verdicts.json"}
    assert "the plot failed (ValueError: no place for this number)" in " ".join(shown.err.split())


def test_a_result_lost_while_collecting_is_exit_code_one(tmp_path, capsys, monkeypatch) -> None:
    run = lab.run_plan

    def run_and_lose(plan: lab.Plan, *arguments: Any, **named: Any) -> lab.Sweep:
        sweep = run(plan, *arguments, **named)
        assert sweep.store is not None
        sweep.store.trial_path(plan.trials[0].address).unlink()
        return sweep

    monkeypatch.setattr("headcount.lab.run_plan", run_and_lose)
    assert call(f"{REPRODUCE} {tmp_path}") == 1
    assert "1 of 12 results vanished" in capsys.readouterr().err


def test_a_trial_that_hangs_is_ended_and_tells_where(tmp_path: Path, plan, monkeypatch) -> None:
    few = lab.Plan(plan.figure, "smoke", (0,), plan.options, plan.settings, plan.trials[:2])
    monkeypatch.setenv("TOY_HANG", "8-0")
    reporter = Messages()
    policy = lab.Policy(time_limit=2.0, retries=1)
    sweep = lab.run_plan(few, tmp_path, workers=1, reporter=reporter, policy=policy)
    (problem,) = sweep.problems
    assert problem.label == "m=8 seed=0"
    assert "took longer than its time limit" in problem.reason
    assert "toy_figure.py" in problem.reason
    assert problem.reason.endswith("2 times")
    assert len(reporter.messages) == 1
    assert not list((tmp_path / "running").iterdir())
    monkeypatch.delenv("TOY_HANG")
    assert lab.run_plan(few, tmp_path, workers=0, retry_failed=True).failed == 0


def test_the_line_at_which_a_trial_hung_is_that_of_its_own_thread(tmp_path: Path, plan) -> None:
    """A Dask worker computes in a thread, and its oldest one waits for messages."""
    store = lab.Store(tmp_path)
    store.prepare()
    trial = plan.trials[0]
    store.trace_path(trial.address).write_text(
        "Timeout (0:00:02)!\nThread 0x01 (most recent call first):\n"
        '  File "figure.py", line 7 in measure\n  File "_trial.py", line 9 in _run_claimed\n'
        'Thread 0x02 (most recent call first):\n  File "selectors.py", line 468 in select\n'
    )
    loop = SimpleNamespace(store=store)
    reason = _sweep._Loop._why_it_died(loop, trial, lab.WorkerDied("x"))  # type: ignore[arg-type]
    assert reason == 'took longer than its time limit, at File "figure.py", line 7 in measure'


def test_time_limits_are_generous() -> None:
    policy = lab.Policy()
    assert policy.limit(estimate=1.0, ratio=2.0) == 3600
    assert policy.limit(estimate=1000.0, ratio=0.1) == 50_000
    assert policy.limit(estimate=1000.0, ratio=3.0) == 150_000
    assert policy.limit(estimate=1e9, ratio=1.0) is None
    assert lab.Policy(time_limit=2.0).limit(estimate=1e9, ratio=1.0) == 2.0
    assert lab.Policy(time_limit=math.inf).limit(estimate=1.0, ratio=1.0) is None
    for bad in ({"time_limit": 0.0}, {"time_limit": math.nan}, {"retries": -1}):
        with pytest.raises(core.BadArgument):
            lab.Policy(**bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("retries", [0, 2])
def test_out_of_memory_is_tried_again_up_to_the_cap(
    tmp_path: Path, plan, calls, monkeypatch, retries: int
) -> None:
    monkeypatch.setenv("TOY_MEMORY", "8-0")
    sweep = lab.run_plan(plan, tmp_path, workers=0, policy=lab.Policy(retries=retries))
    assert calls().count("8-0") == retries + 1
    assert [p.outcome for p in sweep.problems] == ["failed"]
    assert "MemoryError: Unable to allocate" in sweep.problems[0].reason


class Holding(lab.TrialExecutor):
    """Answers only when as many trials wait as the sweep will ever hand over."""

    def __init__(self) -> None:
        self.held: list[tuple[Future[Any], Any]] = []
        self.most = 0

    def submit_trial(self, task: Any, hint: lab.Hint) -> Future[dict[str, Any]]:
        """Hold it."""
        future: Future[dict[str, Any]] = Future()
        self.held.append((future, task))
        self.most = max(self.most, len(self.held))
        return future

    def flush(self) -> None:
        """Answer all."""
        for future, task in self.held:
            future.set_result(_trial.run_trial(task))
        self.held.clear()


def test_an_executor_holds_a_bounded_number_of_trials(tmp_path: Path, plan, monkeypatch) -> None:
    monkeypatch.setattr(_sweep, "WINDOW", 5)
    executor = Holding()
    sweep = lab.run_plan(plan, tmp_path / "out", executor=executor)
    assert (sweep.run, executor.most) == (12, 5)
    lab.run_plan(plan, tmp_path / "reference", workers=0)
    assert_same(plan, tmp_path / "out", tmp_path / "reference")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_other_signals_act_like_ctrl_c(number: signal.Signals) -> None:
    def send() -> None:
        with like_ctrl_c():
            os.kill(os.getpid(), number)
            time.sleep(10)

    before = signal.getsignal(number)
    signal.signal(number, signal.SIG_DFL)
    try:
        with pytest.raises(KeyboardInterrupt):
            send()
        assert signal.getsignal(number) == signal.SIG_DFL
        signal.signal(number, signal.SIG_IGN)  # nohup stays nohup
        with like_ctrl_c():
            os.kill(os.getpid(), number)
    finally:
        signal.signal(number, before)


def test_a_trial_cannot_swallow_its_stop() -> None:
    assert not issubclass(TrialStopped, Exception)


def test_a_stopped_worker_dies_with_its_parent() -> None:
    code = (
        "import os, time; from headcount import lab\n"
        "if __name__ == '__main__':\n"
        "    pool = lab.ProcessExecutor(1)\n"
        "    print(pool.submit(os.getpid).result(), flush=True)\n"
        "    pool.submit(time.sleep, 60).result()\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    worker = psutil.Process(int(parent.stdout.readline()))
    worker.suspend()
    parent.kill()
    parent.wait()
    parent.stdout.close()
    _, alive = psutil.wait_procs([worker], timeout=120)
    assert alive == []


def test_a_terminal_that_went_away_ends_no_sweep(tmp_path: Path, plan) -> None:
    class Gone(lab.Reporter):
        def tick(self, sweep: lab.Sweep) -> None:
            raise OSError(5, "Input/output error")

    reporter = Gone()
    for name in ("begin", "finished", "message", "end"):
        setattr(reporter, name, lambda *arguments: reporter.tick(arguments[0]))
    assert lab.run_plan(plan, tmp_path, workers=0, reporter=reporter).run == 12


def test_the_time_left_has_an_error(plan, monkeypatch) -> None:
    monkeypatch.setattr(_reporting, "time", SimpleNamespace(monotonic=lambda: 1100.0))
    sweep = lab.Sweep(planned=10, work_total=10.0, work_done=5.0, started=1000.0)
    low, high = sweep.seconds_left()
    assert low == high == pytest.approx(100, rel=0.01)
    sweep.ratios += [1.0, 2.0, 2.0, 2.0, 6.0]
    low, high = sweep.seconds_left()
    assert low == pytest.approx(100 * 1.4 / 2, rel=0.01)
    assert high == pytest.approx(100 * 4.4 / 2, rel=0.01)
    assert time_left(sweep) == "1 min 10 s to 3 min 40 s left"
    assert estimate_error(sweep) == "trials took 1.4 to 4.4 times their estimate"
    sweep.ratios += [100.0] * 5
    assert estimate_error(sweep) == "trials took 1.9 to 100 times their estimate"
    assert time_left(lab.Sweep(planned=1, work_total=1.0)) == "? left"


def test_an_overdue_trial_leaves_the_time_open(tmp_path: Path, plan) -> None:
    """Half a second left, for ever: no longer."""
    store = lab.Store(tmp_path)
    store.prepare()
    trial = plan.trials[0]
    sweep = lab.Sweep(planned=10, work_total=10.0, work_done=9.9, store=store)
    sweep.in_flight[trial.address] = trial
    started = time.monotonic() - 10
    sweep.started = started
    note = {"label": "a", "done": 0, "total": 1, "values": {}, "seconds": 0.5}
    store.progress_path(trial.address).write_text(json.dumps(note))
    assert time_left(sweep) == "0.1 s left"
    store.progress_path(trial.address).write_text(json.dumps({**note, "seconds": 60.0}))
    assert time_left(sweep).startswith("over 0.1 s left")
