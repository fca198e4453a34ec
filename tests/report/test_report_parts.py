"""Pictures of a size that was asked for."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import types
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import toy_figure
from matplotlib.figure import Figure
from rich.console import Console

from headcount import core, lab, report
from headcount.cli import run
from headcount.core import BadArgument
from headcount.lab._drawing import MARKERS, NOT_NEGATIVE
from headcount.lab._readings import Axis, robustness_sentence
from headcount.report._files import table
from headcount.report._finish import label_ticks
from headcount.report._plots import COLUMN_INCHES, PAGE_INCHES, Look, draw
from headcount.report._progress import LineReporter, LiveReporter, duration
from headcount.report._readings import _fit_to_values, specification_curve
from headcount.report._tables import seeds_text
from headcount.report.site import FigureResult, build_site
from headcount.report.site._pictures import harmless_svg


@pytest.mark.parametrize(
    ("width", "grid"), [(3.3, (3, 1)), (5.5, (2, 2)), (7.0, (1, 3)), (20.0, (1, 3))]
)
def test_as_many_panels_stand_side_by_side_as_have_room(width, grid):
    assert Look(width).grid(1, 3) == (*grid, width)


def test_sizes_by_name_and_in_inches():
    assert Look.of_size("column").width == COLUMN_INCHES
    assert Look.of_size("page", title="t").width == PAGE_INCHES
    assert Look.of_size("5.5x3") == Look(5.5, 3.0)
    assert Look.of_size(None) == Look()
    for size in ("wide", "5", "axb", "0x3", "5x900", "nanx3", "5x"):
        with pytest.raises(BadArgument, match=r"is no size|must be 1\.5 to 50 inches"):
            Look.of_size(size)


class Toy:
    """As much of a collection as is drawn: three panels, one line each."""

    data = types.SimpleNamespace(data_vars={}, copy=lambda: None)
    verdicts = (types.SimpleNamespace(outcome="confirmed"),) * 2
    plan = types.SimpleNamespace(
        seeds=(0, 1),
        scale="smoke",
        options={},
        figure=types.SimpleNamespace(
            id="a/b", layout=(1, 3), bands="", options={},
            plot=lambda data, axes: [
                (ax.plot([1, 2], [k, 3], label="a"), ax.legend()) for k, ax in enumerate(axes)
            ],
        ),
    )  # fmt: skip


def test_a_picture_has_the_width_all_panels_and_its_verdicts():
    canvas = draw(Toy(), Look(5.5, title="Mine", verdicts=True))
    assert canvas.get_size_inches()[0] == 5.5
    assert len(canvas.axes) == 3
    assert canvas.get_suptitle() == "Mine"
    assert "Verdicts: 2 confirmed" in canvas.get_supxlabel()
    assert "Verdicts" not in draw(Toy()).get_supxlabel()
    assert draw(Toy(), Look(7.0, 4.0)).get_size_inches().tolist() == [7.0, 4.0]


def test_a_height_without_room_is_refused():
    with pytest.raises(BadArgument, match=r"leaves no room.*use \d"):
        draw(Toy(), Look(3.3, 3.0))


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


AXES = {
    "rule": Axis("rule", "silent", {"plain": "the usual", "other": "another"}),
    "average": Axis("average", "on average (Sec. 2)", {"m": "mean", "g": "on logs", "h": "x"}),
}


def trials(
    settings: Any, seeds: Sequence[int], options: dict[str, str]
) -> list[lab.Trial]:  # `average` changes no trial
    return toy_figure.trials(settings, seeds, options)


def verdicts(data: Any) -> list[lab.Finding]:
    """One claim that holds but for one rule, and one that never does."""
    options = json.loads(data.attrs["plan"])["options"]
    sign = -1.0 if options["rule"] == "other" else 1.0
    error = sign * (1 + data["error"].transpose("seed", "m").values)
    source = lab.Source("the error is positive", "Sec. 1")
    return [
        lab.threshold("positive", error[:, -1], above=0.0, source=source),
        lab.threshold("large", error[:, -1], above=9.0),
        lab.threshold("finite", np.isfinite(error[:, -1]) * 1.0, above=0.5, source=lab.SANITY),
    ]


FIGURE = dataclasses.replace(
    toy_figure.figure, id="toy/readings", axes=AXES, options={}, trials=trials, verdicts=verdicts
)


@pytest.fixture
def figure() -> lab.Figure:
    if FIGURE.id not in lab.figures:
        lab.register(FIGURE)
    return lab.figures[FIGURE.id]


def test_axes_are_options_with_ours_first() -> None:
    assert FIGURE.options == {"rule": ("plain", "other"), "average": ("m", "g", "h")}
    assert FIGURE.choose({}) == {"rule": "plain", "average": "m"}


@pytest.mark.parametrize(("which", "count"), [("one", 4), ("pairs", 6), ("all", 6), ("3", 3)])
def test_readings_are_counted_once_and_begin_with_the_default(which: str, count: int) -> None:
    found = lab.readings(FIGURE, which)
    assert found[0] == FIGURE.choose({})
    assert len({tuple(one.items()) for one in found}) == len(found) == count
    assert found == lab.readings(FIGURE, which)
    if which == "one":
        assert all(sum(a != b for a, b in zip(one.values(), found[0].values(), strict=True)) <= 1
                   for one in found)  # fmt: skip


@pytest.mark.parametrize("which", ["none", "0", "-1"])
def test_another_way_to_read_is_refused(which: str) -> None:
    with pytest.raises(core.BadArgument, match="one, pairs, all or a number"):
        lab.readings(FIGURE, which)


def test_robustness_counts_and_finds_the_choice_that_decides() -> None:
    results = [
        {"options": {"a": a, "b": b},
         "verdicts": [{"claim": "c", "outcome": lab.CONFIRMED if a == "x" else lab.NOT_CONFIRMED,
                       "source": {"kind": "ours", "says": "", "where": ""}}]}
        for a in "xy" for b in "123"
    ]  # fmt: skip
    (row,) = lab.robustness(results)
    assert (row["confirmed"], row["readings"], row["default"]) == (3, 6, lab.CONFIRMED)
    assert (row["decisive"]["choice"], row["decisive"]["worst"]) == ("a", "y")
    assert row["decisive"]["effect"] == 1.0
    low, high = row["decisive"]["interval"]
    assert 0 < low < 1 <= high
    assert robustness_sentence(row).startswith(
        "confirmed in 3 of 6 readings, never with a=y; a matters most: y in place of x changes the "
        "share by -100%"
    )
    unshared = {k: v for k, v in row["decisive"].items() if k != "shares"}  # stored long ago
    assert "never" not in robustness_sentence({**row, "decisive": unshared})
    results[-1]["verdicts"][0]["outcome"] = lab.NOT_JUDGED
    told = robustness_sentence(lab.robustness(results)[0])
    assert told.startswith("confirmed in 3 of 6 readings, 1 of them not judged, never with a=y;")
    (none,) = lab.robustness(results[-1:])
    assert robustness_sentence(none) == "not judged in any of 1 readings"
    results.reverse()  # then the default is one that does not hold
    assert "found by looking" in robustness_sentence(lab.robustness(results)[0])
    same = lab.robustness([r for r in results if r["options"]["a"] == "x"])[0]
    assert same["decisive"] is None
    assert robustness_sentence(same) == "confirmed in 3 of 3 readings"


def test_axes_are_read_from_a_file(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "room" / "choices.toml"
    file.write_text(
        '[[axis]]\nname = "rule"\nfigures = ["fig1"]\nsays = "silent"\n'
        '[axis.values]\nplain = "the usual"\nother = "another"\n'
    )
    assert lab.open_choices("room:choices.toml", "fig1") == {"rule": AXES["rule"]}
    assert lab.open_choices("room:choices.toml", "fig2") == {}
    file.write_text('[[axis]]\nname = "rule"\nfigures = ["fig1"]\nsays = "silent"\n')
    with pytest.raises(core.BadArgument, match="at least two values"):
        lab.open_choices("room:choices.toml", "fig1")


def test_reproduce_and_show_run_and_tell_all_readings(
    figure: lab.Figure, tmp_path: Path, monkeypatch, capsys
) -> None:
    monkeypatch.setattr("headcount.report._files.render", lambda *_: {"png": b""})  # faster
    log = tmp_path / "log"
    monkeypatch.setenv("TOY_LOG", str(log))
    place = ["--out", str(tmp_path / "out"), "--workers", "0"]
    begin = ["reproduce", figure.id, "--scale", "smoke", "--readings"]
    assert run([*begin, "all", "--dry-run", "--json", "--out", str(tmp_path / "out")]) == 0
    plan = json.loads(capsys.readouterr().out)
    count = len(lab.make_plan(figure, "smoke").unique)
    assert len(plan["readings"]) == 6
    assert (plan["plan"]["trials"], plan["plan"]["to_run"]) == (2 * count, 2 * count)
    assert run([*begin, "one", "--json", *place]) == 0
    *lines, last = map(json.loads, capsys.readouterr().out.splitlines())
    assert len(lines) == 4
    assert len(log.read_text().split()) == 2 * count  # `average` shares its trials
    assert run([*begin, "all", "--json", *place]) == 0  # goes on where it was
    *lines, last = map(json.loads, capsys.readouterr().out.splitlines())
    assert len(log.read_text().split()) == 2 * count
    rows = {row["claim"]: row for row in last["robustness"]}
    assert [len(lines), len(last["readings"])] == [6, 6]
    assert (rows["positive"]["confirmed"], rows["large"]["confirmed"]) == (3, 0)
    assert rows["positive"]["decisive"]["choice"] == "rule"
    assert rows["positive"]["source"]["says"] == "the error is positive"
    shown = ["show", figure.id, "--scale", "smoke", "--out", str(tmp_path / "out")]
    assert run([*shown, "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["robustness"] == last["robustness"]
    assert any(name.endswith("readings.svg") for name in again["files"])
    assert run([*shown, "--reading", "rule=other"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "6 readings were tried" in text
    assert "confirmed in 3 of 6 readings, never with rule=other; rule matters most" in text


def test_the_specification_curve_has_a_mark_for_every_reading() -> None:
    results = [
        {"options": {"a": a}, "verdicts": [
            {"claim": "c", "outcome": outcome, "value": 1.0, "interval": [0.5, 1.5],
             "expected": [0.0, None], "source": {"kind": "paper", "says": "s", "where": "w"}},
            {"claim": "checked", "outcome": lab.CONFIRMED, "value": None, "interval": [None, None],
             "expected": [0.0, 1.0], "source": {"kind": "sanity", "says": "", "where": ""}}]}
        for a, outcome in zip("xyz", (lab.CONFIRMED, lab.NOT_CONFIRMED, "gone"), strict=True)
    ]  # fmt: skip
    text = specification_curve(results)["svg"].decode()
    assert "a = x" in text
    assert "a = z" in text
    assert "3 readings" in text
    assert "checked" not in text


def test_a_long_interval_does_not_press_the_curve_flat() -> None:
    """Two seeds once gave [-900, 1000], and all other readings looked alike."""
    ax = Figure().subplots()
    order = [
        {"verdicts": [{"claim": "c", "value": value, "interval": ends, "expected": [0.5, None]}]}
        for value, ends in ((0.2, [-900.0, 1000.0]), (0.9, [0.8, 1.0]), (None, [None, None]))
    ]
    _fit_to_values(ax, "c", order)
    low, high = ax.get_ylim()
    assert -1 < low < 0.2
    assert 1.0 < high < 2
    _fit_to_values(ax, "other", order)
    assert ax.get_ylim() == (low, high)


def test_a_figure_without_axes_says_which_have_some(figure: lab.Figure, capsys) -> None:
    assert run(["reproduce", "toy/mean", "--readings", "all"]) == 2
    assert "declares no open choices" in capsys.readouterr().err


@pytest.mark.parametrize("name", [name for name, f in lab.figures.items() if f.axes])
def test_every_reading_of_every_figure_has_a_plan_of_its_own(name: str) -> None:
    figure = lab.figures[name]
    for axis in figure.axes.values():
        assert axis.says
        assert all(axis.values.values())
    plans = [lab.make_plan(figure, "smoke", options=one) for one in lab.readings(figure, "one")]
    assert len({tuple(sorted(plan.options.items())) for plan in plans}) == len(plans)
    # What changes how trials are judged runs the same ones; the others have trials of their own.
    assert 1 < len({frozenset(plan.unique) for plan in plans}) <= len(plans)


def test_the_report_shows_the_curve_and_counts_the_readings(
    figure: lab.Figure, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr("headcount.report._files.render", lambda *_: {"png": b""})  # faster
    begin = ["reproduce", figure.id, "--scale", "smoke", "--readings", "one"]
    assert run([*begin, "--out", str(tmp_path / "out"), "--workers", "0"]) == 0
    site = build_site(tmp_path / "out", tmp_path / "site")
    page = site.files["figures/toy-readings-smoke.html"].decode()
    assert "4 readings of what the text leaves open were tried" in page
    assert "figures/toy-readings-smoke/readings.svg" in site.files
    assert "confirmed in 3 of 4 readings, never with rule=other; rule matters most" in page
    assert "the error is positive" in page


def test_readings_differ_in_open_choices_alone(figure: lab.Figure) -> None:
    def result(seeds: Sequence[int] = (0, 1), **options: str) -> FigureResult:
        content = {"figure": figure.id, "scale": "smoke", "seeds": list(seeds), "options": options}
        return FigureResult(Path("figures/toy"), content)

    default = result(rule="plain", data="a")
    assert result(rule="other", data="a").is_reading_of(default.content)
    assert not result(rule="other", data="b").is_reading_of(default.content)
    assert not result(seeds=[0], rule="other", data="a").is_reading_of(default.content)


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
