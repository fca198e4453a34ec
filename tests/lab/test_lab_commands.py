"""reproduce, status, show: what they print, what they return, and what they never do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import toy_cli
import toy_figure

from headcount import core, lab


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    """Run a command line in an empty folder: (exit code, standard output, standard error)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def call(line: str) -> tuple[int, str, str]:
        code = toy_cli.app(line.split(), result_action="return_value")
        output = capsys.readouterr()
        return code, output.out, output.err

    return call


REPRODUCE = "reproduce toy/mean --scale smoke --workers 0"


def test_json_is_one_object_of_the_agreed_form(run, tmp_path: Path) -> None:
    code, output, _ = run(f"{REPRODUCE} --json --seeds 0:3")
    result = json.loads(output)
    assert code == 0
    assert list(result) == ["figure", "scale", "trials", "seconds", "verdicts", "files"]
    assert (result["figure"], result["scale"]) == ("toy/mean", "smoke")
    assert result["trials"] == {"planned": 9, "cached": 0, "run": 9, "failed": 0}
    assert result["seconds"] > 0
    for verdict in result["verdicts"]:
        assert list(verdict) == [
            "claim", "outcome", "value", "interval", "expected", "source", "p", "seeds", "lost",
            "scale",
        ]  # fmt: skip
    assert result["verdicts"][1]["outcome"] == "not confirmed"
    assert result["verdicts"][1]["expected"] == [1.0, None]
    names = {"data.nc", "plotted.csv", "verdicts.json", "figure.png", "figure.pdf", "figure.svg"}
    assert {Path(file).name for file in result["files"]} == names
    folder = tmp_path / "headcount-results/figures/toy-mean/smoke/seeds=0-to-3"
    assert {path.name for path in folder.iterdir()} == names
    again = json.loads(run(f"{REPRODUCE} --json --seeds 0:3")[1])
    assert again["trials"] == {"planned": 9, "cached": 9, "run": 0, "failed": 0}
    assert again["verdicts"] == result["verdicts"]


def test_one_seed_is_valid_json_without_intervals(run) -> None:
    result = json.loads(run(f"{REPRODUCE} --json --seeds 7")[1])
    assert result["verdicts"][0]["interval"] == [None, None]
    assert result["verdicts"][0]["outcome"] == "inconclusive"


def test_for_people(run) -> None:
    code, output, errors = run(REPRODUCE)
    assert code == 0
    assert "not confirmed" in output
    assert "12 trials: 0 stored, 12 to run" in errors
    assert "figure.pdf" in output


def test_strict_returns_three(run) -> None:
    assert run(f"{REPRODUCE} --strict")[0] == 3


def test_a_dry_run_computes_and_writes_nothing(run, calls, tmp_path: Path) -> None:
    code, output, _ = run(f"{REPRODUCE} --dry-run")
    assert code == 0
    for text in ("[8, 32, 128]", "steps", "Estimated: 12 trials", "of memory"):
        assert text in output
    result = json.loads(run(f"{REPRODUCE} --dry-run --json")[1])
    assert result["trials"] == {"planned": 12, "cached": 0, "run": 0, "failed": 0}
    assert result["plan"]["settings"] == {"seeds": 4, "widths": [8, 32, 128], "steps": 5}
    assert result["plan"]["to_run"] == 12
    assert calls() == []
    assert list(tmp_path.iterdir()) == []


def test_show_computes_nothing(run, calls) -> None:
    with pytest.raises(core.BadArgument, match=r"headcount reproduce toy/mean --scale quick"):
        run("show toy/mean")
    first = json.loads(run(f"{REPRODUCE} --seeds 0:3 --option rule=other --json")[1])
    count = len(calls())
    shown = json.loads(run("show toy/mean --json")[1])  # as it was reproduced last
    assert shown["verdicts"] == first["verdicts"]
    assert shown["files"] == first["files"]
    code, _, errors = run("show toy/mean --scale smoke --seeds 0:4 --option rule=other")
    assert code == 0
    assert "3 of 12 trials are missing" in errors
    part = json.loads(run("show toy/mean --scale smoke --seeds 0:4 --option rule=other --json")[1])
    assert {verdict["outcome"] for verdict in part["verdicts"]} == {lab.NOT_JUDGED}
    assert len(calls()) == count == 9


def test_status_tells_what_is_there(run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "No results" in run("status")[1]
    monkeypatch.setenv("TOY_FAIL", "8-0")
    run(REPRODUCE)
    run(f"{REPRODUCE} --seeds 1:3 --option rule=other")
    lines = [line.rstrip() for line in run("status --out headcount-results")[1].splitlines()]
    assert "toy/mean  smoke  0:4    12      11 ok, 1 failed" in lines
    assert "toy/mean  smoke  1:3    6       6 ok; rule=other" in lines
    row, _ = json.loads(run("status --json")[1])["figures"]
    assert (row["planned"], row["ok"], row["failed"], row["missing"]) == (12, 11, 1, 0)


def test_failures_are_shown(run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOY_FAIL", "8-0")
    code, _, errors = run(REPRODUCE)
    assert code == 0
    assert "m=8 seed=0: ArithmeticError: asked to fail" in errors
    assert "--retry-failed" in errors


def test_a_figure_without_numbers_is_not_a_crash(run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOY_FAIL", "8-0")
    settings = {"seeds": 1, "widths": [8], "steps": 2}
    monkeypatch.setitem(toy_figure.figure.scales, "smoke", settings)  # type: ignore[arg-type]
    code, output, errors = run(f"{REPRODUCE} --json")
    assert code == 1
    assert json.loads(output)["trials"]["failed"] == 1
    assert "No trial gave numbers" in errors


def test_a_full_disk_is_told_without_a_traceback(run, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: Any, **named: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("headcount.lab._files.write_bytes", full)
    code, _, errors = run(REPRODUCE)
    assert code == 1
    assert "No space left on device" in errors


def test_the_list(run) -> None:
    assert "toy/mean" in run("reproduce --list")[1]
    listed = {entry["figure"]: entry for entry in json.loads(run("reproduce --list --json")[1])}
    assert listed["toy/mean"]["options"] == {"rule": ["plain", "other"]}
    assert set(listed) == set(lab.figures)


@pytest.mark.parametrize(
    ("line", "match"),
    [
        ("reproduce toy/maen", "did you mean toy/mean"),
        ("reproduce", "--list"),
        (f"{REPRODUCE} --seeds 3:1", "seeds"),
        (f"{REPRODUCE} --seeds a", "0:10"),
        (f"{REPRODUCE} --option rule", "name=value"),
        (f"{REPRODUCE} --option rule=x", "plain, other"),
        ("reproduce toy/mean --workers -1", "workers = -1"),
        ("show toy/nothing", "is not known"),
    ],
)
def test_bad_input_is_one_clear_message(run, line: str, match: str) -> None:
    with pytest.raises(core.BadArgument, match=match):
        run(line)


def test_seeds_as_people_type_them() -> None:
    assert lab.parse_seeds("0:3") == (0, 1, 2)
    assert lab.parse_seeds("0:6:2,9") == (0, 2, 4, 9)
    assert lab.parse_seeds("4") == (4,)
    for bad in ("", "1:", "0:4:-1", "1,1", "-1", "0:1:2:3"):
        with pytest.raises(core.BadArgument):
            lab.parse_seeds(bad)


def test_show_looks_where_reproduce_was_told_to_look(run, monkeypatch, tmp_path: Path) -> None:
    for name in ("HEADCOUNT_DATA", "HEADCOUNT_MODEL"):
        monkeypatch.setenv(name, "")  # what the command sets is taken back after the test
    (tmp_path / "mine").mkdir()
    with pytest.raises(core.BadArgument, match=r"mine/stsa\.binary\.train is missing"):
        run("show deora2024/fig6 --option model=tiny --data-dir mine")
    with pytest.raises(core.BadArgument, match=r"mine.*has no file config\.json"):
        run("show deora2024/fig6 --option data=templates --model-dir mine")
