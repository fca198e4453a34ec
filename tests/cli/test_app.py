"""Starting up: quick, without JAX, and complete."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from headcount.cli import run


def test_list_names_every_registry(capsys):
    assert run(["list", "--json"]) == 0
    names = json.loads(capsys.readouterr().out)
    for kind in ("models", "initialisations", "data", "optimisers", "figures", "claims"):
        assert names[kind], kind
        assert len(set(names[kind])) == len(names[kind])
    assert {"arda2026", "deora2024", "wu2023", "indrnn"} <= set(names["models"])
    assert {"gd", "projgd", "projsgd", "sgd", "momentum", "adam"} <= set(names["optimisers"])


def test_help_and_import_do_not_load_jax():
    script = (
        "import sys, headcount, headcount.cli\n"
        "headcount.cli.run(['--help'])\n"
        "heavy = {'jax', 'numpy', 'matplotlib', 'pydantic'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "reproduce" in done.stdout


def test_an_unknown_command_is_bad_input(capsys):
    assert run(["trian"]) == 2
    assert "train" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["falsify arda2026/lemma-3", "audit --width 4"])
def test_ctrl_c_says_a_word_in_every_command(capsys, monkeypatch, command: str):
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    for name in ("theory.falsify", "theory.audit"):
        monkeypatch.setattr(f"headcount.{name}", interrupted)
    assert run(command.split()) == 130
    assert capsys.readouterr().err.endswith("headcount: interrupted\n")
