"""Runs that are cut: nothing is replaced by less, and --resume gives the uninterrupted run."""

from __future__ import annotations

import threading
from contextlib import contextmanager

import pytest
import xarray as xr

from headcount import training
from headcount.cli import _train, _unfinished, run

FLAGS = {"width": "4", "n": "12", "eta": "0.2", "seeds": "0:2", "steps": "40", "keep": "average"}
FLAGS |= {"optimiser": "projsgd", "batch-size": "4", "record": "loss", "record-every": "7"}
DATA = [part for option in ("T=3", "d=2", "pool=16") for part in ("--data-option", option)]


def train(out, *more, **changed):
    flags = {**FLAGS, **changed, "out": str(out)}
    return run(["train", *(part for k, v in flags.items() for part in (f"--{k}", v)), *DATA, *more])


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "whole.nc"
    assert train(path) == 0
    return path


@contextmanager
def asked_at_once():
    asked = threading.Event()
    asked.set()
    yield asked


@contextmanager
def killed_after_eleven_steps(steps, *, quiet):
    def progress(done, total, loss):
        if done > 11:
            raise KeyboardInterrupt

    yield progress


def stored(path):
    with xr.open_dataset(path, engine="h5netcdf") as file:
        file.load()
    return file.assign_attrs(seconds=0, checksum=0)


@pytest.mark.parametrize("how", ["asked to stop", "killed"])
def test_a_resumed_run_is_the_uninterrupted_one(how, whole, tmp_path, monkeypatch, capsys):
    out = tmp_path / "new" / "run.nc"
    with monkeypatch.context() as patch:
        if how == "killed":
            patch.setattr(_unfinished, "SECONDS", 0.0)
            patch.setattr(_train, "training_progress", killed_after_eleven_steps)
        else:
            patch.setattr(_train, "until_interrupted", asked_at_once)
        assert train(out) == 130
    assert out.exists() == (how == "asked to stop")
    capsys.readouterr()
    assert train(out) == 2
    assert "is that of an interrupted run; go on with --resume" in capsys.readouterr().err
    assert train(out, "--resume", keep="best") == 2
    assert "is of another run" in capsys.readouterr().err
    told = []

    @contextmanager
    def listening(steps, *, quiet):
        yield lambda done, total, loss: told.append(done)

    monkeypatch.setattr(_train, "training_progress", listening)
    assert train(out, "--resume") == 0
    assert told[0] > (7 if how == "killed" else 1)  # it does not begin again
    xr.testing.assert_identical(stored(out), stored(whole))
    assert [path.name for path in out.parent.iterdir()] == ["run.nc"]


def test_a_damaged_checkpoint_is_told(tmp_path, monkeypatch, capsys):
    with monkeypatch.context() as patch:
        patch.setattr(_train, "until_interrupted", asked_at_once)
        assert train(tmp_path / "run.nc", "--resume") == 130
    path = tmp_path / "run.nc.checkpoint"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    capsys.readouterr()
    assert train(tmp_path / "run.nc", "--resume") == 2
    shown = capsys.readouterr().err
    assert "checksum does not match" in shown
    assert "or delete it" in shown


def test_a_cut_run_is_saved_beside_a_longer_one(whole, tmp_path, monkeypatch, capsys):
    out = tmp_path / "run.nc"
    out.write_bytes(whole.read_bytes())
    monkeypatch.setattr(_train, "until_interrupted", asked_at_once)
    for name in ("run-1-steps.nc", "run-1-steps-2.nc"):
        (tmp_path / "run.nc.checkpoint").unlink(missing_ok=True)
        assert train(out, keep="average" if name == "run-1-steps.nc" else "best") == 130
        told = f"headcount: {out} holds more and stays; the run is in {tmp_path / name}\n"
        assert told in capsys.readouterr().err
        assert training.config_of_run(tmp_path / name).steps == 1
    assert out.read_bytes() == whole.read_bytes()


def test_a_whole_run_replaces_all_but_the_same_run_of_more_steps(whole, tmp_path, capsys):
    out = tmp_path / "run.nc"
    out.write_bytes(whole.read_bytes())
    assert train(out, steps="3") == 0
    assert out.read_bytes() == whole.read_bytes()
    assert training.config_of_run(tmp_path / "run-3-steps.nc").steps == 3
    assert train(out, steps="3", keep="best") == 0
    assert training.config_of_run(out).steps == 3
    assert train(out, steps="5", keep="best") == 0
    assert training.config_of_run(out).steps == 5
