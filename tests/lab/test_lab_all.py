"""reproduce --all: one figure that cannot run does not stop the others, and is named at the end."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
import toy_cli
import toy_figure
from rich.console import Console

from headcount import core, lab, report
from headcount.cli import _everything, run
from headcount.lab import _plan

MISSING = core.BadArgument("data", "auto", "is not at hand", fix="name its folder by data_dir=PATH")
REASON = "data = 'auto': is not at hand; name its folder by --data-dir PATH"


def without_data(settings: Any, seeds: Any, options: Any) -> list[lab.Trial]:
    """Trials of a figure whose data cannot be had."""
    raise MISSING


def not_at_hand(trials: Any) -> None:
    """What a figure fetches before its trials cannot be had."""
    raise MISSING


def no_network(config: dict[str, Any], context: lab.Context) -> dict[str, Any]:
    """A trial that cannot fetch its data."""
    raise OSError("no network")


@pytest.fixture
def some(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, lab.Figure]:
    """Three figures, of which the first cannot run; audits and head counts are left out."""
    toy = toy_figure.figure
    known = {
        "toy/absent": dataclasses.replace(toy, id="toy/absent", trials=without_data),
        "toy/mean": toy,
        "toy/other": dataclasses.replace(toy, id="toy/other"),
    }
    for place in (lab, _plan):
        monkeypatch.setattr(place, "figures", known)
    monkeypatch.setattr(_everything, "audited", list)
    monkeypatch.setattr(_everything, "store_tables", lambda *given: None)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return known


ALL = ["reproduce", "--all", "--scale", "smoke", "--workers", "0"]


def test_the_others_go_on_and_the_reason_is_told_last(some, capsys, tmp_path: Path) -> None:
    assert run(ALL) == 1
    shown = capsys.readouterr()
    for name in ("toy-mean", "toy-other"):
        assert (tmp_path / f"headcount-results/figures/{name}/smoke/figure.svg").exists()
    assert "toy/other (2 of 2): 12 trials" in shown.err
    last = " ".join(shown.err.split("Everything else is in")[1].split())
    assert last.endswith(f"toy/absent cannot run: {REASON}")
    assert max(map(len, shown.out.replace(str(tmp_path), "").splitlines())) <= 80


def test_json_has_an_object_for_it(some, capsys) -> None:
    assert run([*ALL, "--json"]) == 1
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["figure"] for line in lines] == list(some)
    assert lines[0] == {"figure": "toy/absent", "scale": "smoke", "error": REASON}
    assert run([*ALL, "--json", "--dry-run"]) == 1
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {line["figure"]: line.get("error") for line in lines} == {
        "toy/mean": None, "toy/other": None, "toy/absent": REASON,
    }  # fmt: skip


def test_a_dry_run_is_a_line_for_each_figure_and_a_sum(some, capsys) -> None:
    assert run([*ALL, "--dry-run"]) == 1
    shown = capsys.readouterr()
    rows = [line.split() for line in shown.out.splitlines()]
    assert [row[0] for row in rows[:3]] == ["figure", "toy/mean", "toy/other"]
    assert rows[1][1:3] == ["12", "12"]
    # The two figures share their trials, but each plan is told as it stands.
    assert "2 figures at scale smoke. Estimated: 24 trials" in shown.out
    assert shown.err.startswith("toy/absent cannot run: data = 'auto'")
    some.pop("toy/absent")
    assert run([*ALL, "--dry-run"]) == 0


def test_when_nothing_can_run_the_command_is_wrong(some, capsys) -> None:
    for name in ("toy/mean", "toy/other"):
        some.pop(name)
    assert run(ALL) == 2
    assert "is not at hand" in capsys.readouterr().err


def test_data_that_cannot_be_fetched_when_it_runs_do_not_stop_the_others(some, capsys) -> None:
    some["toy/mean"] = dataclasses.replace(some["toy/mean"], prepare=not_at_hand)
    assert run([*ALL, "--json"]) == 1
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {line["figure"]: line.get("error") for line in lines} == {
        "toy/absent": REASON, "toy/mean": REASON, "toy/other": None,
    }  # fmt: skip


def test_what_concerns_all_figures_ends_the_command(some, capsys) -> None:
    some.pop("toy/absent")
    assert run([*ALL[:-2], "--executor", "abacus"]) == 2
    assert "abacus" in capsys.readouterr().err


def test_a_figure_without_a_number_is_named_with_the_reason(some, capsys) -> None:
    some.pop("toy/absent")
    broken = dataclasses.replace(toy_figure.toy, name="toy-broken", function=no_network)
    trials = lambda *given: [  # noqa: E731
        dataclasses.replace(trial, measurement=broken) for trial in toy_figure.trials(*given)
    ]
    some["toy/mean"] = dataclasses.replace(some["toy/mean"], trials=trials)
    assert run(ALL) == 1
    shown = " ".join(capsys.readouterr().err.split())
    assert shown.endswith("toy/mean cannot run: no trial gave numbers: OSError: no network")


def test_time_ahead_is_corrected_by_what_the_figures_before_took(monkeypatch) -> None:
    clock = iter([0.0, 30.0, 100.0, 200.0])
    monkeypatch.setattr(_everything.time, "monotonic", lambda: next(clock))
    among = _everything.Among({"a": 10.0, "b": 0.0, "c": 4.0, "d": 5.0})
    among.begin("a")
    assert among.title == "a (1 of 4)"
    assert among.seconds_ahead() == 9.0
    among.end()
    assert among.seconds_ahead() == 27.0  # a took three times its estimate
    among.begin("b")
    among.end()
    assert among.seconds_ahead() == 27.0  # b was stored, and says nothing


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_tells_the_time_of_all_figures(terminal: bool) -> None:
    console = Console(record=True, force_terminal=terminal, width=80)
    sweep = lab.Sweep(planned=4, run=2, work_total=4.0, work_done=2.0)
    sweep.started -= 100.0
    shown = report.make_reporter(console, "toy/mean (1 of 3)", lambda: 3500.0)
    shown.begin(sweep)
    if terminal:
        console.print(shown._render())
    shown.end(sweep)
    assert "all figures: about 1 h 0 min left" in console.export_text()


def test_the_list_of_figures_fits_eighty_columns(monkeypatch, capsys) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert toy_cli.app(["reproduce", "--list"], result_action="return_value") == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    # Nothing is squeezed into a narrow column: the open choices take most of the lines.
    assert len(lines) < 5 * len(list(lab.figures))


def crash(*given: Any) -> Any:
    """A mistake in somebody's code."""
    raise ZeroDivisionError("oops")


@pytest.mark.parametrize("part", ["trials", "statistics"])
def test_a_mistake_in_a_figure_from_outside_is_a_reason_and_one_of_ours_is_seen(
    part: str, some: dict[str, lab.Figure], capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    some.pop("toy/absent")
    broken: dict[str, Any] = {part: crash}
    some["toy/other"] = dataclasses.replace(some["toy/mean"], id="toy/other", **broken)
    assert run(ALL) == 1
    told = " ".join(capsys.readouterr().err.split())
    assert "figure = 'toy/other': is broken: ZeroDivisionError: oops" in told
    monkeypatch.setattr(core.papers, "ours", {"toy"})
    with pytest.raises(ZeroDivisionError):
        run(ALL)
