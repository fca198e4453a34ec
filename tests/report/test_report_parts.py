"""Pictures of a size that was asked for."""

from __future__ import annotations

import csv
import io
import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
import toy_figure
from matplotlib.figure import Figure
from rich.console import Console

from headcount import core, lab, report
from headcount.lab._drawing import MARKERS, NOT_NEGATIVE
from headcount.report._files import table
from headcount.report._finish import label_ticks
from headcount.report._plots import COLUMN_INCHES
from headcount.report._progress import LineReporter, LiveReporter, duration
from headcount.report._tables import seeds_text
from headcount.report.site._pictures import harmless_svg


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> lab.Collection:
    folder: Path = tmp_path_factory.mktemp("results")
    plan = lab.make_plan(toy_figure.figure, "smoke", options={"rule": "other"})
    lab.run_plan(plan, folder, workers=0)
    return lab.collect(plan, lab.Store(folder))


@pytest.mark.parametrize("top", [1.5, 4.0, 30.0, 1e4])
def test_logarithmic_axes_have_labelled_ticks(top):
    canvas = Figure()
    ax = canvas.add_subplot()
    ax.plot([1, 2], [1.0, top])
    ax.set(xscale="log", yscale="log", ylim=(1.0, top))
    label_ticks(ax)
    canvas.draw_without_rendering()
    shown = [t for t in ax.get_yticklabels() if t.get_text()]
    inside = [t for t in shown if 1.0 <= t.get_position()[1] <= top]
    assert 3 <= len(inside) <= 9


def test_a_symmetric_logarithmic_axis_has_ticks_in_sight():
    canvas = Figure()
    ax = canvas.subplots()
    ax.set_yscale("symlog", linthresh=1)
    ax.set_ylim(3.6, 4.4)
    label_ticks(ax)
    canvas.draw_without_rendering()
    assert sum(3.6 <= tick <= 4.4 for tick in ax.get_yticks()) >= 2


def test_a_narrow_logarithmic_axis_has_three_ticks_in_sight():
    ax = Figure().subplots()
    ax.set(yscale="log", ylim=(0.00063, 0.00198))
    label_ticks(ax)
    assert sum(0.00063 <= tick <= 0.00198 for tick in ax.get_yticks()) >= 3


def test_a_band_is_cut_off_where_the_quantity_has_no_values(collection):
    ax = Figure().subplots()
    wide = collection.data.assign(mean_error_low=-collection.data["mean_error"])
    lab.draw_interval(ax, wide, "mean_error", "m", within=NOT_NEGATIVE)
    (band,) = ax.collections
    assert min(path.vertices[:, 1].min() for path in band.get_paths()) == 0.0


def test_a_fit_that_names_points_carries_their_marker(collection):
    ax = Figure().subplots()
    lab.draw_power_law(ax, collection.data, "error", "m", index=2, label="toy")
    (line,) = ax.lines
    assert line.get_label().startswith("toy, slope")
    assert line.get_marker() == MARKERS[2]
    assert line.get_markevery() == []  # the points themselves are drawn by their own line


HEAD = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'


EVIL = [
    "<script>alert(1)</script>",
    '<script xlink:href="https://evil.example/x.js"/>',
    '<rect onload="alert(1)"/>',
    '<a xlink:href="javascript:alert(1)"><rect/></a>',
    '<foreignObject><body xmlns="http://www.w3.org/1999/xhtml"><iframe/></body></foreignObject>',
    '<h:script xmlns:h="http://www.w3.org/1999/xhtml">alert(1)</h:script>',
    '<image xlink:href="https://evil.example/x.png"/>',
    '<image href="data:image/svg+xml;base64,AAAA"/>',
    '<use xlink:href="https://evil.example/x.svg#a"/>',
    "<style>@import 'https://evil.example/x.css';</style>",
    "<style>rect { fill: url(https://evil.example/x) }</style>",
    '<rect style="fill: url(//evil.example/x)"/>',
    "<rect fill=\"url('https://evil.example/x')\"/>",
    '<set attributeName="href" to="javascript:alert(1)"/>',
    '<animate attributeName="href" values="javascript:alert(1)"/>',
]


GOOD = (
    '<style>*{stroke-linejoin: round}</style><defs><clipPath id="p1"><rect/></clipPath></defs>'
    '<g clip-path="url(#p1)"><use xlink:href="#m1" style="stroke: #123456"/>'
    '<image xlink:href="data:image/png;base64,iVBOR" style="image-rendering:crisp-edges"/></g>'
)


@pytest.mark.parametrize("evil", EVIL)
def test_a_picture_that_could_run_or_fetch_something_is_disarmed(evil: str) -> None:
    found = harmless_svg(f"{HEAD} onload='alert(1)'>{evil}{GOOD}</svg>".encode()).decode()
    for word in ("script", "alert", "evil", "onload", "iframe", "svg+xml", "animate", "<set"):
        assert word not in found
    for part in ("url(#p1)", 'xlink:href="#m1"', "base64,iVBOR", "crisp-edges", "stroke-linejoin"):
        assert part in found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    lab.run_plan(lab.make_plan(toy_figure.figure, "smoke"), folder, workers=0)
    return folder


@pytest.fixture(scope="module")
def collected(folder: Path) -> lab.Collection:
    return lab.collect(lab.make_plan(toy_figure.figure, "smoke"), lab.Store(folder))


def test_the_table_has_every_plotted_number(collected: lab.Collection) -> None:
    rows = list(csv.DictReader(io.StringIO(table(collected.statistics))))
    stored = {
        float(row[column]) for row in rows for column in ("value", "low", "high") if row[column]
    }
    canvas = report.draw(collected)
    plotted = [y for ax in canvas.axes for line in ax.lines for y in line.get_ydata()]
    assert len(plotted) == 6  # three means, three fitted values
    assert set(map(float, plotted)) <= stored
    mean = next(row for row in rows if row["quantity"] == "mean_error" and row["m"] == "32")
    assert float(mean["low"]) == float(collected.data["mean_error_low"].sel(m=32))
    slope = next(row for row in rows if row["quantity"] == "error_slope")
    assert slope["m"] == ""
    assert float(slope["value"]) == float(collected.data["error_slope"])


def test_plots_fit_a_column_and_are_what_they_claim(collected: lab.Collection) -> None:
    files = report.render(collected, "png", "pdf", "svg")
    assert files["png"].startswith(b"\x89PNG")
    assert files["pdf"].startswith(b"%PDF")
    root = ElementTree.fromstring(files["svg"])
    assert root.attrib["width"] == f"{72 * COLUMN_INCHES:g}pt"
    assert b"slope" in files["svg"]  # text stays text, the fitted slope in the legend
    with pytest.raises(core.BadArgument, match="png, pdf, svg"):
        report.render(collected, "jpg")


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
