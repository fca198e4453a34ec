"""What `headcount new` writes works: its own tests pass, and the commands know it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from headcount.cli import run
from headcount.cli._new import scaffold


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


def test_a_new_paper_has_every_file_and_no_placeholder():
    files = scaffold("paper", "smith2031")
    assert "smith2031/smith2031/figure.py" in files
    assert 'id="smith2031/fig1"' in files["smith2031/smith2031/figure.py"]
    assert all("$" not in text for text in files.values())
