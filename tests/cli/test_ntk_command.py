"""headcount ntk as a user calls it."""

from __future__ import annotations

import json

import numpy as np
import pytest
import xarray as xr

from headcount.cli import run

OPTIONS = ("T=3", "d=4", "pool=16", "anchors=3")
TINY = ["--width", "8", "--n", "12", *(p for o in OPTIONS for p in ("--data-option", o))]


def test_spectrum_traces_and_plan_as_json(capsys):
    assert run(["ntk", *TINY, "--eigenvalues", "2", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    traces = shown["traces"]
    assert traces["total"] == pytest.approx(traces["c"] + traces["U"] + traces["W"])
    found = shown["lambda_min"]
    assert found["lower"] <= found["value"] <= found["upper"]
    assert found["value"] == pytest.approx(shown["smallest"][0], abs=found["rounding"])
    assert shown["largest"][0] >= shown["largest"][1] >= shown["smallest"][1]
    assert shown["plan"]["fits"]


def test_kernel_file_is_written_resumed_and_equal(tmp_path, capsys):
    file = tmp_path / "k.nc"
    for _ in range(2):
        assert run(["ntk", *TINY, "--frozen", "W", "--tile", "5", "--out", str(file)]) == 0
        captured = capsys.readouterr()
        assert "peak" in captured.err
        assert "lies in" in captured.out
    data = xr.load_dataset(file, engine="h5netcdf")
    np.testing.assert_allclose(data.total, data.c + data.U)
    assert "W" not in data


def test_dry_run_shows_the_plan_and_bad_flags_are_named(capsys):
    assert run(["ntk", *TINY, "--dry-run"]) == 0
    assert "available" in capsys.readouterr().out
    assert run(["ntk", *TINY, "--frozen", "V"]) == 2
    assert "not a block" in capsys.readouterr().err


def test_how_to_train_is_not_looked_at_but_a_typo_is_told(tmp_path, capsys):
    file = tmp_path / "s.toml"
    file.write_text('optimiser = "sgd"\nbatch_size = 32\nn = 100\neta = "none"\n')
    assert run(["ntk", str(file), *TINY, "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["n1"] == 12
    file.write_text("witdh = 8\n")
    assert run(["ntk", str(file), *TINY, "--dry-run"]) == 2
    assert "witdh = 8: is no setting; did you mean width" in capsys.readouterr().err
