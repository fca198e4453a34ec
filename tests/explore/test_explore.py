"""The explorer without a browser: its numbers are the claims' own, and its page runs."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from headcount import explore
from headcount.cli import run
from headcount.cli._explore import ADDRESS, _server
from headcount.papers.arda2026 import Setting
from headcount.theory import claims

ARDA = explore.Sizes("arda2026")


def test_a_promise_is_that_of_the_claim() -> None:
    sizes = replace(ARDA, width=1024, delta=0.01, rho=2.0, nu=1.5, steps=400)
    setting = Setting(
        d=4, m=1024, n=40, T=6, rho=(2.0,) * 3, nu=(1.5,) * 3, delta=0.01, delta_prime=0.01, tau=400
    )
    found = {(row.claim, row.variant): row.bound for row in explore.promises(sizes)}
    expected, _ = claims["arda2026/theorem-1"].promise(setting, "sharp")
    assert found["arda2026/theorem-1", "sharp"] == pytest.approx(expected.rhs, rel=1e-12)
    assert ("arda2026/lemma-5", "printed") not in found  # a form that is false promises nothing


@pytest.mark.parametrize(
    "change",
    [{"width": 128}, {"d": 5}, {"delta": 0.2}, {"rho": 4.0}, {"nu": 2.0}, {"steps": 200}],
    ids=lambda change: next(iter(change)),
)
def test_every_slider_moves_a_bound(change: dict[str, int]) -> None:
    before, after = (explore.promises(sizes) for sizes in (ARDA, replace(ARDA, **change)))
    assert [row.bound for row in before] != [row.bound for row in after]


def test_what_fails_is_said_in_numbers() -> None:
    too_small = explore.promises(replace(ARDA, rho=1.0))  # rho must be at least nu
    told = [row for row in too_small if row.claim == "arda2026/theorem-1"]
    (said,) = {row.failing[0].failing for row in told}
    assert said.endswith("the theorem asks rho >= nu in every block")
    assert "rho_c = 1 < nu_c = 3" in said
    assert said in explore.table(replace(ARDA, rho=1.0)).replace("&lt;", "<").replace("&gt;", ">")
    shown = explore.table(replace(ARDA, rho=1.0))
    assert "nothing" in shown
    assert "rho &gt;= nu" in shown
    assert explore.table(explore.Sizes("wu2023", n=0)).startswith("<p>")


@pytest.mark.parametrize("paper", ["deora2024", "wu2023"])
def test_other_papers_speak_and_wide_starts_are_not_drawn(paper: str) -> None:
    sizes = explore.Sizes(paper, n=6, T=4, width=2**50)
    rows = explore.promises(sizes)
    assert rows
    assert ("evaluated at the start of width" in explore.table(sizes)) == (paper == "wu2023")


def test_a_run_is_told_and_drawn() -> None:
    sizes, told = replace(ARDA, n=10, steps=20, width=2**40), []
    run_ = explore.train(sizes, lambda done, total, loss: told.append((done, loss)))
    assert told[-1][0] == 20
    assert run_.parameters().c.shape[-1] == 256  # at most
    curve = explore.draw_loss([1, 2], [0.5, 0.25], explore.promises(sizes))
    assert "now 0.25" in curve
    small = replace(sizes, width=8)
    start, end = (
        explore.draw_model(small),
        explore.draw_model(small, explore.train(small).parameters()),
    )
    assert start.count("<svg") == end.count("<svg") == 1
    assert start != end


def test_the_page_runs_from_top_to_bottom() -> None:
    pytest.importorskip("marimo", reason="no marimo: pip install '.[explore]'")
    # In a process of its own: marimo changes what is imported and how warnings are shown.
    code = "from headcount.explore.app import app; import json; _, names = app.run(); "
    code += "print(json.dumps([names['sizes'].paper, names['sizes'].width]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == ["arda2026", 64]


def test_it_serves_this_machine_only_and_keeps_its_token(capsys, monkeypatch) -> None:
    words = _server(4711)
    assert words[words.index("--host") + 1] == ADDRESS == "127.0.0.1"
    assert words[-1] == "-"  # the token comes from standard input, where nobody else reads it
    assert run(["explore", "--port", "70000"]) == 2
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert run(["explore"]) == 2
    assert "pip install marimo" in capsys.readouterr().err
