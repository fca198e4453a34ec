"""What is said blames what was wrong, and what is shown can be used elsewhere."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from headcount import lab, theory
from headcount.cli import run
from headcount.core import BadArgument

SAID = {
    "train --width 99999999999999999999999": "--width 99999999999999999999999: is too large",
    "train --rho=-1,1,1": "--rho -1.0,1.0,1.0: has rho_c = -1.0, which must be a finite number > 0",
    "train --rho 1,1": "--rho 1,1: is not three numbers",
    "train --init lecun": "--init lecun: is not for arda2026, but for Encoder or TwoLayerReLU",
    "falsify arda2026/lemma-3 --budget=-1": "small, default, large, or a number of 10 or more",
    "falsify arda2026/lemma-3 --budget 3": "small, default, large, or a number of 10 or more",
    "reproduce arda2026/fig1 --executor nope": "--executor nope: is not known; use processes",
}


@pytest.mark.parametrize("line", SAID)
def test_the_flag_that_was_wrong_is_blamed_and_nothing_is_left(line, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(line.split()) == 2
    said = capsys.readouterr().err
    assert SAID[line] in said
    assert said.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_reader_that_goes_early_is_no_failure():
    script = "from headcount.cli import main; main(['explain', 'arda2026/lemma-3'])"
    explained = subprocess.Popen(
        [sys.executable, "-c", f"import sys; sys.stdin.read(); {script}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert explained.stdout is not None
    explained.stdout.close()  # before a word is written
    explained.stdout = None
    _, said = explained.communicate()
    assert (explained.returncode, said) == (0, b"")


def test_claims_and_facts_go_by_name_in_python():
    claim = theory.claims["arda2026/lemma-3"]
    instance = claim.targets()[0]
    assert theory.judge(claim.id, instance) == theory.judge(claim, instance)
    assert theory.verify("arda2026/sigma-2-tanh").answer == "proved"
    for call, problem in (
        (lambda: theory.judge(claim, 3), "asks about a Near; make one with claim.instance(X, q"),
        (lambda: theory.falsify("nope/lemma-3"), "claim = 'nope/lemma-3': is not known"),
        (lambda: theory.explain(3), "claim = 3: is a int"),
        (lambda: theory.audit("arda2026"), "config = 'arda2026': is no configuration"),
        (lambda: claim.instance(Y=3), "instance = 'Y': is no field"),
    ):
        with pytest.raises(BadArgument, match=re.escape(problem)):
            call()


def test_a_wrong_executor_leaves_no_folder(tmp_path: Path):
    plan = lab.make_plan("arda2026/fig1", "smoke")
    with pytest.raises(BadArgument, match="is not known"):
        lab.run_plan(plan, tmp_path / "out", executor="nope")
    assert not list(tmp_path.iterdir())


N = theory.Size("n_of_it", 1, 3)


@theory.lemma(z=theory.Reals(N), delta=theory.Positive(), W=theory.Reals(2, 2))
def of_three_kinds(z, delta, W):
    return delta * abs(z).sum(), 1e-5 * (W**2).sum()


def latex_of_a_counterexample() -> str:
    return theory.falsify(of_three_kinds, budget="small").shown.latex


def test_latex_of_a_counterexample_names_its_lemma():
    latex = latex_of_a_counterexample()
    assert latex.startswith(r"Counterexample to \texttt{of\_three\_kinds}: for $")
    assert r"\delta=" in latex
    assert re.search(r"\$[^$]+>[^$]+\$", latex)
    formulas = latex.split("$")[1::2]
    assert len(latex.split("$")) % 2  # every formula ends
    for formula in formulas:
        assert formula.count("{") == formula.count("}")
        assert len(re.findall(r"(?<!\\)_", re.sub(r"\{[^{}]*\}", "", formula))) <= 1


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="no pdflatex on this machine")
def test_latex_of_a_counterexample_compiles(tmp_path: Path):
    begin = r"\documentclass{article}\usepackage{amsmath}\begin{document}"
    (tmp_path / "a.tex").write_text(begin + latex_of_a_counterexample() + r"\end{document}")
    line = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "a.tex"]
    assert subprocess.run(line, cwd=tmp_path, capture_output=True).returncode == 0


def test_a_letter_without_a_range_is_told():
    with pytest.raises(BadArgument, match="is a letter without a range; write Size"):
        theory.lemma(z=theory.Reals("n"))(lambda z: (z.sum(), 1.0))
