"""The command line as a user sees it: results, JSON, exit codes, one-line errors."""

from __future__ import annotations

import json

import pytest
import xarray as xr

from headcount.cli import run

FLAGS = {"--width": "8", "--n": "20", "--steps": "6", "--rho": "3,3,3"}
DATA = ["--data-option", "pool=32", "--data-option", "T=3", "--data-option", "d=2"]


def small(changed: list[str] | None = None) -> list[str]:
    """A run of a second, with some flags replaced or added."""
    changed = changed or []
    kept = [part for flag, value in FLAGS.items() if flag not in changed for part in (flag, value)]
    return ["train", *kept, *DATA, *changed]


def test_train_writes_a_run_and_a_table(tmp_path, capsys):
    out = tmp_path / "run.nc"
    flags = ["--seeds", "0:2", "--record", "loss,distance", "--record-every", "3"]
    assert run(small([*flags, "--out", str(out)])) == 0
    assert "smallest loss" in capsys.readouterr().out
    with xr.open_dataset(out, engine="h5netcdf") as stored:
        assert dict(stored.sizes)["seed"] == 2
        assert list(stored.recorded_step.values) == [0, 3, 6]
        assert stored.attrs["config_width"] == 8
        assert float(stored.loss.isel(recorded_step=0)[0]) == pytest.approx(
            float(stored.loss_trace[0, 0]), rel=1e-6
        )


def test_train_json_is_one_object(tmp_path, capsys):
    assert run(small(["--json", "--out", str(tmp_path / "r.nc")])) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["outcomes"] == ["completed"]
    assert summary["config"]["eta"] == pytest.approx(6**-0.5)
    assert summary["min_loss"][0] <= summary["initial_loss"][0]


def test_flags_override_the_file(tmp_path, capsys):
    file = tmp_path / "c.toml"
    file.write_text('width = 4\nsteps = 3\nrho = [1, 1, 1]\nseeds = "0:2"\n[data_options]\nd = 2\n')
    flags = ["--width", "6", "--data-option", "T=3", "--dry-run", "--json"]
    assert run(["train", str(file), *flags]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["width"], shown["steps"], shown["seeds"]) == (6, 3, [0, 1])
    assert shown["data_options"] == {"d": 2, "T": 3}


def test_the_same_configuration_gives_the_same_numbers(tmp_path, capsys):
    results = []
    for name in ("a.nc", "b.nc"):
        run(small(["--json", "--out", str(tmp_path / name)]))
        results.append(json.loads(capsys.readouterr().out)["final_loss"])
    assert results[0] == results[1]


def test_divergence_is_an_outcome_not_a_crash(tmp_path, capsys):
    flags = ["train", "--model", "wu2023", "--width", "16", "--data", "gaussian-regression"]
    flags += ["--n", "10", "--optimiser", "gd", "--eta", "1e30", "--steps", "5"]
    flags += ["--data-option", "T=2", "--data-option", "d=3"]
    assert run([*flags, "--json", "--out", str(tmp_path / "r.nc")]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["outcomes"][0].startswith("diverged at step")
    assert summary["final_loss"] == [None]


def dry_run(capsys, *flags: str) -> dict:
    """What --dry-run shows, as JSON."""
    assert run(["train", *flags, "--dry-run", "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_short_flags_and_tables_are_the_same_options(tmp_path, capsys):
    file = tmp_path / "c.toml"
    file.write_text(
        'model = "indrnn"\n[model_options]\nactivation = "sin"\n[init_options]\ngamma = 0.5\n'
    )
    by_file = dry_run(capsys, str(file))
    short = dry_run(capsys, "--model", "indrnn", "--activation", "sin", "--gamma", "0.5")
    long = ["--model-option", "activation=sin", "--init-option", "gamma=0.5"]
    by_name = dry_run(capsys, "--model", "indrnn", *long)
    assert by_file["fingerprint"] == short["fingerprint"] == by_name["fingerprint"]
    assert dry_run(capsys, str(file), "--gamma", "2")["init_options"] == {"gamma": 2.0}


def test_a_dry_run_shows_sizes_and_the_choices_that_apply(capsys):
    shown = dry_run(capsys, "--model", "indrnn", "--gamma", "0.5", "--width", "4", "--n", "10")
    sizes = {name: shown["plan"][name] for name in ("T", "d", "parameters", "data_bytes")}
    assert sizes == {"T": 5, "d": 17, "parameters": 4 * 19, "data_bytes": 8 * 10 * 86}
    given = {choice["what"]: choice["given"] for choice in shown["choices"]}
    assert given["gamma = |w| of the IndRNN at the start"] == 0.5
    assert given["AR windows"] is None
    assert "query q_X" not in given
    assert run(["train", "--model", "indrnn", "--gamma", "0.5", "--dry-run"]) == 0
    assert "0.5 (default" in capsys.readouterr().out


BAD = {
    "odd width": (["--width", "7"], "must be even"),
    "unknown model": (["--model", "arda2025"], "did you mean arda2026"),
    "unknown data": (["--data", "transport-teecher"], "did you mean transport-teacher"),
    "unknown optimiser": (["--optimiser", "sdg"], "did you mean"),
    "unknown recorder": (["--record", "los"], "did you mean loss"),
    "unknown activation": (["--activation", "relu"], "is not known"),
    "unknown flag": (["--widht", "8"], "--width"),
    "unknown data option": (["--data-option", "pol=3"], "is not known"),
    "radius": (["--rho", "3,0,3"], "must be a finite number > 0"),
    "two radii": (["--rho", "3,3"], "rho"),
    "words as radii": (["--rho", "a,b,c"], "is not three numbers"),
    "a radius with an underscore": (["--rho", "1_0,3,3"], "is not three numbers"),
    "step size": (["--eta", "-1"], "must be a finite number > 0"),
    "no samples": (["--n", "0"], "must be a whole number >= 1"),
    "no steps": (["--steps", "0"], "must be a whole number >= 1"),
    "seeds": (["--seeds", "x"], "is not a list of seeds"),
    "dtype": (["--dtype", "float16"], "choose from"),
    "an option of another model": (["--pooling", "sum"], "--pooling has no meaning for arda2026"),
    "an option of another start": (["--n-init", "3"], "its options are activation, query"),
    "unknown model option": (["--model-option", "pol=3"], "its options are activation, query"),
    "unknown start option": (["--init-option", "pol=3"], "it has no options"),
    "a start of another model": (["--init", "two-phase"], "use --init paired"),
    "config file": (["nowhere.toml"], "is not a file"),
    "zeta": (
        [
            "--model",
            "deora2024",
            "--data",
            "dm1",
            "--optimiser",
            "gd",
            "--data-option",
            "zeta=0.15",
        ],
        "zeta",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_exit_code_2(case, tmp_path, capsys):
    flags, message = BAD[case]
    out = ["--out", str(tmp_path / "r.nc")]
    code = run(["train", *flags, *out] if case == "zeta" else small([*flags, *out]))
    shown = capsys.readouterr()
    assert code == 2, shown
    assert message in shown.err
    assert shown.err.count("\n") == 1
    assert "Traceback" not in shown.err
    assert not list(tmp_path.iterdir())
