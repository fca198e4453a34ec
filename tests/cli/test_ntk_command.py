"""headcount ntk as a user calls it."""

from __future__ import annotations

import json

import numpy as np
import pytest
import xarray as xr

from headcount.cli import _ntk
from headcount.cli._ntk import ntk_command
from headcount.cli._problem import ProblemFlags
from headcount.core import BadArgument

TINY = ProblemFlags(width=8, n=12, data_option=["T=3", "d=4", "pool=16", "anchors=3"])


def test_spectrum_traces_and_plan_as_json(capsys):
    assert ntk_command(problem=TINY, eigenvalues=2, json=True) == 0
    shown = json.loads(capsys.readouterr().out)
    traces = shown["traces"]
    assert traces["total"] == pytest.approx(traces["c"] + traces["U"] + traces["W"])
    found = shown["lambda_min"]
    assert found["lower"] <= found["value"] <= found["upper"]
    assert found["value"] == pytest.approx(shown["smallest"][0], abs=found["rounding"])
    assert shown["largest"][0] >= shown["largest"][1] >= shown["smallest"][1]
    assert shown["plan"]["fits"]


def test_both_ways_to_the_ends_of_the_spectrum_agree(monkeypatch):
    factor = np.random.default_rng(0).normal(size=(40, 60))
    kernel = factor @ factor.T
    dense = _ntk._extremes(kernel, 3)
    monkeypatch.setattr(_ntk, "MOST_DENSE", 10)
    for one, other in zip(dense, _ntk._extremes(kernel, 3), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10)
    assert dense[0][0] > dense[0][2] > dense[1][2] > dense[1][0]
    assert _ntk._extremes(kernel, 0) == ([], [])


def test_kernel_file_is_written_resumed_and_equal(tmp_path, capsys):
    file = tmp_path / "k.nc"
    for _ in range(2):
        assert ntk_command(problem=TINY, frozen="W", tile=5, out=file) == 0
        captured = capsys.readouterr()
        assert "peak" in captured.err
        assert "lies in" in captured.out
    data = xr.load_dataset(file, engine="h5netcdf")
    np.testing.assert_allclose(data.total, data.c + data.U)
    assert "W" not in data


def test_dry_run_shows_the_plan_and_bad_flags_are_named(capsys):
    assert ntk_command(problem=TINY, dry_run=True) == 0
    assert "available" in capsys.readouterr().out
    with pytest.raises(BadArgument, match="not a block"):
        ntk_command(problem=TINY, frozen="V")


def test_how_to_train_is_not_looked_at_but_a_typo_is_told(tmp_path, capsys):
    file = tmp_path / "s.toml"
    file.write_text('optimiser = "sgd"\nbatch_size = 32\nn = 100\neta = "none"\n')
    assert ntk_command(file, problem=TINY, dry_run=True, json=True) == 0
    assert json.loads(capsys.readouterr().out)["n1"] == 12
    file.write_text("witdh = 8\n")
    with pytest.raises(BadArgument, match=r"witdh = 8: is no setting; did you mean width"):
        ntk_command(file, problem=TINY, dry_run=True)
