"""Result files: whatever is wrong with one is noticed before a number is used."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import h5py
import numpy as np
import pytest
from lab_checks import Messages, assert_same

from headcount import core, lab
from headcount.core._files import write_and_close
from headcount.lab import _files

ADDRESS = "ab" * 32
ARRAYS = {"loss": np.arange(6.0).reshape(2, 3), "count": np.int64(3), "flag": np.bool_(True)}


def test_a_file_gives_back_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    _files.write_file(path, "trial", ADDRESS, ARRAYS, {"name": "x", "value": 1.5})
    arrays, record, _ = _files.read_file(path, "trial", ADDRESS)
    assert record == {"name": "x", "value": 1.5}
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array)
        assert arrays[name].dtype == np.asarray(array).dtype
    assert [p.name for p in tmp_path.iterdir()] == ["a.h5"]


def test_any_hdf5_tool_opens_a_result_file(tmp_path: Path) -> None:
    _files.write_file(tmp_path / "a.h5", "trial", ADDRESS, ARRAYS, {})
    with h5py.File(tmp_path / "a.h5") as file:
        np.testing.assert_array_equal(file["payload/loss"][()], ARRAYS["loss"])


def encoded() -> bytes:
    return _files.encode("trial", ADDRESS, ARRAYS, {})


def test_the_same_content_gives_the_same_bytes() -> None:
    assert encoded() == encoded()


@pytest.mark.parametrize("length", [0, 10, 511, 512, 600, -1])
def test_a_truncated_file_is_recognised(tmp_path: Path, length: int) -> None:
    path = tmp_path / "a.h5"
    _files.write_file(path, "trial", ADDRESS, ARRAYS, {})
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(lab.CorruptFile):
        _files.read_file(path, "trial", ADDRESS)


def test_every_flipped_bit_is_recognised(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    _files.write_file(path, "trial", ADDRESS, ARRAYS, {})
    good = path.read_bytes()
    draws = core.integers(core.stream(0, "flips"), (150,), len(good) * 8).tolist()
    header = range(0, 150 * 8, 7)  # the header's text has its own danger: a wrong version number
    for bit in [*draws, *header]:
        bad = bytearray(good)
        bad[bit // 8] ^= 1 << (bit % 8)
        path.write_bytes(bytes(bad))
        with pytest.raises(lab.CorruptFile):
            _files.read_file(path, "trial", ADDRESS)


def test_a_checkpoint_is_not_taken_for_a_result(tmp_path: Path) -> None:
    _files.write_file(tmp_path / "a.h5", "checkpoint", ADDRESS, ARRAYS, {})
    with pytest.raises(lab.CorruptFile, match="holds a checkpoint"):
        _files.read_file(tmp_path / "a.h5", "trial", ADDRESS)


def test_a_newer_file_is_refused_not_set_aside(
    tmp_path: Path, plan: lab.Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = next(iter(plan.unique))
    store = lab.Store(tmp_path)
    store.prepare()
    monkeypatch.setattr(_files, "FORMAT", 7)
    store.write(address, {}, {"outcome": "ok"})
    monkeypatch.undo()
    with pytest.raises(lab.NewerFormat, match="format 7, this Headcount reads up to format 2"):
        store.read_or_set_aside(address)
    assert store.trial_path(address).exists()


def test_a_newer_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "headcount-results.json").write_text(json.dumps({"format": 3}))
    with pytest.raises(lab.NewerFormat, match="upgrade Headcount or choose another folder"):
        lab.Store(tmp_path)


def test_a_file_as_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "headcount-results.json").write_text("{")
    with pytest.raises(core.BadArgument, match="is not a folder"):
        lab.Store(tmp_path / "headcount-results.json")


def test_text_is_no_result(tmp_path: Path) -> None:
    with pytest.raises(core.BadArgument, match="dtype"):
        _files.write_file(tmp_path / "a.h5", "trial", ADDRESS, {"name": "text"}, {})


@pytest.mark.parametrize("damage", ["truncate", "flip", "empty"])
def test_a_damaged_result_is_set_aside_and_recomputed(
    tmp_path: Path, plan: lab.Plan, damage: str
) -> None:
    out, fresh = tmp_path / "out", tmp_path / "fresh"
    lab.run_plan(plan, out, workers=0)
    path = lab.Store(out).trial_path(list(plan.unique)[5])
    data = path.read_bytes()
    middle = len(data) // 2
    damaged = {
        "truncate": data[:middle],
        "flip": data[:middle] + bytes([data[middle] ^ 4]) + data[middle + 1 :],
        "empty": b"",
    }[damage]
    path.write_bytes(damaged)
    reporter = Messages()
    sweep = lab.run_plan(plan, out, workers=0, reporter=reporter)
    assert (sweep.cached, sweep.run) == (11, 1)
    assert any("set aside as" in text for text in reporter.messages)
    assert path.with_name(path.name + ".corrupt-1").read_bytes() == damaged
    lab.run_plan(plan, fresh, workers=0)
    assert_same(plan, out, fresh)


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.ENOSPC, "make room"),
        (errno.EDQUOT, "make room"),
        (errno.EROFS, "make it writable or name another --out"),
        (errno.EACCES, "make it writable or name another --out"),
    ],
)
def test_a_disk_that_takes_no_more_corrupts_nothing(
    tmp_path: Path, plan: lab.Plan, monkeypatch: pytest.MonkeyPatch, number: int, advice: str
) -> None:
    write, count = write_and_close, 0

    def full_after_five(descriptor: int, data: bytes) -> None:
        nonlocal count
        if b"kind=trial" in data[:64]:
            count += 1
            if count > 5:
                write(descriptor, data[: len(data) // 2])
                raise OSError(number, os.strerror(number))
        write(descriptor, data)

    monkeypatch.setattr("headcount.core._files.write_and_close", full_after_five)
    told = rf"{os.strerror(number)}; what was finished is saved and intact, {advice} and run the"
    with pytest.raises(lab.StorageError, match=told):
        lab.run_plan(plan, tmp_path / "out", workers=0)
    monkeypatch.undo()
    assert not list((tmp_path / "out").rglob("*.tmp"))
    sweep = lab.run_plan(plan, tmp_path / "out", workers=0)
    assert (sweep.cached, sweep.run, sweep.failed) == (5, 7, 0)
    lab.run_plan(plan, tmp_path / "fresh", workers=0)
    assert_same(plan, tmp_path / "out", tmp_path / "fresh")


def test_an_unwritable_folder_is_refused_before_work(
    tmp_path: Path, plan: lab.Plan, calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Path, *args: object, **kwargs: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refuse)  # root may write anywhere, so chmod tests nothing
    with pytest.raises(core.BadArgument, match=r"cannot be written .*choose another folder"):
        lab.run_plan(plan, tmp_path / "out", workers=0)
    assert calls() == []
