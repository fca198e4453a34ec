"""Runs that are cut: nothing is replaced by less, and --resume gives the uninterrupted run."""

from __future__ import annotations

import io
import os
import signal
import threading
from contextlib import contextmanager

import numpy as np
import pytest
import xarray as xr
from rich.console import Console

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


def test_ctrl_c_saves_what_ran(tmp_path, monkeypatch, capsys):
    """The event is set after the first steps; the file is a run of fewer steps, and says so."""

    @contextmanager
    def at_once():
        asked = threading.Event()
        asked.set()
        yield asked

    whole = tmp_path / "whole.nc"
    flags = ["train", "--width", "4", "--n", "12", *DATA, "--steps", "40", "--eta", "0.2"]
    assert run([*flags, "--out", str(whole)]) == 0
    monkeypatch.setattr(_train, "until_interrupted", at_once)
    part = tmp_path / "part.nc"
    assert run([*flags, "--out", str(part)]) == 130
    shown = capsys.readouterr()
    assert "of 40 steps; what ran is saved, and --resume goes on from there" in shown.err
    assert shown.out.count("interrupted") == 1  # the table does not call it completed
    config = training.config_of_run(part)
    assert 1 <= config.steps < 40
    stopped, full = training.read_run(part), training.read_run(whole)
    np.testing.assert_array_equal(stopped.loss, full.loss[:, : config.steps])
    assert stopped.final_loss == pytest.approx(full.loss[:, config.steps], rel=1e-5)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_what_a_scheduler_sends_ends_a_run_like_ctrl_c(name):
    number = getattr(signal, name)
    before = signal.signal(number, signal.SIG_DFL)  # these tests may run under nohup themselves
    try:
        with _train.until_interrupted() as asked:
            os.kill(os.getpid(), number)
            assert asked.wait(60)
        assert signal.getsignal(number) == signal.SIG_DFL
        signal.signal(number, signal.SIG_IGN)  # nohup
        with _train.until_interrupted():
            assert signal.getsignal(number) == signal.SIG_IGN
    finally:
        signal.signal(number, before)


def test_the_first_ctrl_c_asks_and_the_second_interrupts():
    before = signal.getsignal(signal.SIGINT)
    with _train.until_interrupted() as asked:
        os.kill(os.getpid(), signal.SIGINT)
        assert asked.wait(60)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.getsignal(signal.SIGINT) is before


def test_the_live_line_of_an_audit_fits_80_columns(monkeypatch):
    screen = io.StringIO()
    wide = Console(file=screen, width=80, force_terminal=True, color_system=None)
    monkeypatch.setattr("rich.console.Console", lambda **given: wide)
    with _train.training_progress(20, quiet=False) as bar:
        bar(20, 20, 0.000779931)
        bar.say("judging deora2024/fact-1-jacobian (23 of 70)")
        wide.file.truncate(0)
        bar._bar.refresh()
        shown = screen.getvalue()
    assert "judging deora2024/fact-1-jacobian (23 of 70)" in shown
    assert "left" in shown
    assert "…" not in shown
