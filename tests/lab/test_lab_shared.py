"""A folder that others use too, or that cannot be written: nobody is disturbed, all is told."""

from __future__ import annotations

import errno
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from lab_checks import Messages, assert_same

from headcount import core, lab
from headcount.core._owner import owner
from headcount.lab import _files, _locks
from headcount.report._tables import status_rows, status_table


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


def test_a_held_lock_is_told_with_its_holder(tmp_path: Path, plan) -> None:
    store = lab.Store(tmp_path)
    store.prepare()
    address = plan.trials[0].address
    reporter = Messages()
    release = threading.Event()

    def hold() -> None:
        with store.claim(address):
            held.set()
            release.wait(30)

    def release_when_told(text: str) -> None:
        reporter.messages.append(text)
        release.set()

    held = threading.Event()
    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(30)
    reporter.message = release_when_told  # type: ignore[method-assign]
    sweep = lab.run_plan(plan, tmp_path, workers=0, reporter=reporter)
    thread.join()
    assert (sweep.run, sweep.failed) == (12, 0)
    (text,) = reporter.messages
    assert text.startswith(
        f"waiting for m=8 seed=0: process {os.getpid()} on {os.uname().nodename}"
    )
    assert " since 20" in text


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


def test_a_damaged_marker_is_mended(tmp_path: Path, plan) -> None:
    lab.run_plan(plan, tmp_path, workers=0)
    marker = tmp_path / "headcount-results.json"
    good = marker.read_bytes()
    for bit in range(0, len(good) * 8, 5):
        bad = bytearray(good)
        bad[bit // 8] ^= 1 << (bit % 8)
        marker.write_bytes(bytes(bad))
        lab.Store(tmp_path)  # never refused: every file tells its own format
    marker.write_bytes(b"{")
    reporter = Messages()
    assert lab.run_plan(plan, tmp_path, workers=0, reporter=reporter).cached == 12
    assert marker.read_bytes() == good
    assert "was damaged" in reporter.messages[0]


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


@pytest.mark.parametrize("number", [errno.EROFS, errno.ENOSPC])
def test_a_view_needs_no_disk(tmp_path: Path, plan, capsys, monkeypatch, number: int) -> None:
    import toy_cli

    lab.run_plan(plan, tmp_path, workers=0)

    def refuse(*arguments: Any, **named: Any) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("headcount.lab._files.write_bytes", refuse)
    monkeypatch.setattr(Path, "mkdir", refuse)
    for line in (f"show toy/mean --out {tmp_path}", f"status --out {tmp_path}"):
        assert toy_cli.app(line.split(), result_action="return_value") == 0
    shown = capsys.readouterr()
    assert "not confirmed" in shown.out
    assert os.strerror(number) in " ".join(shown.err.split())
