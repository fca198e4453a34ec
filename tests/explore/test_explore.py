"""The explorer without a browser: its numbers are the claims' own, and its page runs."""

from __future__ import annotations

import io
import json
import math
import os
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from headcount import explore
from headcount.cli import run
from headcount.papers.arda2026 import Setting, TransportTeacher
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


def test_a_run_is_told_and_drawn_at_the_sizes_that_it_has() -> None:
    sizes, told = replace(ARDA, n=10, steps=20, width=2**40), []
    small = replace(sizes, width=8)
    ran = explore.runnable(sizes)
    assert (ran.width, ran.steps) == (4096, 20)
    assert "width 4,096 (the sliders say 1,099,511,627,776)" in explore.run_text(sizes)
    assert "as the sliders say" in explore.run_text(small)
    huge = replace(sizes, n=200, T=20, d=20, steps=10**6)
    assert (explore.runnable(huge).width, explore.runnable(huge).steps) == (256, 1000)
    run_ = explore.train(small, lambda done, total, loss: told.append((done, loss)))
    assert told[-1][0] == 20
    curve = explore.draw_loss(small, [0.5, 0.25], explore.promises(small))
    assert "at width 8, now 0.25" in curve
    start, end = explore.draw_model(small), explore.draw_model(small, run_.parameters())
    assert "At width 8, at the start" in start
    assert "At width 8, after training" in end
    assert start.count("<b>query</b>") == 1  # one row of attention has no scale of queries


def test_curves_are_the_promises_at_every_width() -> None:
    found = explore.curves(replace(ARDA, steps=10**12), "training loss")
    curve = next(c for c in found if "arda2026/theorem-1" in c.claims and c.variant == "sharp")
    assert (curve.widths[0], curve.widths[-1]) == (2, 2**80)
    for width, point in list(zip(curve.widths, curve.points, strict=True))[::20]:
        rows = explore.promises(replace(ARDA, steps=10**12, width=width))
        at = next(r for r in rows if (r.claim, r.variant) == ("arda2026/theorem-1", "sharp"))
        assert point.bound == at.bound
    states = [state for state, _ in curve.pieces()]
    assert states == ["vacuous", "says"]  # narrow heads are promised nothing that is not known
    (_, before), (_, after) = curve.pieces()
    assert before[-1] == after[0]  # no gap where it changes


def test_dots_stay_and_are_hollow_where_other_sizes_differ() -> None:
    group = "training loss"
    runs = [
        explore.Ran.of(replace(ARDA, width=16), [1.0, 0.5]),
        explore.Ran.of(replace(ARDA, width=16, n=7), [1.0, math.inf]),
    ]
    drawn = explore.draw_curves(ARDA, group, runs)
    assert drawn.count("class='dot ran'") == drawn.count("class='dot ran other'") == 1
    assert "Diverged at step 1: smallest loss 1." in drawn
    assert f"loss at zero: {explore.loss_at_zero(ARDA):.3g}" in drawn
    assert "class='dot ran" not in explore.draw_curves(explore.Sizes("wu2023", n=6), group, runs)


def test_the_loss_at_zero_is_that_of_predicting_zero() -> None:
    _, y = TransportTeacher(T=6, d=4, nu=(3.0,) * 3).sample(n=40, seed=0)
    assert explore.loss_at_zero(ARDA) == pytest.approx(float(np.mean(y**2)))
    assert explore.loss_at_zero(explore.Sizes("deora2024")) == pytest.approx(math.log(2))


def test_lamps_show_every_hypothesis_once_with_its_margin() -> None:
    lit = explore.show_lamps(ARDA, "training loss")
    assert lit.count("holds: rho &gt;= nu") == 1
    dark = explore.show_lamps(replace(ARDA, rho=1.0), "training loss")
    assert "fails: rho &gt;= nu" in dark
    assert len(explore.lamps(ARDA, "training loss")) == lit.count("<li")


def test_only_what_has_a_meaning_can_be_moved() -> None:
    names = {p: {c.name for c in explore.controls_of(p)} for p in ("arda2026", "wu2023")}
    assert {"delta", "rho", "nu"} <= names["arda2026"]
    assert not {"scaling", "init"} & names["arda2026"]  # one start, no scaling
    assert {"scaling", "init"} <= names["wu2023"]
    assert not {"delta", "rho", "nu"} & names["wu2023"]


def test_the_address_brings_the_state_back() -> None:
    controls = {control.name: control for control in explore.controls_of("arda2026")}
    moved = {name: control.default for name, control in controls.items()}
    assert explore.sizes_at("arda2026", moved) == ARDA
    moved |= {"width": 2**60, "eta": 0.5, "T": 9}
    kept = explore.address("arda2026", moved)
    assert kept == {"paper": "arda2026", "width": str(2**60), "eta": "0.5", "T": "9"}
    back = {name: control.read(kept.get(name)) for name, control in controls.items()}
    assert back == moved
    assert controls["T"].read("<script>") == 6
    assert controls["width"].positions[0] == 2  # heads come in pairs


def test_the_page_runs_from_top_to_bottom() -> None:
    pytest.importorskip("marimo", reason="no marimo: pip install '.[explore]'")
    # In a process of its own: marimo changes what is imported and how warnings are shown.
    code = "from headcount.explore.app import app; import json; _, names = app.run(); "
    code += "print(json.dumps([names['sizes'].paper, names['sizes'].width]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == ["arda2026", 64]


def test_it_serves_this_machine_only_and_keeps_its_token(capsys, monkeypatch) -> None:
    asked: list[list[str]] = []

    class Ended(subprocess.Popen[bytes]):
        def __init__(self, words: list[str], **pipes: int) -> None:
            asked.append(words)
            super().__init__(["cat"], **pipes)

    with monkeypatch.context() as patched:
        patched.setattr(subprocess, "Popen", Ended)
        patched.setattr("importlib.util.find_spec", lambda name: name)
        assert run(["explore", "--no-browser"]) == 1
    (words,) = asked
    assert words[words.index("--host") + 1] == "127.0.0.1"
    assert words[-1] == "-"  # the token comes from standard input, where nobody else reads it
    assert run(["explore", "--port", "70000"]) == 2
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert run(["explore"]) == 2
    assert "pip install marimo" in capsys.readouterr().err


def test_sigterm_ends_the_page_and_its_server(capsys, monkeypatch) -> None:
    done = []

    class Server:
        stdin = io.BytesIO()
        waited = 0

        def wait(self) -> int:
            self.waited += 1
            if self.waited == 1:  # while the page is served
                os.kill(os.getpid(), signal.SIGTERM)
            return 0

        def terminate(self) -> None:
            done.append("terminated")

    monkeypatch.setattr(subprocess, "Popen", lambda *words, **given: Server())
    monkeypatch.setattr("headcount.cli._explore._answers", lambda port, server: True)
    assert run(["explore", "--no-browser"]) == 130
    assert done == ["terminated"]
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
