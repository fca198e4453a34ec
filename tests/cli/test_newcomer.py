"""The first commands of a newcomer, right and wrong, and what they must say."""

from __future__ import annotations

import json
import subprocess
import sys

import h5py
import pytest
from rich.cells import cell_len

from headcount.cli import app, run
from headcount.lab import StorageError

TINY = ["--width", "4", "--n", "12", "--data-option", "T=3", "--data-option", "d=2"]
TINY += ["--data-option", "pool=16"]


@pytest.mark.parametrize(
    ("flags", "optimiser", "data"),
    [
        ([], "projgd", "transport-teacher"),
        (["--model", "wu2023"], "gd", "gaussian-regression"),
        (["--model", "indrnn", "--data", "ar"], "gd", "ar"),
        (["--model", "deora2024"], "gd", "dm1"),
    ],
)
def test_every_model_has_defaults_and_a_plan(flags, optimiser, data, capsys):
    assert run(["train", *flags, "--dry-run", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["optimiser"], shown["data"]) == (optimiser, data)
    plan = shown["plan"]
    assert plan["memory_bytes"] > plan["data_bytes"] > 0
    assert 3 < plan["seconds"] < 120  # the default run takes seconds


BAD = {
    "--width 1.5": "'1.5' is not a whole number",
    "--width 7": "--width 7: must be even: paired initialisation mirrors every head; use --width 8",
    "--width 0": "--width 0: must be a whole number >= 1; use --width 1 or more",
    "--n 100000000000": "does not fit into memory: it needs 15",
    "--n-val 100000000000": "does not fit into memory",
    "--steps 1000000000000000": "does not fit into memory",
    "--seeds 0:1000000": "--seeds 0:1000000: names 1000000 seeds",
    "--keep avarage": "--keep avarage: is not a known choice; choose from: average, best",
    "--dtype float16": "--dtype float16: is not a known choice",
    "--record-every 5": "has no meaning where nothing is recorded; add --record loss",
    "--optimiser sgd": "--batch-size: is needed by sgd; for example --batch-size 32",
    "--optimiser sgd --batch-size 200 --n 100": "is larger than the 100 samples",
    "--optimiser adam --rho 3,3,3": "which does not project; use --optimiser projgd or leave it",
    "--batch-size 3": "has no meaning for projgd",
    "--model wu2023 --gamma 2": "--gamma has no meaning for wu2023",
    "--model deora2024 --scaling ntk": "--scaling has no meaning for deora2024",
    "--n-init 5": "--n-init has no meaning for arda2026",
    "--model indrnn --optimiser projgd": "--rho: is needed to project; for example --rho 3,3,3",
    "--model wu2023 --optimiser projgd": "use --optimiser gd, momentum or adam",
    "--model indrnn --n 1": "use --n >= 2 or --data-option standardise_labels=none",
    "--data-option pol=3": "did you mean pool? its options are T, d",
    "--activation 2*tanh(a*x)": "has a factor that is no number",
    "--data-option pool": "--data-option pool: must be name=value; write --pool VALUE",
    "--record nope": "--record nope: is not known; known: loss, ",
    "--data mnist": "--data mnist: is not known; known: ",
    "--model deora2024 --data series": "for example --data-option path=series.csv",
    "one.toml two.toml": "headcount: unexpected argument: two.toml",
    "--eta 0": "--eta 0.0: must be a finite number > 0; set --eta > 0",
}


@pytest.mark.parametrize("flags", BAD)
def test_what_is_refused_says_the_fix_in_flags(flags, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    short = [] if "not fit" in BAD[flags] else ["--data-option", "pool=8"]
    own = short if "--model" not in flags else []
    code = run(["train", *flags.split(), *own])
    shown = capsys.readouterr().err
    assert code == 2, shown
    assert BAD[flags] in shown
    assert shown.count("\n") == 1
    assert not list(tmp_path.iterdir())


UNSEEN = ("--n 100000000000", "--n-val 100000000000", "--steps 1000000000000000")
"""What a dry run shows, rather than refuses."""
AT_THE_START = {
    "--init nope": "--init nope: is not known; did you mean unpaired?",
    "--init-option foo=3": "--init-option foo: is not known to paired of arda2026",
    "--data series --data-option path=no.csv": "path no.csv: is not a file; check the path",
    "--model deora2024 --init two-phase --n-init 0": "--n-init 0: must be a whole number >= 1",
}


@pytest.mark.parametrize("flags", [f for f in {**BAD, **AT_THE_START} if f not in UNSEEN])
def test_a_dry_run_refuses_what_the_run_would(flags, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    own = [] if "--model" in flags or "series" in flags else ["--data-option", "pool=8"]
    assert run(["train", *flags.split(), *own, "--dry-run"]) == 2
    shown = capsys.readouterr().err
    assert {**BAD, **AT_THE_START}[flags] in shown
    assert shown.count("\n") == 1


def test_data_that_take_days_are_told_before_they_are_made(capsys):
    """A pool of a thousand million heads: hours of labels before the first step."""
    seconds = []
    for pool in (8, 10**9):
        option = ["--data-option", f"pool={pool}", "--n", "10", "--steps", "1"]
        assert run(["train", *option, "--dry-run", "--json"]) == 0
        seconds.append(json.loads(capsys.readouterr().out)["plan"]["seconds"])
    assert seconds[0] < 60 < 1000 < seconds[1]


TOML = {
    "widht = 3": "widht = 3: is no setting; did you mean width?",
    "[model_option]\nactivation = 'tanh'": "did you mean model_options",
    "width = 'wide'": "--width wide: must be a whole number",
    "rho = [1, 2]": "must be three numbers",
    "width = 3 4": "is not TOML",
}


@pytest.mark.parametrize("text", TOML)
def test_mistakes_in_a_file_are_named(text, tmp_path, capsys):
    file = tmp_path / "c.toml"
    file.write_text(text)
    assert run(["train", str(file), "--dry-run"]) == 2
    shown = capsys.readouterr().err
    assert TOML[text] in shown
    assert str(file) in shown
    assert "pydantic" not in shown
    assert "Input should" not in shown


def test_large_plans_answer_without_the_work(capsys):
    assert run(["ntk", "--n", "2000000", "--dry-run"]) == 0
    shown = capsys.readouterr().out
    assert "kernel 2000000 x 2000000" in shown
    assert "it does not fit into memory" in shown
    assert run(["ntk", "--n", "2000000"]) == 2
    assert run(["reproduce", "arda2026/fig1", "--seeds", "0:1000000", "--dry-run"]) == 2
    assert "more than 10000 are refused" in capsys.readouterr().err
    assert run(["count", "--loss", "1", "--theory-only", "--plot", "x.png"]) == 2
    assert "nothing to draw" in capsys.readouterr().err


def test_an_interval_of_lambda_min_is_printed_as_one(capsys):
    assert run(["ntk", *TINY]) == 0
    (line,) = [part for part in capsys.readouterr().out.splitlines() if "lies in" in part]
    low, high = line.split("[")[1].split("]")[0].split(",")
    assert float(low) <= float(high)


def test_explain_tells_all_and_recheck_knows_shipped_names(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert run(["explain", "arda2026/fact-1"]) == 0
    shown = capsys.readouterr().out
    for part in ("Fact 1", "|J_s(z) u|_1 ≤ 2", "‖Jₛ(z)u‖₁", "sharp", "left/right: 1,"):
        assert part in shown, part
    assert max(map(cell_len, shown.splitlines())) <= 80
    assert run(["explain", "arda2026/lemma-5", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["certificates"] == ["arda2026-lemma-5-printed"]
    assert found["forms"]["printed"]["refuted"]
    assert "E1" in {note["id"].split("/")[1] for note in found["errata"]}
    assert run(["recheck", "arda2026/psi-2"]) == 0
    told = capsys.readouterr().out
    assert "arda2026/psi-2 (printed): the violation is proved: 2.71828183 > 2" in told
    assert "this step does not hold as printed; the result is untouched" in told
    assert "  What is compared: |Z| ≤ K implies" in told
    assert "false" not in told
    assert 'App. A.6, proof of Lemma 5, (i): "' in told
    assert run(["explain", "wu2023/theorem-2-rate"]) == 0
    assert "headcount falsify" not in capsys.readouterr().out  # it would be refused
    assert run(["explain", "lemma-5"]) == 2
    assert "did you mean arda2026/lemma-5 or" in capsys.readouterr().err
    assert run(["recheck", "nonsense"]) == 2
    assert len(capsys.readouterr().err) < 900
    assert run(["recheck", "arda2026/psi-3"]) == 2
    assert "did you mean arda2026-psi-2-printed" in capsys.readouterr().err


UNWRITABLE = {
    "train --out": "train {} --out /dev/null/x.nc",
    "ntk --out": "ntk {} --out /dev/null/x.nc",
    "report --to": "report --out . --to /dev/null/x",
    "falsify --out": "falsify arda2026/fact-3 --budget small --out /dev/null/x",
    "count --plot": "count --loss 0.001 --plot /dev/null/x.png",
    "new --out": "new lemma mine --out /dev/null/x",
}


@pytest.mark.parametrize("case", UNWRITABLE)
def test_a_place_that_cannot_be_written_is_told_before_the_work(
    case, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    assert run(UNWRITABLE[case].format(" ".join(TINY)).split()) == 2
    shown = capsys.readouterr()
    assert f"{case.split()[1]} /dev/null/x" in shown.err
    assert "cannot be written (Not a directory); choose another place" in shown.err
    assert shown.out == ""
    assert list(tmp_path.iterdir()) == []


def test_the_kind_of_a_picture_is_checked_first(capsys):
    assert run(["count", "--loss", "0.001", "--plot", "a.foo"]) == 2
    assert "end it in .png, .pdf, .svg" in capsys.readouterr().err


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device", "a.nc"), StorageError("x")]
)
def test_an_error_of_the_disk_is_one_line(error, monkeypatch, capsys):
    def full(*given, **named):
        raise error

    monkeypatch.setattr("headcount.cli._app.app", full)
    assert run(["list"]) == 1
    shown = capsys.readouterr().err
    assert shown in ("headcount: a.nc: No space left on device\n", "headcount: x\n")


@pytest.mark.parametrize("command", ["train", "ntk"])
def test_a_file_of_the_users_is_not_overwritten(command, tmp_path, capsys):
    mine = tmp_path / "config.toml"
    mine.write_text("width = 4\n")
    assert run([command, str(mine), *TINY[2:], "--out", str(mine)]) == 2
    assert "exists and is no netCDF file; choose another file" in capsys.readouterr().err
    assert mine.read_text() == "width = 4\n"
    weather = tmp_path / "weather.nc"
    with h5py.File(weather, "w") as file:
        file["temperature"], file.attrs["config"] = [1.0, 2.0], "of a model of the weather"
    before = weather.read_bytes()
    assert run([command, str(mine), *TINY[2:], "--out", str(weather)]) == 2
    assert "exists and is a file of another program; choose" in capsys.readouterr().err
    assert weather.read_bytes() == before


def test_completion_and_python_m():
    script = app.generate_completion(shell="bash")
    assert "explain" in script
    assert "--model-option" in script
    done = subprocess.run(
        [sys.executable, "-m", "headcount", "--version"], capture_output=True, text=True
    )
    assert done.stdout.strip()[0].isdigit(), done.stderr


def test_bad_names_are_found_before_the_heavy_imports():
    code = (
        "import sys\nfrom headcount.cli import run\n"
        "assert run(['train', '--model', 'wu203']) == 2\n"
        "assert run(['train', '--steps', '0']) == 2\n"
        "heavy = {'scipy.signal', 'scipy.stats', 'xarray', 'matplotlib', 'pandas'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
