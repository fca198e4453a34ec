"""Claims, locks and contexts of a sweep part by part: who may write, what a kill leaves."""

from __future__ import annotations

import errno
import json
import os
import signal
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import toy_figure
from lab_checks import assert_same

from headcount import core, lab
from headcount.core._owner import owner
from headcount.lab import _files, _locks, _reporting, _sweep, _trial
from headcount.lab._context import TrialContext
from headcount.lab._errors import TrialStopped
from headcount.lab._signals import like_ctrl_c
from headcount.report._progress import estimate_error, time_left
from headcount.report._tables import status_rows, status_table


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An uninterrupted run in one process."""
    folder = tmp_path_factory.mktemp("reference")
    lab.run_plan(lab.make_plan(toy_figure.figure, "smoke"), folder, workers=0)
    return folder


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


class Finished(lab.Reporter):
    """Notes how trials ended, and does something after some of them."""

    def __init__(self, after: int, then: Any) -> None:
        self.after, self.then = after, then
        self.statuses: list[str] = []

    def finished(self, sweep: lab.Sweep, trial: lab.Trial, answer: dict[str, Any]) -> None:
        self.statuses.append(answer["status"])
        if len(self.statuses) == self.after:
            self.then()


def abandoned(name: str, suffix: str = "tmp") -> str:
    """The name of a temporary file whose process is gone."""
    machine = owner().partition("-")[0]
    return f"{name}.{machine}-{2**22 + 1}-00000000.{suffix}"


def of_a_live_process(name: str, suffix: str = "tmp") -> str:
    return f"{name}.{owner()}-00000000.{suffix}"


def of_elsewhere(name: str) -> str:
    return f"{name}.00000000-1-00000000.tmp"


def test_temporary_files_of_the_dead_go_and_those_of_the_living_stay(tmp_path: Path, plan) -> None:
    lab.run_plan(plan, tmp_path, workers=0)
    trial = lab.Store(tmp_path).trial_path(plan.trials[0].address)
    deep = tmp_path / "figures/toy-mean/smoke"
    deep.mkdir(parents=True)
    folders = [tmp_path, trial.parent, deep]
    folders += [tmp_path / name for name in ("plans", "running", "checkpoints", "index")]
    for folder in folders:
        for name in (abandoned, of_a_live_process, of_elsewhere):
            (folder / name("a.json")).touch()
        ancient = folder / of_elsewhere("b.json")
        ancient.touch()
        os.utime(ancient, (0, 0))
    for name in ("sweep", "lock", "json", "trace"):
        (tmp_path / "running" / f"{'ab' * 32}.{name}").touch()
    (tmp_path / "running" / abandoned("sweep", "stop")).touch()
    (tmp_path / "running" / of_a_live_process("sweep", "stop")).touch()
    lab.Store(tmp_path).prepare()
    for folder in folders:
        assert not (folder / abandoned("a.json")).exists()
        assert not (folder / of_elsewhere("b.json")).exists()
        assert (folder / of_a_live_process("a.json")).exists()
        assert (folder / of_elsewhere("a.json")).exists()
    left = {path.name for path in (tmp_path / "running").iterdir() if path.suffix != ".tmp"}
    assert left == {f"{'ab' * 32}.sweep", of_a_live_process("sweep", "stop")}


def test_without_locks_sweeps_do_not_abort_each_other(
    tmp_path: Path, plan, calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.run_plan(plan, tmp_path / "reference", workers=0)
    monkeypatch.setattr(_locks, "fcntl", None)
    monkeypatch.setenv("TOY_PAUSE", "0.002")
    with ThreadPoolExecutor(3) as pool:
        runs = [
            pool.submit(lab.run_plan, plan, tmp_path / "out", workers=0, checkpoint_seconds=0.0)
            for _ in range(3)
        ]
        assert [run.result().failed for run in runs] == [0, 0, 0]
    assert len(calls()) > 24  # trials were computed more than once, as there are no locks
    assert_same(plan, tmp_path / "out", tmp_path / "reference")
    assert not list((tmp_path / "out").rglob("*.tmp"))


def test_a_lock_file_that_says_nothing_is_no_obstacle(tmp_path: Path) -> None:
    for content in (b"", b"{", b"[1]", b'["a", "b", "c"]', b"\xff"):
        (tmp_path / "a.lock").write_bytes(content)
        assert _locks.holder(tmp_path / "a.lock") is None
    assert _locks.holder(tmp_path / "none.lock") is None


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b'{"label": 1}', b"\xff\xfe", b"nonsense"])
def test_a_damaged_progress_file_ends_nothing(tmp_path: Path, plan, content: bytes) -> None:
    store = lab.Store(tmp_path)
    store.prepare()
    trial = plan.trials[0]
    sweep = lab.Sweep(planned=12, work_total=1.0, store=store, in_flight={trial.address: trial})
    store.progress_path(trial.address).write_bytes(content)
    assert sweep.fraction() == 0.0
    with store.claim(trial.address):
        assert list(store.running()) == []
        assert status_table(store, status_rows(store, print))


def test_no_flipped_bit_of_a_plan_gives_wrong_counts(tmp_path: Path, plan) -> None:
    lab.run_plan(plan, tmp_path, workers=0)
    store, messages = lab.Store(tmp_path), []
    (row,) = status_rows(store, messages.append)
    assert (row["ok"], row["missing"], messages) == (12, 0, [])
    (path,) = (tmp_path / "plans").glob("*.json")
    good = path.read_bytes()
    for bit in core.integers(core.stream(0, "flips"), (100,), len(good) * 8).tolist():
        bad = bytearray(good)
        bad[bit // 8] ^= 1 << (bit % 8)
        path.write_bytes(bytes(bad))
        told: list[str] = []
        assert status_rows(store, told.append) in ([], [row])
        assert len(told) == 1
        assert "damaged plan" in told[0]
    lab.run_plan(plan, tmp_path, workers=0)
    assert status_rows(store, messages.append) == [row]


@pytest.mark.parametrize(
    "change",
    [{"seeds": []}, {"seeds": ["0"]}, {"trials": ["../../etc"]}, {"options": []}, {"figure": None}],
)
def test_a_plan_that_is_none_is_left_out(tmp_path: Path, plan, change: dict[str, Any]) -> None:
    lab.run_plan(plan, tmp_path, workers=0)
    (path,) = (tmp_path / "plans").glob("*.json")
    _files.write_note(path, {**_files.read_note(path), **change})
    told: list[str] = []
    assert status_rows(lab.Store(tmp_path), told.append) == []
    assert "is no plan" in told[0]


def test_looking_at_a_lock_needs_no_right_to_write(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "a.lock"
    opened = os.open

    def read_only(name: Any, flags: int, *mode: int, **where: Any) -> int:
        if flags & (os.O_RDWR | os.O_WRONLY | os.O_CREAT):
            raise OSError(errno.EROFS, "Read-only file system")
        return opened(name, flags, *mode, **where)

    with _locks.claim(path):
        monkeypatch.setattr(os, "open", read_only)
        assert _locks.is_claimed(path)
        monkeypatch.undo()
    path.touch()
    monkeypatch.setattr(os, "open", read_only)
    assert not _locks.is_claimed(path)


def test_nan_may_mean_that_there_is_no_number() -> None:
    payload = {"a": np.array([1.0, np.nan]), "b": np.array(np.inf), "n": np.array(3)}
    assert _trial._not_finite(payload, ["a", "b"]) == "b is infinite (1 of 1)"
    assert _trial._not_finite(payload, []) == "a is NaN (1 of 2); b is infinite (1 of 1)"
    assert _trial._not_finite({"n": payload["n"]}, []) == ""
    with pytest.raises(core.BadArgument, match="may_be_nan"):
        lab.Measurement("x", 1, toy_figure.measure, {"error": ()}, may_be_nan=("eror",))


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
