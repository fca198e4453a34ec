"""Choices are axes: readings are enumerated, shared trials run once, robustness is counted."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import toy_figure
from matplotlib.figure import Figure

from headcount import core, lab
from headcount.cli import run
from headcount.lab._readings import Axis, robustness_sentence
from headcount.report._readings import _confirmed, _fit_to_values, specification_curve
from headcount.report.site import FigureResult, build_site

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


JUDGED_ALONE = ("norm", "until", "judged", "widths")
"""Choices of what is compared: they run the same trials, and tests of their rooms ask verdicts."""

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
    more = [{**results[0], "verdicts": []}, *results]  # the default does not ask
    assert lab.robustness(more)[0]["default"] == lab.NOT_JUDGED
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
    assert _confirmed(results[0], {"c"}) == 1  # columns are ordered by what is shown


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


def test_the_list_tells_open_choices_from_options(figure: lab.Figure, capsys) -> None:
    assert run(["reproduce", "--list"]) == 0
    listed = " ".join(capsys.readouterr().out.split())
    assert "readings: rule=plain|other, average=m|g|h" in listed
    assert "options: dataset=auto|mnist|digits" in listed


def test_a_figure_without_axes_says_which_have_some(figure: lab.Figure, capsys) -> None:
    assert run(["reproduce", "toy/mean", "--readings", "all"]) == 2
    assert "declares no open choices" in capsys.readouterr().err


@pytest.mark.parametrize("name", [name for name, f in lab.figures.items() if f.axes])
def test_every_reading_of_every_figure_has_a_plan_of_its_own(name: str) -> None:
    figure = lab.figures[name]
    for axis in figure.axes.values():
        assert axis.says
        assert all(axis.values.values())
    others = [(axis.name, v) for axis in figure.axes.values() for v in list(axis.values)[1:]]
    plans = {other: lab.make_plan(figure, "smoke", options=dict([other])) for other in others}
    sets = {other: frozenset(plan.unique) for other, plan in plans.items()}
    sets["", ""] = frozenset(lab.make_plan(figure, "smoke").unique)
    own = {name: s for name, s in sets.items() if name[0] not in JUDGED_ALONE}
    assert len(set(own.values())) == len(own)
    assert all(s == sets["", ""] for name, s in sets.items() if name not in own)


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
