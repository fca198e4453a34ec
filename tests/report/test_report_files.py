"""Files, plots and displays: complete, deterministic, readable by others."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import toy_figure
import xarray as xr

from headcount import lab, report


def test_the_same_results_give_the_same_bytes(folder: Path, collected: lab.Collection) -> None:
    store = lab.Store(folder)
    files = report.write_files(collected, store)
    first = {file: file.read_bytes() for file in files if file.suffix != ".nc"}
    report.write_files(lab.collect(collected.plan, store), store)
    assert {file: file.read_bytes() for file in first} == first
    assert not list(folder.rglob("*.tmp"))


def test_netcdf_gives_the_data_set_back(folder: Path, collected: lab.Collection) -> None:
    files = {file.name: file for file in report.write_files(collected, lab.Store(folder))}
    with xr.open_dataset(files["data.nc"], engine="h5netcdf") as data:
        xr.testing.assert_identical(data.load(), collected.data)


def test_drawing_leaves_matplotlib_alone(collected: lab.Collection) -> None:
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    report.draw(collected)
    assert dict(mpl.rcParams) == before


def test_verdicts_json_holds_the_sentences(folder: Path, collected: lab.Collection) -> None:
    files = {file.name: file for file in report.write_files(collected, lab.Store(folder))}
    content = json.loads(files["verdicts.json"].read_text())
    assert content["verdicts"][1]["sentence"].startswith("mean 0.0")
    assert content["settings"]["widths"] == [8, 32, 128]


def test_other_options_and_seeds_get_their_own_folder(tmp_path: Path) -> None:
    plan = lab.make_plan(toy_figure.figure, "smoke", [2, 5], {"rule": "other"})
    lab.run_plan(plan, tmp_path, workers=0)
    store = lab.Store(tmp_path)
    (first, *_) = report.write_files(lab.collect(plan, store), store)
    assert first.parent.name == "rule=other-seeds=2,5"


def test_reference_slopes_are_drawn() -> None:
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    x = np.array([1.0, 4.0])
    assert lab.draw_reference_slope(ax, x, 2.0, -0.5, "predicted") is ax
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [2.0, 1.0])
