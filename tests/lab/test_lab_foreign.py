"""A user's own files, and links: no command changes, removes or follows what it did not make."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import threading
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import toy_figure
from lab_checks import Messages, assert_same

from headcount import core, lab
from headcount.cli import run
from headcount.core._inside import Inside
from headcount.core._owner import owner
from headcount.lab import _files, _remote

DEAD = f"{owner().partition('-')[0]}-{2**22 + 1}-00000000"
ELSEWHERE = "00000000-1-00000000"
ADDRESS = lab.make_plan(toy_figure.figure, "smoke").trials[0].address
HOSTILE = [
    f"{folder}{name}"
    for folder in ("", "running/", "plans/", "trials/", "trials/ab/", "figures/x/", "slurm/abc/")
    for name in (
        "thesis.tmp",
        "old.json.tmp",
        f"thesis.tex.{DEAD}.tmp",
        f"data.nc.{DEAD}.tmp",
        f"{ADDRESS}.h5.{ELSEWHERE}.tmp",
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


def test_a_site_removes_no_file_that_it_has_not_written(tmp_path: Path) -> None:
    lab.Store(tmp_path / "out").prepare()
    site = tmp_path / "site"
    site.mkdir()
    written = {"thesis.tex": b"theirs", "old.html": b"old"}
    listed = {name: hashlib.sha256(content).hexdigest() for name, content in written.items()}
    (site / "headcount-report.json").write_text(json.dumps({"files": listed}))
    (site / "thesis.tex").write_text("mine")
    (site / "old.html").write_text("old")
    assert run(["report", "--out", str(tmp_path / "out"), "--to", str(site)]) == 0
    assert (site / "thesis.tex").read_text() == "mine"
    assert not (site / "old.html").exists()


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


PLACES = {
    "lock": f"running/{ADDRESS}.lock",
    "progress": f"running/{ADDRESS}.json",
    "trace": f"running/{ADDRESS}.trace",
    "checkpoint": f"checkpoints/{ADDRESS}.h5",
    "trial": f"trials/{ADDRESS[:2]}/{ADDRESS}.h5",
    "index": "index/trials.sqlite3",
    "journal": "index/trials.sqlite3-journal",
}


@pytest.mark.parametrize("place", PLACES)
def test_no_link_in_the_place_of_a_file_is_written_through(
    tmp_path: Path, plan: lab.Plan, place: str
) -> None:
    victim, out = tmp_path / "victim", tmp_path / "out"
    victim.write_text("precious")
    lab.Store(out).prepare()
    path = out / PLACES[place]
    path.parent.mkdir(exist_ok=True)
    path.symlink_to(victim)
    policy = lab.Policy(time_limit=600.0)
    if place == "lock":
        with pytest.raises(lab.StorageError, match=r"\.lock: is a link.*move it away"):
            lab.run_plan(plan, out, workers=0, policy=policy)
    else:
        assert lab.run_plan(plan, out, workers=0, checkpoint_seconds=0.0, policy=policy).run == 12
        lab.collect(plan, lab.Store(out))
    assert victim.read_text() == "precious"


@pytest.mark.parametrize("name", ["running", "checkpoints", "plans", "index", "trials", "figures"])
def test_no_link_in_the_place_of_a_folder_is_gone_through(
    tmp_path: Path, plan: lab.Plan, name: str
) -> None:
    out, theirs = tmp_path / "out", tmp_path / "theirs"
    lab.Store(out).prepare()
    fill(theirs, [f"{ADDRESS}.lock", f"data.nc.{DEAD}.tmp", "running/x"])
    (theirs / f"{ADDRESS}.lock").write_bytes(b"")  # what would be removed in a folder of ours
    before = everything(theirs)
    if (out / name).exists():
        (out / name).rmdir()
    (out / name).symlink_to(theirs)
    with pytest.raises(core.BadArgument, match=f"{name} is a link"):
        lab.run_plan(plan, out, workers=0)
    assert everything(theirs) == before


def test_a_results_folder_may_be_given_as_a_link(tmp_path: Path, plan: lab.Plan) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert lab.run_plan(plan, tmp_path / "link", workers=0).run == 12
    lab.collect(plan, lab.Store(tmp_path / "link"))
    assert lab.run_plan(plan, tmp_path / "real", workers=0).cached == 12


def test_links_are_seen_where_the_system_has_no_handles(
    tmp_path: Path, plan: lab.Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headcount.core._inside._HAS_HANDLES", False)
    monkeypatch.setattr("headcount.core._inside._NO_LINK", 0)
    lab.run_plan(plan, tmp_path / "plain", workers=0)
    lab.run_plan(plan, tmp_path / "out", workers=0)
    assert_same(plan, tmp_path / "plain", tmp_path / "out")
    for name, path in {"file": PLACES["lock"], "folder": "running"}.items():
        out, victim = tmp_path / name, tmp_path / f"victim-{name}"
        store = lab.Store(out)
        store.prepare()
        if name == "folder":
            (out / path).rmdir()
            victim.mkdir()
        else:
            victim.write_text("precious")
        (out / path).symlink_to(victim)
        with pytest.raises(OSError, match="is a link"), store.claim(ADDRESS):
            pass
        assert victim.is_dir() or victim.read_text() == "precious"


def test_a_lock_that_is_a_named_pipe_or_a_users_file_is_told(
    tmp_path: Path, plan: lab.Plan
) -> None:
    store = lab.Store(tmp_path)
    store.prepare()
    path = tmp_path / PLACES["lock"]
    path.write_text("mine")
    with pytest.raises(lab.StorageError, match=r"is in the place of a lock.*move it away"):
        lab.run_plan(plan, tmp_path, workers=0)
    assert path.read_text() == "mine"
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(lab.StorageError, match="is no ordinary file"):
        lab.run_plan(plan, tmp_path, workers=0)


def opened_by_a_writer(pipe: Path) -> None:
    """A named pipe that somebody writes nothing to: who waits for its content gets none."""
    os.mkfifo(pipe)
    threading.Thread(target=lambda: pipe.open("wb").close(), daemon=True).start()


def test_a_result_that_is_a_named_pipe_is_not_waited_for(tmp_path: Path, plan: lab.Plan) -> None:
    told: list[str] = []
    store = lab.Store(tmp_path / "out", message=told.append)
    store.prepare()
    path = store.trial_path(ADDRESS)
    path.parent.mkdir()
    opened_by_a_writer(path)
    assert store.read_or_set_aside(ADDRESS) is None
    assert "cannot be read (is no ordinary file)" in told[0]
    assert lab.run_plan(plan, tmp_path / "out", workers=0).failed == 0


def test_a_result_may_lie_behind_a_link(tmp_path: Path, plan: lab.Plan) -> None:
    store = lab.run_plan(plan, tmp_path / "out", workers=0).store
    path = store.trial_path(ADDRESS)
    path.rename(tmp_path / "elsewhere.h5")
    path.symlink_to(tmp_path / "elsewhere.h5")
    assert lab.run_plan(plan, tmp_path / "out", workers=0).cached == len(plan.unique)
    path.unlink()
    path.symlink_to(path)
    assert store.read(ADDRESS) is None


def test_a_probe_is_seen_where_it_was_made_and_nowhere_else(tmp_path: Path) -> None:
    (tmp_path / "running").mkdir()
    place, token = _remote.make_probe(tmp_path)
    assert _remote._sees((place, token))
    Path(place).rename(tmp_path / "elsewhere")
    assert not _remote._sees((place, token))
    Path(place).symlink_to(tmp_path / "elsewhere")
    assert not _remote._sees((place, token))
    Path(place).unlink()
    opened_by_a_writer(Path(place))
    assert not _remote._sees((place, token))


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.ENOSPC, "make room"),
        (errno.EROFS, "make it writable or name another --out"),
        (errno.EACCES, "make it writable or name another --out"),
        (errno.EIO, "see to the disk"),
        (errno.ENOENT, "has vanished"),
    ],
)
def test_the_advice_fits_what_is_wrong(number: int, advice: str) -> None:
    assert advice in str(lab.StorageError.at(Path("x"), OSError(number, os.strerror(number))))


Change = Callable[[h5py.File, dict[str, Any]], None]


def hostile(path: Path, change: Change) -> None:
    """Rewrite a result with whatever `change` does to it, under a checksum that is right."""
    data = path.read_bytes()
    words = data[:512].split(b"sha256=")[0]
    with h5py.File(path, "r+") as file:
        record = json.loads(file["record"][()])
        change(file, record)
        if "record" in file:
            del file["record"]
            file["record"] = json.dumps(record)
    body = path.read_bytes()[512:]
    line = words + f"sha256={hashlib.sha256(body).hexdigest()} bytes={len(body)} ".encode()
    line += f"crc={zlib.crc32(line):08x}\n".encode()
    path.write_bytes(line.ljust(512, b"\0") + body)


def replace(file: h5py.File, name: str, **given: Any) -> None:
    del file[f"payload/{name}"]
    file["payload"].create_dataset(name, **given)


def huge(file: h5py.File, record: dict[str, Any]) -> None:
    replace(file, "errors", shape=(10**11,), dtype="f8", chunks=(1024,))


def external(file: h5py.File, record: dict[str, Any]) -> None:
    replace(file, "errors", shape=(5,), dtype="f8", external=[("/etc/passwd", 0, 40)])


def virtual(file: h5py.File, record: dict[str, Any]) -> None:
    layout = h5py.VirtualLayout((5,), "f8")
    layout[:] = h5py.VirtualSource("other.h5", "secret", (5,))
    del file["payload/errors"]
    file["payload"].create_virtual_dataset("errors", layout)


def linked(file: h5py.File, record: dict[str, Any]) -> None:
    del file["payload/errors"]
    file["payload/errors"] = h5py.ExternalLink("other.h5", "secret")


def softly(file: h5py.File, record: dict[str, Any]) -> None:
    del file["payload/errors"]
    file["payload/errors"] = h5py.SoftLink("/payload/step")


def grouped(file: h5py.File, record: dict[str, Any]) -> None:
    del file["payload/errors"]
    file["payload"].create_group("errors")


def drop(name: str) -> Change:
    def change(file: h5py.File, record: dict[str, Any]) -> None:
        del file[name]

    return change


def put(name: str, value: Any) -> Change:
    def change(file: h5py.File, record: dict[str, Any]) -> None:
        del file[f"payload/{name}"]
        file[f"payload/{name}"] = value

    return change


def say(**more: Any) -> Change:
    return lambda file, record: record.update(more)


def unsay(name: str) -> Change:
    return lambda file, record: record.pop(name) and None


ATTACKS: Mapping[str, Change] = {
    "huge": huge,
    "external": external,
    "virtual": virtual,
    "external link": linked,
    "soft link": softly,
    "no payload": drop("payload"),
    "no record": drop("record"),
    "an output less": drop("payload/errors"),
    "a group": grouped,
    "text": put("errors", "text"),
    "complex": put("errors", np.ones(5, complex)),
    "other dimensions": put("errors", np.ones((5, 5))),
    "other length": put("errors", np.ones(6)),
    "no seconds": unsay("seconds"),
    "endless": say(seconds=float("inf")),
    "no time": say(seconds="long"),
    "another end": say(outcome="splendid"),
    "odd versions": say(versions=[1]),
    "another's configuration": say(config={"m": 8}),
    "no measurement": unsay("measurement"),
    "nonsense": say(outputs=7),
}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    lab.run_plan(lab.make_plan(toy_figure.figure, "smoke"), folder, workers=0)
    return folder


def test_a_hostile_result_is_set_aside_and_named(
    tmp_path: Path, results: Path, plan: lab.Plan
) -> None:
    """Its checksum is right; nothing that it claims is believed, and nothing of it is loaded."""
    for k, (name, change) in enumerate(ATTACKS.items()):
        folder = Path(shutil.copytree(results, tmp_path / str(k)))
        path = folder / PLACES["trial"]
        hostile(path, change)
        messages: list[str] = []
        assert lab.Store(folder, messages.append).state(ADDRESS) == ("missing", ""), name
        (text,) = "\n".join(messages).splitlines()
        assert path.name in text
        reporter = Messages()
        assert lab.run_plan(plan, folder, workers=0, reporter=reporter).run == 1, name
        assert any("set aside" in text for text in reporter.messages)
    assert_same(plan, folder, results)


def test_numbers_that_a_figure_does_not_declare_are_named(
    tmp_path: Path, results: Path, plan: lab.Plan
) -> None:
    folder = Path(shutil.copytree(results, tmp_path / "results"))
    store = lab.Store(folder)
    stored = store.read(ADDRESS)
    assert stored is not None
    record = {**stored.record, "outputs": {"other": []}}
    store.write(ADDRESS, {"other": 1.0}, record)
    with pytest.raises(core.BadArgument, match=rf"{ADDRESS}.h5.*holds \['other'\] instead of"):
        lab.collect(plan, lab.Store(folder))


def test_a_file_of_another_size_is_none_of_ours(tmp_path: Path) -> None:
    _files.write_file(tmp_path / "a.h5", "trial", ADDRESS, {"a": np.ones(3)}, {})
    (tmp_path / "a.h5").write_bytes((tmp_path / "a.h5").read_bytes() + b"\0")
    with pytest.raises(lab.CorruptFile, match="bytes instead of"):
        _files.read_file(tmp_path / "a.h5", "trial", ADDRESS)
