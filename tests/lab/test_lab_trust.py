"""What a results folder says is checked: vanished, swapped, old and foreign files are noticed."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import toy_figure
from lab_checks import After, Messages, assert_same

from headcount import core, lab


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


@pytest.fixture
def indexed(results: Path, plan) -> Path:
    lab.collect(plan, lab.Store(results))
    return results


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


def test_an_index_is_not_opened_through_a_link(indexed: Path, plan, tmp_path: Path) -> None:
    path, elsewhere = indexed / "index" / "trials.sqlite3", tmp_path / "elsewhere"
    path.rename(elsewhere)
    before = elsewhere.read_bytes()
    path.symlink_to(elsewhere)
    assert known(indexed, plan) == 0
    assert lab.collect(plan, lab.Store(indexed)).missing == 0
    assert elsewhere.read_bytes() == before


def test_several_fill_one_index_at_once(results: Path, plan) -> None:
    def look(_: int) -> bool:
        store = lab.Store(results)
        return all(store.state(address)[0] == "ok" for address in plan.unique)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(look, range(4)))
    assert known(results, plan) == 12
