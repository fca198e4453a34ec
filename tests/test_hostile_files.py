"""Hostile files and values at the command line: exit code 2, one line, no traceback, no wait."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from headcount.cli import run

TOML = {
    "a truth value": "width = true",
    "a fraction": "width = 3.0",
    "a word": 'width = "3"',
    "a date": "width = 1979-05-27",
    "a table": "[width]\na = 1",
    "2^70": "width = 1180591620717411303424",
    "ten thousand hex digits": "width = 0x" + "f" * 10_000,
    "five thousand digits": "width = " + "9" * 5000,
    "deep lists": "width = " + "[" * 5000 + "]" * 5000,
    "deep tables": "model_options = " + "{a=" * 900 + "1" + "}" * 900,
    "lists in lists": "width = " + "[" * 300 + "]" * 300,
    "10^12 heads": "width = 1000000000000",
    "10^12 samples": "n = 1000000000000",
    "10^12 steps": "steps = 1000000000000",
    "10^12 to validate": "n_val = 1000000000000",
    "a seed twice": "seeds = [1, 1]",
    "a seed below zero": "seeds = [-1]",
    "a seed of 2^32": "seeds = [4294967296]",
    "a true seed": "seeds = [true]",
    "many seeds": "seeds = '0:99999999999'",
    "options that are a number": "model_options = 3",
    "options that are a list": "data_options = [1]",
    "infinite eta": "eta = inf",
    "no eta": "eta = nan",
    "a true eta": "eta = true",
    "two radii": "rho = [1, 2]",
    "an infinite radius": "rho = [1, 2, 1e999]",
    "a number to record": "record = 3",
    "numbers to record": "record = [3]",
    "an unknown iterate": "keep = ['x']",
    "half a step": "record = ['loss']\nrecord_every = 0",
    "2^70 steps between": "record = ['loss']\nrecord_every = 1180591620717411303424",
    "a true batch": "batch_size = true",
    "no chunk": "chunk = 0",
    "float16": "dtype = 'float16'",
    "a loss by number": "loss = 3",
    "a model by number": "model = 3",
    "no model": "model = ''",
    "an unknown setting": "widht = 3",
    "an empty key": "'' = 3",
    "a key twice": "width = 1\nwidth = 2",
    "a null byte": "width = \0",
    "a true d": "[data_options]\nd = true",
    "d as a word": "[data_options]\nd = 'x'",
    "d as a table": "[data_options.d]\nx = 1",
    "10^12 features": "[data_options]\nd = 1000000000000",
    "10^9 features": "[data_options]\nd = 1000000000",
    "no tokens": "[data_options]\nT = 0",
    "nu of one": "[data_options]\nnu = [1]",
    "infinite nu": "[data_options]\nnu = [inf, 1, 1]",
    "an activation by number": "[model_options]\nactivation = 3",
    "several activations": "[model_options]\nactivation = ['tanh']",
    "a query by number": "[model_options]\nquery = 3",
    "a query of 5000 digits": f"[model_options]\nquery = 'seeded:{'1' * 5000}'",
}
BYTES = {
    "UTF-16": "width = 3".encode("utf-16"),
    "Latin-1": "# größe\nwidth = 3".encode("latin-1"),
    "two megabytes": b"#" * (2 << 20),
    "a gzip file": gzip.compress(b"width = 3"),
}


def told(line: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The one line that the command says."""
    assert run(line) == 2, line
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1, shown.err
    assert len(shown.err) < 1000
    return shown.err


@pytest.mark.parametrize("case", [*TOML, *BYTES])
def test_a_configuration_is_told(case, tmp_path, capsys):
    path = tmp_path / "c.toml"
    path.write_bytes(TOML[case].encode() if case in TOML else BYTES[case])
    told(["train", str(path), "--out", str(tmp_path / "r.nc")], capsys)
    assert [found.name for found in tmp_path.iterdir()] == ["c.toml"]


@pytest.mark.parametrize("command", ["train", "ntk", "audit"])
def test_what_is_no_file_is_told_and_not_waited_for(command, tmp_path, capsys):
    os.mkfifo(tmp_path / "pipe")
    os.mkfifo(tmp_path / "pipe.nc")
    for path in (tmp_path / "pipe", tmp_path, Path("/dev/zero"), tmp_path / "none"):
        assert "is not a file" in told([command, str(path)], capsys)
    if command == "audit":
        assert "it does not exist" in told([command, str(tmp_path / "pipe.nc")], capsys)


def test_the_kernel_of_too_many_heads_is_told_before_they_are_drawn(tmp_path, capsys):
    assert "does not fit into memory" in told(["ntk", "--width", "1000000000000"], capsys)


CSV = {
    "a longer row": "date,value\nx,1,234.5\n",
    "no header": "1,2.5\n2,3.5\n",
    "a name twice": "v,v\n1,1\n",
    "an underscore": "t,v\n1,1_000\n",
    "infinity": "t,v\n1,inf\n",
    "a long field": f"t,v\n1,{'9' * 200_000}\n",
    "an open quote": 't,v\n1,"2\n',
}


@pytest.mark.parametrize("case", CSV)
def test_a_series_is_told(case, tmp_path, capsys):
    path = tmp_path / "s.csv"
    path.write_text(CSV[case])
    options = ["--data-option", f"path={path}", "--data-option", "T=2"]
    line = ["train", "--data", "series", *options, "--n", "4", "--width", "4"]
    assert ": line " in told([*line, "--out", str(tmp_path / "r.nc")], capsys)


def test_an_option_that_is_no_json_is_a_word(tmp_path, capsys):
    """A number of 5,000 digits, and brackets without end, are told by whose option they are."""
    for text in ("1" * 5000, "[" * 5000, "1e999", "NaN"):
        told(["train", "--data-option", f"d={text}", "--out", str(tmp_path / "r.nc")], capsys)
