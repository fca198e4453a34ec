"""Files, plots and displays: complete, deterministic, readable by others."""

from __future__ import annotations

import csv
import io
import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
import toy_figure
import xarray as xr
from rich.console import Console

from headcount import core, lab, report
from headcount.report._files import table
from headcount.report._plots import COLUMN_INCHES
from headcount.report._progress import LineReporter, LiveReporter, duration
from headcount.report._tables import seeds_text


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    lab.run_plan(lab.make_plan(toy_figure.figure, "smoke"), folder, workers=0)
    return folder


@pytest.fixture(scope="module")
def collection(folder: Path) -> lab.Collection:
    return lab.collect(lab.make_plan(toy_figure.figure, "smoke"), lab.Store(folder))


def test_the_same_results_give_the_same_bytes(folder: Path, collection: lab.Collection) -> None:
    store = lab.Store(folder)
    files = report.write_files(collection, store)
    first = {file: file.read_bytes() for file in files if file.suffix != ".nc"}
    report.write_files(lab.collect(collection.plan, store), store)
    assert {file: file.read_bytes() for file in first} == first
    assert not list(folder.rglob("*.tmp"))


def test_netcdf_gives_the_data_set_back(folder: Path, collection: lab.Collection) -> None:
    files = {file.name: file for file in report.write_files(collection, lab.Store(folder))}
    with xr.open_dataset(files["data.nc"], engine="h5netcdf") as data:
        xr.testing.assert_identical(data.load(), collection.data)


def test_the_table_has_every_plotted_number(collection: lab.Collection) -> None:
    rows = list(csv.DictReader(io.StringIO(table(collection.statistics))))
    stored = {
        float(row[column]) for row in rows for column in ("value", "low", "high") if row[column]
    }
    canvas = report.draw(collection)
    plotted = [y for ax in canvas.axes for line in ax.lines for y in line.get_ydata()]
    assert len(plotted) == 6  # three means, three fitted values
    assert set(map(float, plotted)) <= stored
    mean = next(row for row in rows if row["quantity"] == "mean_error" and row["m"] == "32")
    assert float(mean["low"]) == float(collection.data["mean_error_low"].sel(m=32))
    slope = next(row for row in rows if row["quantity"] == "error_slope")
    assert slope["m"] == ""
    assert float(slope["value"]) == float(collection.data["error_slope"])


def test_plots_fit_a_column_and_are_what_they_claim(collection: lab.Collection) -> None:
    files = report.render(collection, "png", "pdf", "svg")
    assert files["png"].startswith(b"\x89PNG")
    assert files["pdf"].startswith(b"%PDF")
    root = ElementTree.fromstring(files["svg"])
    assert root.attrib["width"] == f"{72 * COLUMN_INCHES:g}pt"
    assert b"slope" in files["svg"]  # text stays text, the fitted slope in the legend
    with pytest.raises(core.BadArgument, match="png, pdf, svg"):
        report.render(collection, "jpg")


def test_drawing_leaves_matplotlib_alone(collection: lab.Collection) -> None:
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    report.draw(collection)
    assert dict(mpl.rcParams) == before


def test_verdicts_json_holds_the_sentences(folder: Path, collection: lab.Collection) -> None:
    files = {file.name: file for file in report.write_files(collection, lab.Store(folder))}
    content = json.loads(files["verdicts.json"].read_text())
    assert content["verdicts"][1]["sentence"].startswith("mean 0.0")
    assert content["settings"]["widths"] == [8, 32, 128]


def test_other_options_and_seeds_get_their_own_folder(tmp_path: Path) -> None:
    plan = lab.make_plan(toy_figure.figure, "smoke", [2, 5], {"rule": "other"})
    lab.run_plan(plan, tmp_path, workers=0)
    store = lab.Store(tmp_path)
    (first, *_) = report.write_files(lab.collect(plan, store), store)
    assert first.parent.name == "rule=other-seeds=2,5"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.42, "0.4 s"),
        (9.97, "10 s"),
        (59.6, "1 min 0 s"),
        (185, "3 min 5 s"),
        (7800, "2 h 10 min"),
        (50 * 86400, "50 days"),
        (1.37e8, "4.3 years"),
        (float("nan"), "?"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_sizes_and_seeds_for_people() -> None:
    assert [seeds_text(s) for s in ([0, 1, 2], [4], [1, 3])] == ["0:3", "4", "1,3"]


@pytest.mark.parametrize("terminal", [True, False])
def test_displays_tell_counts_and_problems(tmp_path: Path, monkeypatch, terminal: bool) -> None:
    monkeypatch.setenv("TOY_FAIL", "32-1")
    console = Console(file=io.StringIO(), force_terminal=terminal, width=120)
    reporter = report.make_reporter(console)
    assert isinstance(reporter, LiveReporter if terminal else LineReporter)
    plan = lab.make_plan(toy_figure.figure, "smoke")
    lab.run_plan(plan, tmp_path, workers=0, reporter=reporter)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "m=32 seed=1: failed: ArithmeticError: asked to fail" in text
    assert "12/12 trials" in text


@pytest.mark.parametrize("terminal", [True, False])
def test_displays_show_running_trials(folder: Path, terminal: bool) -> None:
    """Overall and per-trial progress, time left, current values."""
    plan = lab.make_plan(toy_figure.figure, "smoke")
    store = lab.Store(folder)
    trial = plan.trials[0]
    store.progress_path(trial.address).write_text(
        json.dumps({"label": trial.label, "done": 2, "total": 4, "seconds": 1.0,
                    "values": {"loss": "0.125"}})
    )  # fmt: skip
    sweep = lab.Sweep(planned=12, cached=3, work_total=10.0, store=store)
    sweep.in_flight[trial.address] = trial
    console = Console(file=io.StringIO(), force_terminal=terminal, width=120)
    reporter = report.make_reporter(console)
    reporter.begin(sweep)
    if isinstance(reporter, LiveReporter):
        console.print(reporter._render())
    reporter.end(sweep)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    for part in ("3/12 trials", "left", "m=8 seed=0", "loss 0.125"):
        assert part in text
    assert sweep.fraction() == pytest.approx(0.5 * 4e-6 / 10)
    store.progress_path(trial.address).unlink()


def test_reference_slopes_are_drawn() -> None:
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    x = np.array([1.0, 4.0])
    assert lab.draw_reference_slope(ax, x, 2.0, -0.5, "predicted") is ax
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [2.0, 1.0])
