"""Tables, plots and progress of a report, and pictures that are disarmed."""

from __future__ import annotations

import csv
import io
import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
import toy_figure
from rich.console import Console

from headcount import core, lab, report
from headcount.report._files import table
from headcount.report._plots import COLUMN_INCHES
from headcount.report._progress import LineReporter, LiveReporter, duration
from headcount.report._tables import seeds_text
from headcount.report.site._pictures import harmless_svg

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
