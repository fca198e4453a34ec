"""What a results folder says is checked: vanished, swapped, old and foreign files are noticed."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import shutil
import sqlite3
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import toy_figure
from lab_checks import After, Messages, assert_same

from headcount import core, lab
from headcount.lab import _files, _index
from headcount.lab._context import TrialContext


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reference")
    lab.run_plan(lab.make_plan(toy_figure.figure, "smoke"), folder, workers=0)
    return folder


@pytest.fixture
def results(tmp_path: Path, reference: Path) -> Path:
    """A finished folder of one's own."""
    return Path(shutil.copytree(reference, tmp_path / "results"))


def test_results_that_vanish_are_computed_again(tmp_path: Path, plan, reference) -> None:
    store = lab.Store(tmp_path)
    gone = sorted(plan.unique.values(), key=lambda trial: -trial.config["m"])[:2]

    def remove() -> None:
        for trial in gone:
            store.trial_path(trial.address).unlink()

    reporter = After(6, remove)
    sweep = lab.run_plan(plan, tmp_path, workers=0, reporter=reporter)
    assert "2 results have vanished; computing them again" in reporter.messages
    assert (sweep.planned, sweep.cached, sweep.run, sweep.failed) == (12, 0, 12, 0)
    assert_same(plan, tmp_path, reference)


def test_a_cached_result_that_vanishes_is_computed_again(results: Path, plan, reference) -> None:
    store = lab.Store(results)
    first, second = list(plan.unique)[:2]
    store.trial_path(first).unlink()
    reporter = After(1, store.trial_path(second).unlink)
    sweep = lab.run_plan(plan, results, workers=0, reporter=reporter)
    assert (sweep.cached, sweep.run) == (10, 2)
    assert_same(plan, results, reference)


@pytest.mark.parametrize("folder", ["trials", "."])
def test_a_vanished_folder_ends_the_sweep_and_stays_away(tmp_path: Path, plan, folder) -> None:
    gone = tmp_path / "out" / folder
    reporter = After(6, lambda: shutil.rmtree(gone))
    with pytest.raises(
        lab.StorageError, match=r"could not write .* vanished .* run the same command"
    ):
        lab.run_plan(plan, tmp_path / "out", workers=0, reporter=reporter)
    assert not gone.exists()


def test_a_good_file_under_another_name_is_set_aside(results: Path, plan, reference) -> None:
    store = lab.Store(results)
    one, other = plan.trials[0].address, plan.trials[5].address
    shutil.copy2(store.trial_path(one), store.trial_path(other))
    assert store.state(other) == ("missing", "")
    reporter = Messages()
    sweep = lab.run_plan(plan, results, workers=0, reporter=reporter)
    assert sweep.run == 1
    assert any(f"is about {one}" in text for text in reporter.messages)
    assert_same(plan, results, reference)


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


def test_mixed_environments_are_told(results: Path, plan) -> None:
    store = lab.Store(results)
    assert lab.collect(plan, store).notes == ()
    address = plan.trials[0].address
    stored = store.read(address)
    assert stored is not None
    versions = {**stored.record["versions"], "jax": "0.0.1"}
    store.write(address, stored.payload, {**stored.record, "versions": versions})
    (note,) = lab.collect(plan, lab.Store(results)).notes
    assert "2 environments" in note
    assert "1 with" in note
    assert "jax 0.0.1" in note


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


@pytest.mark.parametrize("damage", ["flip", "swap", "remove"])
def test_an_index_hides_no_damage(indexed: Path, plan, reference, damage: str) -> None:
    store = lab.Store(indexed)
    path = store.trial_path(plan.trials[3].address)
    if damage == "remove":
        path.unlink()
    elif damage == "swap":
        shutil.copy2(store.trial_path(plan.trials[4].address), path)
    else:
        data = bytearray(path.read_bytes())
        data[700] ^= 1
        path.write_bytes(bytes(data))
    assert lab.run_plan(plan, indexed, workers=0).run == 1
    assert_same(plan, indexed, reference)


def known(folder: Path, plan) -> int:
    """How many trials the index has copies of."""
    return len(list(lab.Store(folder).index.copies(plan.unique)))


def another_version(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA user_version = 99")


def without_tables(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("DROP TABLE trials")


BAD_INDEXES = {
    "empty": lambda path: path.write_bytes(b""),
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-5000]),
    "no SQLite": lambda path: path.write_bytes(b"nonsense" + path.read_bytes()[8:]),
    "other version": another_version,
    "no tables": without_tables,
    "deleted": lambda path: path.unlink(),
}


@pytest.mark.parametrize("damage", BAD_INDEXES)
def test_a_bad_index_costs_nothing(indexed: Path, plan, reference, damage: str) -> None:
    path = indexed / "index" / "trials.sqlite3"
    assert known(indexed, plan) == 12
    BAD_INDEXES[damage](path)
    assert known(indexed, plan) < 12
    reporter = Messages()
    assert lab.run_plan(plan, indexed, workers=0, reporter=reporter).cached == 12
    assert lab.collect(plan, lab.Store(indexed)).missing == 0
    assert reporter.messages == []
    assert known(indexed, plan) == 12  # and it is made anew
    assert_same(plan, indexed, reference)


def test_no_flipped_bit_of_an_index_is_believed(indexed: Path, plan) -> None:
    path = indexed / "index" / "trials.sqlite3"
    good = path.read_bytes()
    right = {address: copy for address, _, copy in lab.Store(indexed).index.copies(plan.unique)}
    used = [at for at, byte in enumerate(good) if byte]
    for k in core.integers(core.stream(0, "flips"), (150,), 8 * len(used)).tolist():
        bad = bytearray(good)
        bad[used[k // 8]] ^= 1 << (k % 8)
        path.write_bytes(bytes(bad))
        for address, _, copy in lab.Store(indexed).index.copies(plan.unique):
            assert copy.record == right[address].record
            assert copy.payload.keys() == right[address].payload.keys()
            assert all((a == copy.payload[n]).all() for n, a in right[address].payload.items())


def test_a_locked_index_is_done_without(indexed: Path, plan, monkeypatch) -> None:
    monkeypatch.setattr(_index, "_PATIENCE_SECONDS", 0.0)
    path = indexed / "index" / "trials.sqlite3"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("BEGIN EXCLUSIVE")
        assert known(indexed, plan) == 0
        assert lab.collect(plan, lab.Store(indexed)).missing == 0
    assert known(indexed, plan) == 12


def test_an_index_is_not_opened_through_a_link(indexed: Path, plan, tmp_path: Path) -> None:
    path, elsewhere = indexed / "index" / "trials.sqlite3", tmp_path / "elsewhere"
    path.rename(elsewhere)
    before = elsewhere.read_bytes()
    path.symlink_to(elsewhere)
    assert known(indexed, plan) == 0
    assert lab.collect(plan, lab.Store(indexed)).missing == 0
    assert elsewhere.read_bytes() == before


@pytest.mark.parametrize("foreign", ["-journal", "-wal", "-shm"])
def test_no_file_is_lost_to_the_index_for_its_name(indexed: Path, plan, foreign: str) -> None:
    """SQLite takes what has such a name beside it for its own, and removes it."""
    mine = indexed / "index" / f"trials.sqlite3{foreign}"
    for content in (b"mine", b"\0" * 600):
        mine.write_bytes(content)
        assert known(indexed, plan) == 0
        assert lab.collect(plan, lab.Store(indexed)).missing == 0
        assert mine.read_bytes() == content
    mine.unlink()
    assert known(indexed, plan) == 12


def test_what_a_killed_writer_left_beside_the_index_is_undone(indexed: Path, plan) -> None:
    path = indexed / "index" / "trials.sqlite3"
    journal = path.with_name(f"{path.name}-journal")
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA synchronous = OFF")
        database.execute("PRAGMA cache_spill = 1")
        database.execute("BEGIN IMMEDIATE")
        database.execute("DELETE FROM trials")
        half = journal.read_bytes()
        database.execute("ROLLBACK")
    journal.write_bytes(half)
    assert known(indexed, plan) == 12
    assert not journal.exists()


def test_an_index_with_a_log_beside_it_is_made_anew(indexed: Path, plan) -> None:
    path = indexed / "index" / "trials.sqlite3"
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode = WAL")
    assert known(indexed, plan) == 0
    assert lab.collect(plan, lab.Store(indexed)).missing == 0
    assert known(indexed, plan) == 12


def test_several_fill_one_index_at_once(results: Path, plan) -> None:
    def look(_: int) -> bool:
        store = lab.Store(results)
        return all(store.state(address)[0] == "ok" for address in plan.unique)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(look, range(4)))
    assert known(results, plan) == 12


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
