"""A folder that others use too, or that cannot be written: nobody is disturbed, all is told."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from lab_checks import Messages

from headcount import lab


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
