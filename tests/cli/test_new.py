"""What `headcount new` writes works: its own tests pass, and the commands know it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from headcount.cli import run


def test_the_tests_of_new_files_pass(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for what, name in (("lemma", "my_lemma"), ("figure", "my_figure")):
        assert run(["new", what, name]) == 0
        assert f"test_{name}.py" in capsys.readouterr().out
        assert run(["new", what, name]) == 2
        assert "exists" in capsys.readouterr().err
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["two words", "headcount", "1st"])
def test_a_name_must_be_one(name, tmp_path, capsys):
    assert run(["new", "lemma", name, "--out", str(tmp_path)]) == 2
    assert "is no Python name" in capsys.readouterr().err
    assert run(["new", "paper", "My_Paper", "--out", str(tmp_path)]) == 2
    assert "smith2030" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


ROOM = "paper model records constants audit claims/softmax claims/loss claims/gaussian figures/fig1"


def test_a_new_paper_has_the_shape_of_a_room_and_two_hundred_lines(tmp_path):
    assert run(["new", "paper", "jones2031", "--out", str(tmp_path)]) == 0
    paths = (path for path in tmp_path.rglob("*") if path.is_file())
    files = {path.relative_to(tmp_path).as_posix(): path.read_text() for path in paths}
    room = {name.removeprefix("jones2031/jones2031/"): text for name, text in files.items()}
    assert {f"{part}.py" for part in ROOM.split()} <= set(room)
    assert {"notes.toml", "choices.toml", "quotes.toml"} <= set(room)
    assert 'id="jones2031/fig1"' in room["figures/fig1.py"]
    assert not [name for name, text in files.items() if "smith2030" in name + text]
    written = [text for name, text in room.items() if name.endswith(".py")]
    lines = [line for text in written for line in text.splitlines() if line.strip()]
    assert len(lines) <= 200


def test_the_tests_of_a_new_paper_pass(tmp_path):
    """Where it is installed, as its README says."""
    assert run(["new", "paper", "jones2031", "--out", str(tmp_path)]) == 0
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
    flags = ["--no-deps", "--no-index", "--no-build-isolation", "--target", str(tmp_path / "site")]
    subprocess.run([*pip, *flags, str(tmp_path / "jones2031")], check=True, capture_output=True)
    path = os.pathsep.join([str(tmp_path / "site"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=tmp_path / "jones2031",
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
