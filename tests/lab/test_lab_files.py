"""Result files: whatever is wrong with one is noticed before a number is used."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import sqlite3
import zlib
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import toy_figure
from lab_checks import Messages, assert_same

from headcount import core, lab
from headcount.cli import run
from headcount.core._files import write_and_close
from headcount.core._inside import Inside
from headcount.core._owner import owner
from headcount.lab import _files, _index
from headcount.lab._context import TrialContext

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


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reference")
    lab.run_plan(lab.make_plan(toy_figure.figure, "smoke"), folder, workers=0)
    return folder


@pytest.fixture
def results(tmp_path: Path, reference: Path) -> Path:
    """A finished folder of one's own."""
    return Path(shutil.copytree(reference, tmp_path / "results"))


def in_format_one(path: Path) -> None:
    """Rewrite a file as the first version of the format had it: no address, no origin."""
    data = path.read_bytes()
    body = data[_files.HEADER_BYTES :]
    kind = data.split(b"kind=")[1].split()[0].decode()
    line = f"headcount format=1 kind={kind} sha256={hashlib.sha256(body).hexdigest()} "
    line += f"bytes={len(body)} "
    line += f"crc={zlib.crc32(line.encode()):08x}\n"
    path.write_bytes(line.encode().ljust(_files.HEADER_BYTES, b"\0") + body)


def test_results_of_the_first_format_are_read_and_checked(results: Path, plan, reference) -> None:
    store = lab.Store(results)
    for address in plan.unique:
        in_format_one(store.trial_path(address))
    assert lab.run_plan(plan, results, workers=0).cached == 12
    assert_same(plan, results, reference)
    one, other = plan.trials[0].address, plan.trials[5].address
    shutil.copy2(store.trial_path(one), store.trial_path(other))
    assert lab.run_plan(plan, results, workers=0).run == 1
    assert_same(plan, results, reference)


def make_context(folder: Path, address: str = "ab" * 32) -> TrialContext:
    return TrialContext(
        address=address,
        label="t",
        checkpoint_path=folder / "checkpoint.h5",
        progress_path=folder / "progress.json",
        stop_path=None,
        checkpoint_seconds=0.0,
    )


def test_a_state_of_another_trial_version_or_cpu_is_not_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_context(tmp_path).checkpoint({"a": 1.0})
    assert make_context(tmp_path).restore() == {"a": 1.0}
    other = make_context(tmp_path, "cd" * 32)
    assert other.restore() is None
    assert "is about abab" in other.messages[0]
    assert not (tmp_path / "checkpoint.h5").exists()
    monkeypatch.setattr(_files, "origin", lambda: "jax-0.0.1,cpu-abacus")
    make_context(tmp_path).checkpoint({"a": 1.0})
    monkeypatch.undo()
    elsewhere = make_context(tmp_path)
    assert elsewhere.restore() is None
    assert "made with jax-0.0.1,cpu-abacus" in elsewhere.messages[0]
    elsewhere.close(finished=True)
    assert list(tmp_path.iterdir()) == []


def test_a_state_of_the_first_format_is_gone_on_with(tmp_path: Path) -> None:
    make_context(tmp_path).checkpoint({"a": 1.0})
    in_format_one(tmp_path / "checkpoint.h5")
    assert make_context(tmp_path).restore() == {"a": 1.0}


@pytest.mark.parametrize("problem", ["newer", "disk"])
def test_an_unreadable_state_is_no_failed_trial(
    tmp_path: Path, plan, reference, monkeypatch: pytest.MonkeyPatch, problem: str
) -> None:
    trial = plan.trials[0]
    store = lab.Store(tmp_path)
    store.prepare()
    path = store.checkpoint_path(trial.address)
    monkeypatch.setattr(_files, "FORMAT", 9)
    _files.write_file(path, "checkpoint", trial.address, {"step": np.int64(1)}, {"seconds": 1.0})
    monkeypatch.undo()
    if problem == "disk":
        read = Path.read_bytes

        def fail(self: Path) -> bytes:
            if self == path:
                raise OSError(errno.EIO, "Input/output error")
            return read(self)

        monkeypatch.setattr(Path, "read_bytes", fail)
    reporter = Messages()
    sweep = lab.run_plan(plan, tmp_path, workers=0, reporter=reporter)
    assert sweep.failed == 0
    assert any("starting afresh" in text for text in reporter.messages)
    assert_same(plan, tmp_path, reference)
    assert list((tmp_path / "checkpoints").iterdir()) == []


def count_checks(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The trial files whose bytes are checked from now on."""
    checked: list[Path] = []
    check = _files.check_file

    def counting(path: Path, kind: str, address: str) -> Any:
        if kind == "trial":
            checked.append(path)
        return check(path, kind, address)

    monkeypatch.setattr(_files, "check_file", counting)
    return checked


@pytest.fixture
def indexed(results: Path, plan) -> Path:
    lab.collect(plan, lab.Store(results))
    return results


def test_with_an_index_no_small_file_is_opened_again(indexed: Path, plan, monkeypatch) -> None:
    before = lab.collect(plan, lab.Store(indexed))
    checked = count_checks(monkeypatch)
    sweep = lab.run_plan(plan, indexed, workers=0)
    after = lab.collect(plan, sweep.store)
    assert checked == []
    assert after.data.identical(before.data)
    assert after.verdicts == before.verdicts


def known(folder: Path, plan) -> int:
    """How many trials the index has copies of."""
    return len(list(lab.Store(folder).index.copies(plan.unique)))


def test_a_locked_index_is_done_without(indexed: Path, plan, monkeypatch) -> None:
    monkeypatch.setattr(_index, "_PATIENCE_SECONDS", 0.0)
    path = indexed / "index" / "trials.sqlite3"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("BEGIN EXCLUSIVE")
        assert known(indexed, plan) == 0
        assert lab.collect(plan, lab.Store(indexed)).missing == 0
    assert known(indexed, plan) == 12


def test_notes_of_earlier_versions_are_read(tmp_path: Path) -> None:
    path = tmp_path / "note.json"
    path.write_text(json.dumps({"a": 1}))
    assert _files.read_note(path) == {"a": 1}
    path.write_text(json.dumps({"a": 1}) + "\n")
    assert _files.read_note(path) == {"a": 1}
    for bad in ("", "[1]", "{", '{"a": 1}\nsha256=0\n'):
        path.write_text(bad)
        with pytest.raises(lab.CorruptFile):
            _files.read_note(path)


DEAD = f"{owner().partition('-')[0]}-{2**22 + 1}-00000000"


ELSEWHERE = "00000000-1-00000000"


TRIAL = lab.make_plan(toy_figure.figure, "smoke").trials[0].address


HOSTILE = [
    f"{folder}{name}"
    for folder in ("", "running/", "plans/", "trials/", "trials/ab/", "figures/x/", "slurm/abc/")
    for name in (
        "thesis.tmp",
        "old.json.tmp",
        f"thesis.tex.{DEAD}.tmp",
        f"data.nc.{DEAD}.tmp",
        f"{TRIAL}.h5.{ELSEWHERE}.tmp",
        f"sweep.{DEAD}.stop",
        f"sweep.{DEAD}.probe",
        f"{'ab' * 32}.lock",
        f"{'ab' * 32}.json",
        f"{'ab' * 32}.trace",
        f"{'ab' * 32}.h5",
        "notes.json",
        "my.lock",
        "my.trace",
        "a b\nc.tmp",
        "-rf",
        ".hidden.tmp",
    )
]


def fill(folder: Path, names: list[str]) -> None:
    """A user's files, all of them old, with links among them."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"mine: " + name.encode())
        os.utime(path, (0, 0))
    (folder / "running" / "link.lock").symlink_to(folder / "thesis.tmp")
    (folder / "gone.tmp").symlink_to(folder / "nowhere")


def everything(folder: Path) -> dict[str, Any]:
    """Every name with what it holds."""
    return {
        str(path.relative_to(folder)): os.readlink(path)
        if path.is_symlink()
        else path.read_bytes()
        if path.is_file()
        else None
        for path in folder.rglob("*")
    }


COMMANDS = [
    "reproduce toy/mean --scale smoke --workers 0",
    "reproduce toy/mean --scale smoke --dry-run",
    "reproduce --all --scale smoke --workers 0",
    "status",
    "show toy/mean",
    "report",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_folder_of_somebody_else_is_refused_and_left_as_it_is(
    tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(tmp_path / "mine", HOSTILE)
    before = everything(tmp_path)
    more = ["--to", str(tmp_path / "mine")] if command == "report" else []
    assert run([*command.split(), "--out", str(tmp_path / "mine"), *more]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert "no results folder; choose another folder with --out" in told or "is no report" in told
    assert everything(tmp_path) == before


def test_other_files_in_a_results_folder_stay(tmp_path: Path, plan: lab.Plan) -> None:
    out = tmp_path / "out"
    lab.Store(out).prepare()
    fill(out, HOSTILE)
    mine = {name: content for name, content in everything(out).items() if content is not None}
    mine.pop("headcount-results.json")
    for command in [COMMANDS[0], "status", f"report --to {tmp_path / 'site'}"]:
        assert run([*command.split(), "--out", str(out)]) == 0
        after = everything(out)
        assert {name: after.get(name) for name in mine} == mine


def test_the_marker_is_written_before_anything_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed at any moment, and beside any other sweep, the folder is known as ours."""
    seen: list[bool] = []
    make = Inside.make

    def watching(self: Inside, name: str) -> None:
        seen.append((tmp_path / "headcount-results.json").exists())
        make(self, name)

    monkeypatch.setattr(Inside, "make", watching)
    lab.Store(tmp_path).prepare()
    assert seen
    assert all(seen)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / f"headcount-results.json.{DEAD}.tmp").touch()
    lab.Store(tmp_path / "other").prepare()


@pytest.mark.parametrize("name", ["running", "checkpoints", "plans", "index", "trials", "figures"])
def test_no_link_in_the_place_of_a_folder_is_gone_through(
    tmp_path: Path, plan: lab.Plan, name: str
) -> None:
    out, theirs = tmp_path / "out", tmp_path / "theirs"
    lab.Store(out).prepare()
    fill(theirs, [f"{TRIAL}.lock", f"data.nc.{DEAD}.tmp", "running/x"])
    (theirs / f"{TRIAL}.lock").write_bytes(b"")  # what would be removed in a folder of ours
    before = everything(theirs)
    if (out / name).exists():
        (out / name).rmdir()
    (out / name).symlink_to(theirs)
    with pytest.raises(core.BadArgument, match=f"{name} is a link"):
        lab.run_plan(plan, out, workers=0)
    assert everything(theirs) == before


def test_a_file_of_another_size_is_none_of_ours(tmp_path: Path) -> None:
    _files.write_file(tmp_path / "a.h5", "trial", TRIAL, {"a": np.ones(3)}, {})
    (tmp_path / "a.h5").write_bytes((tmp_path / "a.h5").read_bytes() + b"\0")
    with pytest.raises(lab.CorruptFile, match="bytes instead of"):
        _files.read_file(tmp_path / "a.h5", "trial", TRIAL)
